// Owns writing of canonical JSON into a growing buffer. What it writes, CanonicalReader accepts; what the
// reader would refuse is refused here too, as a fault of the caller.
// Buffers that were outgrown are overwritten, since any of them may hold a secret.
// Source: RFC 8785.

import { hasLoneSurrogate, shortEscape } from './canonical-text.js'
import {
  CLOSING_BRACKET,
  COMMA,
  DECIMAL_SLACK_BYTES,
  decimalTextBytes,
  OPENING_BRACKET,
  writeDecimals,
} from './decimal-bytes.js'
import { MAXIMUM_JSON_DEPTH } from './limits.js'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const FIRST_BUFFER_BYTES = 16 * 1024
/** From here on buffers grow by an eighth, so that a large frame is not copied twice. */
const LARGE_BUFFER_BYTES = 64 * 1024
const NO_BUFFER = Buffer.alloc(0)
const HEX_DIGITS = '0123456789abcdef'

/** A byte string left out of the text, to be written at this offset later. */
export interface DeferredBytes {
  readonly offset: number
  readonly value: Uint8Array
}

/** One outgrown or finished buffer, overwritten, kept for the next writer: most documents are small. */
let spare: Buffer<ArrayBuffer> | undefined

function takeBuffer(): Buffer<ArrayBuffer> {
  const buffer = spare ?? Buffer.allocUnsafeSlow(FIRST_BUFFER_BYTES)
  spare = undefined
  return buffer
}

/** Takes byte strings of at least this length instead of writing them. */
export interface Deferral {
  readonly fromBytes: number
  readonly defer: (part: DeferredBytes) => void
}

export class CanonicalWriter {
  readonly #deferral: Deferral | undefined
  readonly #path: string[] = []
  #buffer = takeBuffer()
  #length = 0

  constructor(deferral?: Deferral) {
    this.#deferral = deferral
  }

  /** Bytes of text so far, deferred byte strings left out. */
  get length(): number {
    return this.#length
  }

  /** @throws TypeError or RangeError that names the member, never its content. */
  refuse(expected: string, got: string, kind: typeof TypeError | typeof RangeError = RangeError): never {
    throw new kind(`"${this.#path.join('.') || 'value'}" expected ${expected}, got ${got}`)
  }

  enter(name: string): void {
    if (this.#path.length >= MAXIMUM_JSON_DEPTH) this.refuse(`at most ${MAXIMUM_JSON_DEPTH} levels`, 'more')
    this.#path.push(name)
  }

  leave(): void {
    this.#path.pop()
  }

  byte(value: number): void {
    this.#room(1)
    this.#buffer[this.#length++] = value
  }

  token(bytes: Uint8Array): void {
    this.#room(bytes.length)
    const buffer = this.#buffer
    const start = this.#length
    // Tokens are short: a loop beats the call of a built-in.
    for (let i = 0; i < bytes.length; i++) buffer[start + i] = bytes[i] as number
    this.#length = start + bytes.length
  }

  ascii(text: string): void {
    this.#room(text.length)
    const buffer = this.#buffer
    const start = this.#length
    for (let i = 0; i < text.length; i++) buffer[start + i] = text.charCodeAt(i)
    this.#length = start + text.length
  }

  text(value: string): void {
    this.#room(value.length * 6 + 2)
    const start = this.#length
    const buffer = this.#buffer
    let o = start
    buffer[o++] = QUOTE
    for (let i = 0; i < value.length; i++) {
      const unit = value.charCodeAt(i)
      if (unit < 0x20 || unit > 0x7e || unit === QUOTE || unit === BACKSLASH) {
        return this.#mixedText(value)
      }
      buffer[o++] = unit
    }
    buffer[o++] = QUOTE
    this.#length = o
  }

  /** Text with escapes or beyond ASCII; the room is made. */
  #mixedText(value: string): void {
    if (hasLoneSurrogate(value)) this.refuse('text without lone surrogates', 'one')
    this.byte(QUOTE)
    let plainFrom = 0
    for (let i = 0; i < value.length; i++) {
      const unit = value.charCodeAt(i)
      if (unit >= 0x20 && unit !== QUOTE && unit !== BACKSLASH) continue
      this.#utf8(value, plainFrom, i)
      this.#escape(unit)
      plainFrom = i + 1
    }
    this.#utf8(value, plainFrom, value.length)
    this.byte(QUOTE)
  }

  #utf8(value: string, from: number, to: number): void {
    if (from === to) return
    const part = from === 0 && to === value.length ? value : value.slice(from, to)
    this.#room(part.length * 3)
    this.#length += this.#buffer.write(part, this.#length, 'utf8')
  }

  #escape(unit: number): void {
    const letter = shortEscape(unit)
    if (letter !== 0) {
      this.byte(BACKSLASH)
      this.byte(letter)
    } else this.ascii(`\\u00${HEX_DIGITS[unit >> 4]}${HEX_DIGITS[unit & 15]}`)
  }

  byteString(value: Uint8Array): void {
    this.byte(OPENING_BRACKET)
    const deferral = this.#deferral
    if (deferral !== undefined && value.length >= deferral.fromBytes) {
      deferral.defer({ offset: this.#length, value })
    } else if (value.length > 0) {
      this.#room(decimalTextBytes(value) + DECIMAL_SLACK_BYTES)
      const view = new DataView(this.#buffer.buffer)
      this.#length = writeDecimals(view, this.#length, value) - 1
    }
    this.byte(CLOSING_BRACKET)
  }

  comma(): void {
    this.byte(COMMA)
  }

  /** The text, handed over; the writer is empty afterwards. */
  finish(): Uint8Array {
    const length = this.#length
    const buffer = this.#buffer
    this.#buffer = NO_BUFFER
    this.#length = 0
    const isNearlyFull = buffer.length - length <= buffer.length >>> 3
    if (isNearlyFull && buffer.length > FIRST_BUFFER_BYTES) return new Uint8Array(buffer.buffer, 0, length)
    const text = new Uint8Array(length)
    text.set(buffer.subarray(0, length))
    buffer.fill(0, 0, length)
    if (buffer.length === FIRST_BUFFER_BYTES) spare = buffer
    return text
  }

  /** Overwrites everything: a refusal may come after part of a secret was written. */
  abandon(): void {
    this.#buffer.fill(0)
    if (this.#buffer.length === FIRST_BUFFER_BYTES) spare = this.#buffer
    this.#buffer = NO_BUFFER
    this.#length = 0
  }

  #room(bytes: number): void {
    const needed = this.#length + bytes
    if (needed <= this.#buffer.length) return
    const spare = needed > LARGE_BUFFER_BYTES ? needed >>> 3 : needed
    const larger = Buffer.allocUnsafeSlow(Math.max(FIRST_BUFFER_BYTES, needed + spare))
    this.#buffer.copy(larger, 0, 0, this.#length)
    this.#buffer.fill(0, 0, this.#length)
    this.#buffer = larger
  }
}

/** Writes one text. Whatever was written before a refusal is overwritten: it may hold a secret. */
export function writeText(write: (writer: CanonicalWriter) => void, deferral?: Deferral): Uint8Array {
  const writer = new CanonicalWriter(deferral)
  try {
    write(writer)
    return writer.finish()
  } catch (error) {
    writer.abandon()
    throw error
  }
}
