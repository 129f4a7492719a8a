// Owns reading of canonical JSON straight from bytes: one place in the buffer, one spelling allowed.
// Whitespace, other escapes, other number forms, odd key order are refused where they stand; nothing is
// repaired. Sentences name the member and the offset, never what stood there.
// Source: RFC 8785; RFC 3629 for UTF-8; RFC 7493 for integers.

import { isUtf8 } from 'node:buffer'
import { escapedByte, lowerHexValue, shortEscape } from './canonical-text.js'
import {
  CLOSING_BRACKET,
  COMMA,
  countDecimals,
  type DecimalCursor,
  MAXIMUM_DECIMAL_BYTES,
  OPENING_BRACKET,
  readDecimals,
} from './decimal-bytes.js'
import { wipeableBytes } from './digest.js'
import { BrokerError } from './errors.js'
import { MAXIMUM_INTEGER, MAXIMUM_JSON_DEPTH } from './limits.js'

const QUOTE = 0x22
const CLOSING_BRACE = 0x7d
const BACKSLASH = 0x5c
const MINUS = 0x2d
const ZERO = 0x30

/** Byte strings that were converted beforehand, by the offset of their opening bracket. */
export type ConvertedBytes = ReadonlyMap<number, { readonly value: Uint8Array; readonly end: number }>

export class CanonicalReader {
  readonly what: string
  readonly bytes: Uint8Array
  readonly #view: Buffer
  readonly #converted: ConvertedBytes | undefined
  readonly #path: string[] = []
  #depth = 0
  offset = 0

  constructor(bytes: Uint8Array, what: string, converted?: ConvertedBytes) {
    this.bytes = bytes
    this.what = what
    this.#view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#converted = converted
  }

  /** @throws BrokerError invalid_request, naming the member and the offset. */
  refuse(expected: string): never {
    const place = this.#path.length === 0 ? '' : ` in ${this.#path.join('.')}`
    throw new BrokerError(
      'invalid_request',
      `${this.what} refused: expected ${expected}${place} at byte ${this.offset}; nothing was done with it`,
    )
  }

  peek(): number {
    return this.offset < this.bytes.length ? (this.bytes[this.offset] as number) : -1
  }

  /** Names the member that is being read, for the sentence of a refusal. */
  enter(name: string): void {
    if (++this.#depth > MAXIMUM_JSON_DEPTH) this.refuse(`at most ${MAXIMUM_JSON_DEPTH} levels`)
    this.#path.push(name)
  }

  leave(): void {
    this.#depth--
    this.#path.pop()
  }

  expect(byte: number, expected: string): void {
    if (this.peek() !== byte) this.refuse(expected)
    this.offset++
  }

  /** Whether exactly these bytes come next; they are taken then. */
  take(token: Uint8Array): boolean {
    const { bytes, offset } = this
    if (offset + token.length > bytes.length) return false
    for (let i = 0; i < token.length; i++) if (bytes[offset + i] !== token[i]) return false
    this.offset = offset + token.length
    return true
  }

  end(): void {
    if (this.offset !== this.bytes.length) this.refuse('the end')
  }

  /** Reads a string of at most `maximumBytes` bytes of UTF-8; `form` is what a longer one should have been. */
  text(maximumBytes: number, form?: string): string {
    this.expect(QUOTE, 'a string')
    const start = this.offset
    const { bytes } = this
    const limit = Math.min(bytes.length, start + maximumBytes + 1)
    let bits = 0
    for (let i = start; i < limit; i++) {
      const byte = bytes[i] as number
      if (byte === QUOTE) return this.#plainText(start, i, bits)
      if (byte === BACKSLASH || byte < 0x20) return this.#escapedText(start, maximumBytes, form)
      bits |= byte
    }
    this.offset = limit
    return this.#refuseLength(maximumBytes, form)
  }

  #refuseLength(maximumBytes: number, form: string | undefined): never {
    if (this.offset >= this.bytes.length) this.refuse('the end of the string')
    return this.refuse(form ?? `a string of at most ${maximumBytes} bytes`)
  }

  /** Text without escapes; `bits` are those of all its bytes, which spares ASCII the check of UTF-8. */
  #plainText(start: number, end: number, bits: number): string {
    if (bits > 0x7f) return this.#utf8(this.#view.subarray(start, end), end + 1)
    this.offset = end + 1
    return this.#view.toString('latin1', start, end)
  }

  #utf8(part: Buffer, end: number): string {
    if (!isUtf8(part)) this.refuse('valid UTF-8')
    this.offset = end
    return part.toString('utf8')
  }

  #escapedText(start: number, maximumBytes: number, form: string | undefined): string {
    const unescaped = Buffer.alloc(Math.min(maximumBytes, this.#textSpan(start)))
    let length = 0
    this.offset = start
    for (let byte = this.peek(); byte !== QUOTE; byte = this.peek()) {
      if (byte < 0x20) this.refuse(byte < 0 ? 'the end of the string' : 'an escaped control character')
      if (length >= maximumBytes) this.#refuseLength(maximumBytes, form)
      this.offset++
      unescaped[length++] = byte === BACKSLASH ? this.#escape() : byte
    }
    const text = this.#utf8(unescaped.subarray(0, length), this.offset + 1)
    unescaped.fill(0)
    return text
  }

  /** Bytes up to the closing quote or the end. */
  #textSpan(start: number): number {
    let end = start
    while (end < this.bytes.length && this.bytes[end] !== QUOTE) end += this.bytes[end] === BACKSLASH ? 2 : 1
    return end - start
  }

  /** Behind the backslash. RFC 8785: seven short forms, else \u00 and two lower-case hex digits. */
  #escape(): number {
    const short = escapedByte(this.peek())
    if (short !== 255) {
      this.offset++
      return short
    }
    const { bytes, offset } = this
    const high = lowerHexValue(bytes[offset + 3] ?? 0)
    const low = lowerHexValue(bytes[offset + 4] ?? 0)
    const isUnit = bytes[offset] === 0x75 && bytes[offset + 1] === ZERO && bytes[offset + 2] === ZERO
    if (!isUnit || high < 0 || low < 0) this.refuse('a canonical escape')
    const value = high * 16 + low
    if (value >= 0x20 || shortEscape(value) !== 0) this.refuse('the shortest escape')
    this.offset = offset + 5
    return value
  }

  /** Reads an integer in plain digits: no leading zero, no plus, no -0, within 2^53-1. */
  integer(minimum: number, maximum: number): number {
    const start = this.offset
    const negative = this.peek() === MINUS
    if (negative) this.offset++
    const first = this.offset
    let value = 0
    for (;;) {
      const digit = this.peek() - ZERO
      if (digit < 0 || digit > 9) break
      value = value * 10 + digit
      this.offset++
      if (value > MAXIMUM_INTEGER) this.refuse('an integer within 2^53-1')
    }
    const digits = this.offset - first
    const odd = this.bytes[first] === ZERO && (digits > 1 || negative)
    if (digits === 0 || odd || this.#numberGoesOn()) this.refuse('a canonical integer')
    const signed = negative ? -value : value
    if (signed < minimum || signed > maximum) {
      this.offset = start
      this.refuse(`an integer of ${minimum}..${maximum}`)
    }
    return signed
  }

  #numberGoesOn(): boolean {
    const byte = this.peek()
    return byte === 0x2e || byte === 0x65 || byte === 0x45
  }

  /** Reads a number in the form that ECMAScript gives it. Plain digits beyond 2^53-1 are refused. */
  number(): number {
    const start = this.offset
    let end = start
    while (end < this.bytes.length && end - start < 32 && isNumberByte(this.bytes[end] as number)) end++
    const token = this.#view.toString('latin1', start, end)
    const value = Number(token)
    if (token === '' || !Number.isFinite(value) || String(value) !== token) this.refuse('a canonical number')
    if (isUnsafeInteger(value)) this.refuse('an integer within 2^53-1')
    this.offset = end
    return value
  }

  /** Reads `[1,2,3]` as bytes. */
  byteString(minimum: number, maximum: number): Uint8Array {
    const converted = this.#converted?.get(this.offset)
    const value = converted === undefined ? this.#decimals(maximum) : converted.value
    if (converted !== undefined) this.offset = converted.end
    if (value.length < minimum || value.length > maximum) this.refuse(`${minimum}..${maximum} bytes`)
    return value
  }

  #decimals(maximum: number): Uint8Array {
    this.expect(OPENING_BRACKET, 'an array of bytes')
    if (this.peek() === CLOSING_BRACKET) {
      this.offset++
      return new Uint8Array(0)
    }
    // It may be a secret to be provisioned.
    const value = wipeableBytes(this.#decimalCount(maximum))
    const cursor: DecimalCursor = { offset: this.offset, count: 0, closed: false }
    const complete = readDecimals(this.bytes, value, cursor, this.bytes.length) && cursor.closed
    this.offset = cursor.offset
    if (complete) return value
    value.fill(0)
    return this.refuse(`a decimal byte of 0..255, ${maximum} at most`)
  }

  /** Numbers up to the closing bracket, looked for no further than the longest text allowed. */
  #decimalCount(maximum: number): number {
    const farthest = Math.min(this.bytes.length, this.offset + maximum * MAXIMUM_DECIMAL_BYTES)
    const close = this.bytes.subarray(this.offset, farthest).indexOf(CLOSING_BRACKET)
    if (close < 0) return 0
    return Math.min(countDecimals(this.bytes, this.offset, this.offset + close), maximum)
  }

  /** Whether this member comes next; its name, colon and the comma before it are taken then. */
  takeMember(token: Uint8Array, first: boolean): boolean {
    if (first) return this.take(token)
    if (this.peek() !== COMMA) return false
    this.offset++
    if (this.take(token)) return true
    this.offset--
    return false
  }

  /** Takes the comma before a member, if one is due: false at the end of the object, which is taken. */
  moreMembers(first: boolean): boolean {
    const byte = this.peek()
    if (byte === CLOSING_BRACE) {
      this.offset++
      return false
    }
    if (first) return true
    if (byte !== COMMA) this.refuse('a comma or the end of the object')
    this.offset++
    return true
  }

  /** Passes over a byte string that was converted beforehand, if one starts here. */
  skipConverted(): boolean {
    const converted = this.#converted?.get(this.offset)
    if (converted !== undefined) this.offset = converted.end
    return converted !== undefined
  }

  /** Takes the separator of an array: false at its end. */
  more(): boolean {
    const byte = this.peek()
    if (byte !== COMMA && byte !== CLOSING_BRACKET) this.refuse('a comma or the end of the array')
    this.offset++
    return byte === COMMA
  }
}

function isNumberByte(byte: number): boolean {
  return (byte >= ZERO && byte <= 0x39) || byte === MINUS || byte === 0x2e || byte === 0x65 || byte === 0x2b
}

/** An integer that prints in plain digits and that another reader may round. */
export function isUnsafeInteger(value: number): boolean {
  const size = Math.abs(value)
  return size > MAXIMUM_INTEGER && size < 1e21
}
