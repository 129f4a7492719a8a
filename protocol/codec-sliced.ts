// Owns reading and writing of large frames without holding the event loop: byte strings, which are nearly all
// of a large frame, are converted in slices; what is left is small and is done at once. The answer is the
// same as that of decode and encode. Must never run longer than 2 ms between two yields.
// Source: the broker protocol's byte strings (decimal arrays).

import { type ConvertedBytes, CanonicalReader } from './canonical-reader.js'
import { CanonicalWriter, type DeferredBytes } from './canonical-writer.js'
import { type Codec, decode } from './codec.js'
import {
  CLOSING_BRACKET,
  type DecimalCursor,
  decimalCapacity,
  decimalTextBytes,
  OPENING_BRACKET,
  readDecimals,
  writeDecimals,
} from './decimal-bytes.js'

/** Lets the event loop turn once, for example `() => new Promise(setImmediate)`. */
export type YieldNow = () => Promise<unknown>

/** Text converted between two yields: about 0.5 ms of work, so that a slow machine stays below 2 ms. */
const SLICE_TEXT_BYTES = 128 * 1024
/** Byte strings shorter than this are not worth a yield of their own. */
const LARGE_STRING_TEXT_BYTES = 32 * 1024
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
  /** Next closing bracket at or behind the offset: found once, so that many openings cost no more. */
  #close = -1
  #nextYield = SLICE_TEXT_BYTES

  constructor(bytes: Uint8Array, yieldNow: YieldNow) {
    this.#bytes = bytes
    this.#yieldNow = yieldNow
  }

  async convert(): Promise<ConvertedBytes> {
    let offset = 0
    while (offset < this.#bytes.length) {
      const found = this.#scan(offset)
      const isLarge = found < this.#bytes.length && found < this.#nextYield
      offset = isLarge ? await this.#string(found) : found
      if (offset >= this.#nextYield) await this.#pause(offset)
    }
    return this.#converted
  }

  /** Offset of the next large byte string, else where to yield or the end of the text. */
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
    if (this.#close < opening) {
      const close = this.#bytes.indexOf(CLOSING_BRACKET, opening)
      this.#close = close < 0 ? this.#bytes.length : close
    }
    return this.#close < this.#bytes.length && this.#close - opening >= LARGE_STRING_TEXT_BYTES
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

  async #string(opening: number): Promise<number> {
    const end = this.#close + 1
    const scratch = new Uint8Array(decimalCapacity(end - opening))
    const cursor: DecimalCursor = { offset: opening + 1, count: 0, closed: false }
    while (!cursor.closed) {
      const softEnd = Math.min(cursor.offset + SLICE_TEXT_BYTES, end)
      // Not a byte string, or not canonical: the reader will say so, at the same place.
      if (!readDecimals(this.#bytes, scratch, cursor, softEnd)) return this.#abandon(scratch, cursor)
      await this.#pause(cursor.offset)
    }
    this.#converted.set(opening, { value: scratch.slice(0, cursor.count), end })
    scratch.fill(0)
    return end
  }

  #abandon(scratch: Uint8Array, cursor: DecimalCursor): number {
    scratch.fill(0)
    return cursor.offset
  }

  async #pause(offset: number): Promise<void> {
    this.#nextYield = offset + SLICE_TEXT_BYTES
    await this.#yieldNow()
  }
}

/** Same bytes as encode; large byte strings are written in slices. */
export async function encodeSliced<T>(codec: Codec<T>, value: T, yieldNow: YieldNow): Promise<Uint8Array> {
  const writer = new CanonicalWriter(LARGE_STRING_BYTES)
  codec.write(writer, value)
  const deferred = [...writer.deferred]
  const skeleton = writer.finish()
  if (deferred.length === 0) return skeleton
  const out = new Uint8Array(skeleton.length + (await deferredTextBytes(deferred, yieldNow)))
  let offset = 0
  let from = 0
  for (const { offset: at, value: part } of deferred) {
    out.set(skeleton.subarray(from, at), offset)
    offset = await writeSlices(out, offset + at - from, part, yieldNow)
    from = at
  }
  out.set(skeleton.subarray(from), offset)
  return out
}

async function deferredTextBytes(deferred: readonly DeferredBytes[], yieldNow: YieldNow): Promise<number> {
  let total = 0
  for (const { value } of deferred) {
    for (const slice of slices(value)) {
      total += decimalTextBytes(slice)
      await yieldNow()
    }
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
  let end = offset
  for (const slice of slices(value)) {
    end = writeDecimals(out, end, slice)
    await yieldNow()
  }
  // The comma behind the last number; what follows overwrites it.
  return end - 1
}

function* slices(value: Uint8Array): Generator<Uint8Array> {
  for (let from = 0; from < value.length; from += SLICE_BYTES) yield value.subarray(from, from + SLICE_BYTES)
}
