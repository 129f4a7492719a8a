// Owns reading and writing of large frames without holding the event loop: byte strings, which are nearly all
// of a large frame, are converted in slices; what is left is small and is done at once. The answer is the
// same as that of decode and encode. Must never run longer than 2 ms between two yields.
// Source: the broker protocol's byte strings (decimal arrays).

import { type ConvertedBytes, CanonicalReader } from './canonical-reader.js'
import { type DeferredBytes, writeText } from './canonical-writer.js'
import { type Codec, decode } from './document-codec.js'
import {
  CLOSING_BRACKET,
  countDecimals,
  DECIMAL_SLACK_BYTES,
  type DecimalCursor,
  decimalTextBytes,
  OPENING_BRACKET,
  readDecimals,
  writeDecimals,
} from './decimal-bytes.js'

/** Lets the event loop turn once, for example `() => new Promise(setImmediate)`. */
export type YieldNow = () => Promise<unknown>

/** Text converted between two yields: about 0.5 ms of work, so that a slow machine stays below 2 ms. */
const SLICE_TEXT_BYTES = 128 * 1024
/** Byte strings of shorter text are left to the reader: even sixty-four of them are half a millisecond. */
const LARGE_STRING_TEXT_BYTES = 4 * 1024
/** Byte strings shorter than this are written at once: sixty-four of them take a millisecond. */
const LARGE_STRING_BYTES = 16 * 1024
const SLICE_BYTES = 64 * 1024
const QUOTE = 0x22
const BACKSLASH = 0x5c

export async function decodeSliced<T>(
  codec: Codec<T>,
  bytes: Uint8Array,
  what: string,
  yieldNow: YieldNow,
): Promise<T> {
  if (bytes.length <= SLICE_TEXT_BYTES) return decode(codec, bytes, what)
  const converted = await new LargeStrings(bytes, yieldNow).convert()
  const reader = new CanonicalReader(bytes, what, converted)
  const value = codec.read(reader)
  reader.end()
  return value
}

/** Finds large byte strings in a text that is not yet known to be canonical, and converts them. */
class LargeStrings {
  readonly #bytes: Uint8Array
  readonly #yieldNow: YieldNow
  readonly #converted = new Map<number, { value: Uint8Array; end: number }>()
  /** No closing bracket stands from the last opening one to here: many openings cost no more than one. */
  #openUntil = 0
  #nextYield = SLICE_TEXT_BYTES

  constructor(bytes: Uint8Array, yieldNow: YieldNow) {
    this.#bytes = bytes
    this.#yieldNow = yieldNow
  }

  async convert(): Promise<ConvertedBytes> {
    let offset = 0
    while (offset < this.#bytes.length) {
      offset = this.#scan(offset)
      if (offset >= this.#nextYield) await this.#pause(offset)
      else if (offset < this.#bytes.length) offset = await this.#string(offset)
    }
    return this.#converted
  }

  /** Offset of the next large byte string, else of the next yield or the end. */
  #scan(from: number): number {
    let offset = from
    while (offset < this.#bytes.length && offset < this.#nextYield) {
      const byte = this.#bytes[offset]
      if (byte === QUOTE) offset = this.#behindText(offset)
      else if (byte === OPENING_BRACKET && this.#isLarge(offset)) return offset
      else offset++
    }
    return offset
  }

  #isLarge(opening: number): boolean {
    const end = Math.min(opening + LARGE_STRING_TEXT_BYTES, this.#bytes.length)
    const from = Math.max(opening, this.#openUntil)
    const close = from < end ? this.#bytes.subarray(from, end).indexOf(CLOSING_BRACKET) : -1
    this.#openUntil = close < 0 ? Math.max(end, this.#openUntil) : from + close
    return close < 0 && end === opening + LARGE_STRING_TEXT_BYTES
  }

  #behindText(offset: number): number {
    let end = this.#bytes.indexOf(QUOTE, offset + 1)
    while (end > 0 && this.#isEscaped(end)) end = this.#bytes.indexOf(QUOTE, end + 1)
    return end < 0 ? this.#bytes.length : end + 1
  }

  #isEscaped(quote: number): boolean {
    let backslashes = 0
    while (this.#bytes[quote - 1 - backslashes] === BACKSLASH) backslashes++
    return backslashes % 2 === 1
  }

  /** Converts one. What is none, or not canonical, ends the search: the reader refuses or reads the rest. */
  async #string(opening: number): Promise<number> {
    const count = await this.#count(opening + 1)
    const value = new Uint8Array(count)
    const cursor: DecimalCursor = { offset: opening + 1, count: 0, closed: false }
    while (!cursor.closed) {
      const softEnd = Math.min(cursor.offset + SLICE_TEXT_BYTES, this.#bytes.length)
      if (!readDecimals(this.#bytes, value, cursor, softEnd)) {
        value.fill(0)
        return this.#bytes.length
      }
      if (cursor.offset >= this.#nextYield) await this.#pause(cursor.offset)
    }
    this.#converted.set(opening, { value, end: cursor.offset })
    return cursor.offset
  }

  /** Numbers up to the closing bracket; 0 when there is none. */
  async #count(first: number): Promise<number> {
    let commas = 0
    for (let from = first; from < this.#bytes.length; from += SLICE_TEXT_BYTES) {
      const slice = this.#bytes.subarray(from, from + SLICE_TEXT_BYTES)
      const close = slice.indexOf(CLOSING_BRACKET)
      commas += countDecimals(slice, 0, close < 0 ? slice.length : close) - 1
      if (close >= 0) return commas + 1
      await this.#yieldNow()
    }
    return 0
  }

  async #pause(offset: number): Promise<void> {
    this.#nextYield = offset + SLICE_TEXT_BYTES
    await this.#yieldNow()
  }
}

/** Same bytes as encode; large byte strings are written in slices. */
export async function encodeSliced<T>(codec: Codec<T>, value: T, yieldNow: YieldNow): Promise<Uint8Array> {
  const deferred: DeferredBytes[] = []
  const skeleton = writeText(writer => codec.write(writer, value), {
    fromBytes: LARGE_STRING_BYTES,
    defer: part => deferred.push(part),
  })
  if (deferred.length === 0) return skeleton
  const textBytes = skeleton.length + (await deferredTextBytes(deferred, yieldNow))
  const out = new Uint8Array(textBytes + DECIMAL_SLACK_BYTES)
  let offset = 0
  let from = 0
  for (const { offset: at, value: part } of deferred) {
    out.set(skeleton.subarray(from, at), offset)
    offset = await writeSlices(out, offset + at - from, part, yieldNow)
    from = at
  }
  out.set(skeleton.subarray(from), offset)
  return out.subarray(0, textBytes)
}

async function deferredTextBytes(deferred: readonly DeferredBytes[], yieldNow: YieldNow): Promise<number> {
  let total = 0
  for (const { value } of deferred) {
    for (const slice of slices(value)) {
      total += decimalTextBytes(slice)
      await yieldNow()
    }
    // The last number has no comma.
    total--
  }
  return total
}

async function writeSlices(
  out: Uint8Array,
  offset: number,
  value: Uint8Array,
  yieldNow: YieldNow,
): Promise<number> {
  const view = new DataView(out.buffer)
  let end = offset
  for (const slice of slices(value)) {
    end = writeDecimals(view, end, slice)
    await yieldNow()
  }
  // The comma behind the last number, and the slack, are overwritten by what follows.
  return end - 1
}

function* slices(value: Uint8Array): Generator<Uint8Array> {
  for (let from = 0; from < value.length; from += SLICE_BYTES) yield value.subarray(from, from + SLICE_BYTES)
}
