// Owns the codecs of single values and of lists: text, identifiers, digests, integers, byte strings. Bounds
// count bytes of UTF-8. Must never read a value that it would refuse to write, or the reverse.
// Source: the broker protocol's encoding rules, section 0; RFC 8785 for the spelling.

import { readJson } from './canonical-json.js'
import type { CanonicalReader } from './canonical-reader.js'
import { canonicalBytes, writeJson } from './canonical.js'
import type { Codec } from './document-codec.js'
import type { JsonValue } from './json.js'
import { MAXIMUM_IDENTIFIER_BYTES } from './limits.js'

interface TextForm {
  readonly maximumBytes: number
  readonly minimumBytes: number
  /** What a refusal says was expected. */
  readonly expected: string
  readonly accepts: (value: string) => boolean
}

function textOf(form: TextForm): Codec<string> {
  return {
    read(reader) {
      const start = reader.offset
      const value = reader.text(form.maximumBytes, form.expected)
      // Every unit takes at least one byte, so the exact count is needed for short text only.
      const isLongEnough = value.length >= form.minimumBytes || Buffer.byteLength(value) >= form.minimumBytes
      if (isLongEnough && form.accepts(value)) return value
      reader.offset = start
      return reader.refuse(form.expected)
    },
    write(writer, value) {
      if (typeof value !== 'string') writer.refuse('a string', typeof value, TypeError)
      const length = Buffer.byteLength(value)
      if (length > form.maximumBytes || length < form.minimumBytes || !form.accepts(value)) {
        writer.refuse(form.expected, `${length} bytes of text`)
      }
      writer.text(value)
    },
  }
}

/** Any text; bounds count bytes of UTF-8. */
export function text(bounds: { maxBytes: number; minBytes?: number }): Codec<string> {
  const minimumBytes = bounds.minBytes ?? 0
  return textOf({
    maximumBytes: bounds.maxBytes,
    minimumBytes,
    expected: `text of ${minimumBytes}..${bounds.maxBytes} bytes`,
    accepts: () => true,
  })
}

/** Text of one form, such as an operation name; `expected` completes "expected ...". */
export function pattern(form: RegExp, maximumBytes: number, expected: string): Codec<string> {
  return textOf({ maximumBytes, minimumBytes: 0, expected, accepts: value => form.test(value) })
}

// oxlint-disable-next-line no-control-regex -- the protocol refuses exactly these
const UNFIT_IDENTIFIER = /^\p{White_Space}|\p{White_Space}$|[\u0000-\u001f\u007f]|\p{Surrogate}/u

/** Non-empty, without white space at either end, without control characters. */
export function identifier(maximumBytes = MAXIMUM_IDENTIFIER_BYTES): Codec<string> {
  return textOf({
    maximumBytes,
    minimumBytes: 1,
    expected: `an identifier of 1..${maximumBytes} bytes without controls or outer spaces`,
    accepts: value => !UNFIT_IDENTIFIER.test(value),
  })
}

const lowerHex = (digits: number, expected: string): Codec<string> =>
  pattern(new RegExp(`^[0-9a-f]{${digits}}$`), digits, expected)

/** A SHA-256 digest: 64 lower-case hex digits. */
export const digest = (): Codec<string> => lowerHex(64, 'a digest of 64 lower-case hex digits')

export const signatureHex = (): Codec<string> => lowerHex(128, 'a signature of 128 lower-case hex digits')

/** The spelling of an ed25519 public key. Says nothing about its strength: see admitPublicKey. */
export const publicKeyHex = (): Codec<string> => lowerHex(64, 'an ed25519 key of 64 lower-case hex digits')

export function literal<const L extends string | boolean>(value: L): Codec<L> {
  return oneOf(value)
}

/** One of a few words (or a fixed truth value), compared as they are written: no text is made of them first. */
export function oneOf<const L extends string | boolean>(...values: readonly L[]): Codec<L> {
  const tokens = new Map(values.map(value => [value, canonicalBytes(value)]))
  const expected = values.map(value => JSON.stringify(value)).join(' or ')
  return {
    read(reader) {
      for (const [value, token] of tokens) if (reader.take(token)) return value
      return reader.refuse(expected)
    },
    write(writer, value) {
      const token = tokens.get(value)
      if (token === undefined) return writer.refuse(expected, 'another value')
      writer.token(token)
    },
  }
}

export function integer(range: { min: number; max: number }): Codec<number> {
  return {
    read: reader => reader.integer(range.min, range.max),
    write(writer, value) {
      if (typeof value !== 'number') writer.refuse('an integer', typeof value, TypeError)
      if (!Number.isSafeInteger(value) || Object.is(value, -0) || value < range.min || value > range.max) {
        writer.refuse(`an integer of ${range.min}..${range.max}`, String(value))
      }
      writer.ascii(String(value))
    },
  }
}

const TRUE = Buffer.from('true')
const FALSE = Buffer.from('false')
const NULL = Buffer.from('null')

export function boolean(): Codec<boolean> {
  return {
    read(reader) {
      if (reader.take(TRUE)) return true
      if (reader.take(FALSE)) return false
      return reader.refuse('true or false')
    },
    write(writer, value) {
      if (typeof value !== 'boolean') writer.refuse('a boolean', typeof value, TypeError)
      writer.ascii(value ? 'true' : 'false')
    },
  }
}

export function nullable<T>(codec: Codec<T>): Codec<T | null> {
  return {
    read: reader => (reader.take(NULL) ? null : codec.read(reader)),
    write(writer, value) {
      if (value === null) writer.token(NULL)
      else codec.write(writer, value)
    },
  }
}

/** A byte string, written as an array of decimals. */
export function bytes(bounds: { min?: number; max: number }): Codec<Uint8Array> {
  const minimum = bounds.min ?? 0
  return {
    read: reader => reader.byteString(minimum, bounds.max),
    write(writer, value) {
      if (!(value instanceof Uint8Array)) writer.refuse('a Uint8Array', typeof value, TypeError)
      if (value.length < minimum || value.length > bounds.max) {
        writer.refuse(`${minimum}..${bounds.max} bytes`, `${value.length} bytes`)
      }
      writer.byteString(value)
    },
  }
}

export function array<T>(item: Codec<T>, bounds: { max: number; min?: number }): Codec<readonly T[]> {
  const minimum = bounds.min ?? 0
  const expected = `${minimum}..${bounds.max} items`
  return {
    read: reader => readArray(reader, item, bounds.max, minimum),
    write(writer, value) {
      if (!Array.isArray(value)) writer.refuse('an array', typeof value, TypeError)
      if (value.length < minimum || value.length > bounds.max) writer.refuse(expected, `${value.length}`)
      writer.enter('[]')
      writer.byte(0x5b)
      for (let i = 0; i < value.length; i++) {
        if (i > 0) writer.comma()
        item.write(writer, value[i] as T)
      }
      writer.byte(0x5d)
      writer.leave()
    },
  }
}

function readArray<T>(reader: CanonicalReader, item: Codec<T>, maximum: number, minimum: number): T[] {
  reader.expect(0x5b, 'an array')
  reader.enter('[]')
  const items: T[] = []
  if (reader.peek() === 0x5d) reader.offset++
  else {
    do {
      if (items.length >= maximum) reader.refuse(`at most ${maximum} items`)
      items.push(item.read(reader))
    } while (reader.more())
  }
  if (items.length < minimum) reader.refuse(`at least ${minimum} items`)
  reader.leave()
  return items
}

/** Any canonical JSON value of at most this many bytes of text. */
export function json(bounds: { maxBytes: number }): Codec<JsonValue> {
  return {
    read: reader => readJson(reader, bounds.maxBytes),
    write(writer, value) {
      const start = writer.length
      writeJson(writer, value)
      const length = writer.length - start
      if (length > bounds.maxBytes) writer.refuse(`at most ${bounds.maxBytes} bytes`, `${length} bytes`)
    },
  }
}
