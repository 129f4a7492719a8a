// Owns what a codec is, and reading and writing of one whole document. Must never leave bytes over.
// Source: RFC 8785; the read order of the protocol (exact body, UTF-8, shape, canonical bytes).

import { CanonicalReader } from './canonical-reader.js'
import { type CanonicalWriter, writeText } from './canonical-writer.js'
import type { DocumentSchema } from './document-schema.js'

/** Describes a document once; reads canonical bytes only and writes canonical bytes only. */
export interface Codec<T> {
  read(reader: CanonicalReader): T
  write(writer: CanonicalWriter, value: T): void
  /** What it reads, as far as JSON Schema can say it. */
  describe(): DocumentSchema
}

export type Infer<C> = C extends Codec<infer T> ? T : never

/**
 * Reads one whole document.
 * @throws BrokerError invalid_request with a sentence that names `what`, the member and the offset.
 */
export function decode<T>(codec: Codec<T>, bytes: Uint8Array, what: string): T {
  const reader = new CanonicalReader(bytes, what)
  const value = codec.read(reader)
  reader.end()
  return value
}

/** @throws TypeError or RangeError for a value that the codec would not read back. */
export function encode<T>(codec: Codec<T>, value: T): Uint8Array {
  return writeText(writer => codec.write(writer, value))
}

/** Whether two values are one document: the same canonical bytes. */
export function isSameDocument<T>(codec: Codec<T>, left: T, right: T): boolean {
  return Buffer.compare(encode(codec, left), encode(codec, right)) === 0
}
