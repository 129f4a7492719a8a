// Owns the documents that the example keeps: each is one canonical line, on disk before anything rests on it.
// Must never: write over a document that stands, or take another one for it.
// Source: "each file retained before it is used"; system/retained-file.ts.
import { existsSync } from 'node:fs'
import { basename } from 'node:path'
import { type Codec, decode, encode } from '../../protocol/codec.js'
import { BrokerError } from '../../protocol/errors.js'
import { MAXIMUM_CALLER_REPORT_BYTES } from '../../protocol/limits.js'
import type { Cutpoint } from '../../system/cutpoints.js'
import { readRetainedFile, retainFile } from '../../system/retained-file.js'

const NEWLINE = 0x0a
const PRIVATE_FILE = 0o600
const GROUP_OR_OTHERS = 0o077

/** Keeps documents, and says at each that it is on disk. */
export class Retainer {
  readonly #atCutpoint: Cutpoint

  constructor(atCutpoint: Cutpoint) {
    this.#atCutpoint = atCutpoint
  }

  /**
   * Puts a document where none is. The same one again changes nothing.
   * @throws BrokerError `conflict` where another stands: it stays.
   */
  async once<T>(path: string, codec: Codec<T>, value: T): Promise<void> {
    if (!assertSame(path, codec, value)) await this.#retain(path, encode(codec, value))
  }

  /** Puts a document in the place of one that nothing rests on yet. */
  newest<T>(path: string, codec: Codec<T>, value: T): Promise<void> {
    return this.#retain(path, encode(codec, value))
  }

  async #retain(path: string, bytes: Uint8Array): Promise<void> {
    const name = basename(path).replace(/\.json$/, '')
    this.#atCutpoint(`review-note.${name}.before`)
    await retainFile(path, lineOf(bytes), PRIVATE_FILE)
    this.#atCutpoint(`review-note.${name}.after`)
  }
}

/**
 * Whether exactly this document stands there already.
 * @throws BrokerError `conflict` where another one does.
 */
export function assertSame<T>(path: string, codec: Codec<T>, value: T): boolean {
  if (!existsSync(path)) return false
  if (Buffer.compare(readPrivate(path), lineOf(encode(codec, value))) === 0) return true
  throw new BrokerError(
    'conflict',
    `${path} refused: expected the document that is retained there, got another; the retained one stays`,
  )
}

/** @throws BrokerError `invalid_request` where it is missing, with what to do first. */
export function readDocument<T>(path: string, codec: Codec<T>, first: string): T {
  const found = findDocument(path, codec)
  if (found !== undefined) return found
  throw new BrokerError(
    'invalid_request',
    `${path} refused: expected a retained document, got none; ${first}`,
  )
}

export function findDocument<T>(path: string, codec: Codec<T>): T | undefined {
  if (!existsSync(path)) return undefined
  const bytes = readPrivate(path)
  const end = bytes.at(-1) === NEWLINE ? bytes.length - 1 : bytes.length
  return decode(codec, bytes.subarray(0, end), basename(path))
}

function readPrivate(path: string): Uint8Array {
  return readRetainedFile(path, {
    forbiddenMode: GROUP_OR_OTHERS,
    maximumBytes: MAXIMUM_CALLER_REPORT_BYTES + 1,
    ownerUid: process.geteuid?.() ?? 0,
  })
}

function lineOf(bytes: Uint8Array): Uint8Array {
  return Buffer.concat([bytes, Buffer.of(NEWLINE)])
}
