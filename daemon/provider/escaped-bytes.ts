// Owns the reading of text under the escapes that web programs write: percent (RFC 3986 §2.1), JSON and
// JavaScript (RFC 8259 §7), HTML character references. One byte at a time over the received bytes, so
// that no decoded copy of a secret ever exists. An escape that is not one of these is its own bytes.

const PERCENT = 0x25
const AMPERSAND = 0x26
const BACKSLASH = 0x5c
const SEMICOLON = 0x3b
const NAMED: readonly (readonly [reference: Uint8Array, byte: number])[] = [
  [Buffer.from('&amp;'), 0x26],
  [Buffer.from('&lt;'), 0x3c],
  [Buffer.from('&gt;'), 0x3e],
  [Buffer.from('&quot;'), 0x22],
  [Buffer.from('&apos;'), 0x27],
]
/** `&#x0000041;`: leading zeros are allowed, endless ones are not worth following. */
const MAXIMUM_REFERENCE_DIGITS = 8

/** The sign that opens an escape: percent, backslash or ampersand. */
export type EscapeSign = 0x25 | 0x5c | 0x26
const SIGNS: readonly EscapeSign[] = [PERCENT, BACKSLASH, AMPERSAND]

/**
 * The readings under which bytes can mean something else than themselves: each kind of escape that occurs
 * alone, and all together. Alone matters: in JSON a `%41` is three characters. Mostly there is none.
 */
export function readingsOf(bytes: Uint8Array): readonly (readonly EscapeSign[])[] {
  const present = SIGNS.filter(sign => bytes.includes(sign))
  const alone = present.map(sign => [sign])
  return present.length > 1 ? [...alone, present] : alone
}

export class EscapedBytes {
  readonly #bytes: Uint8Array
  readonly #percent: boolean
  readonly #backslash: boolean
  readonly #ampersand: boolean
  #at = 0
  /** The decoded unit that `next` read; above 255 when it is no byte. */
  unit = 0

  /** @param signs the escapes to read; all else stands for itself. */
  constructor(bytes: Uint8Array, signs: readonly EscapeSign[]) {
    this.#bytes = bytes
    this.#percent = signs.includes(PERCENT)
    this.#backslash = signs.includes(BACKSLASH)
    this.#ampersand = signs.includes(AMPERSAND)
  }

  /** Reads one unit; false at the end. */
  next(): boolean {
    if (this.#at >= this.#bytes.length) return false
    const byte = this.#bytes[this.#at] as number
    const escaped =
      (byte === PERCENT && this.#percent && this.#hex(1, 2)) ||
      (byte === BACKSLASH && this.#backslash && this.#script()) ||
      (byte === AMPERSAND && this.#ampersand && this.#reference())
    if (!escaped) this.#yield(byte, 1)
    return true
  }

  #yield(unit: number, length: number): true {
    this.unit = unit
    this.#at += length
    return true
  }

  #peek(offset: number): number {
    return this.#bytes[this.#at + offset] ?? -1
  }

  /** `digits` hex digits at `offset`, and nothing more. */
  #hex(offset: number, digits: number): boolean {
    const value = this.#number(offset, digits, 16)
    return value !== null && this.#yield(value, offset + digits)
  }

  #script(): boolean {
    const kind = this.#peek(1)
    if (kind === 0x75) return this.#hex(2, 4)
    if (kind === 0x78) return this.#hex(2, 2)
    const itself = kind === BACKSLASH || kind === 0x22 || kind === 0x27 || kind === 0x2f
    return itself && this.#yield(kind, 2)
  }

  #reference(): boolean {
    if (this.#peek(1) === 0x23) return this.#numericReference()
    const named = NAMED.find(([reference]) => reference.every((byte, index) => this.#peek(index) === byte))
    return named !== undefined && this.#yield(named[1], named[0].length)
  }

  #numericReference(): boolean {
    const isHex = (this.#peek(2) | 0x20) === 0x78
    const offset = isHex ? 3 : 2
    let digits = 0
    while (digits < MAXIMUM_REFERENCE_DIGITS && this.#peek(offset + digits) !== SEMICOLON) digits++
    if (digits === 0 || this.#peek(offset + digits) !== SEMICOLON) return false
    const value = this.#number(offset, digits, isHex ? 16 : 10)
    return value !== null && this.#yield(value, offset + digits + 1)
  }

  #number(offset: number, digits: number, base: 10 | 16): number | null {
    let value = 0
    for (let index = 0; index < digits; index++) {
      const digit = digitOf(this.#peek(offset + index))
      if (digit >= base) return null
      value = value * base + digit
    }
    return value
  }
}

function digitOf(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const lower = byte | 0x20
  return byte > 0 && lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : 99
}
