// Owns the reading of the escapes that web programs write: percent (RFC 3986 §2.1), JSON and JavaScript
// (RFC 8259 §7), HTML character references; also where the sign of an escape was escaped once more. One
// escape at a time over the received bytes, so that no decoded copy of a secret ever exists. What is not one
// of these stands for itself.

const PERCENT = 0x25
const AMPERSAND = 0x26
const BACKSLASH = 0x5c
const SEMICOLON = 0x3b
/** Without the ampersand. */
const NAMED: readonly (readonly [reference: Uint8Array, byte: number])[] = [
  [Buffer.from('amp;'), 0x26],
  [Buffer.from('lt;'), 0x3c],
  [Buffer.from('gt;'), 0x3e],
  [Buffer.from('quot;'), 0x22],
  [Buffer.from('apos;'), 0x27],
]
/** `&#x0000041;`: leading zeros are allowed, endless ones are not worth following. */
const MAXIMUM_REFERENCE_DIGITS = 8
const NOT_A_BYTE = 256

/** A set of bytes: 1 where a byte belongs to it. */
export type ByteSet = Uint8Array

/** Signs escaped more often than this are not followed: `%252541` is escaped twice more than `%41`. */
export const MAXIMUM_DOUBLINGS = 3

/**
 * One escape as a number, so that a pass over megabytes allocates nothing: its length in the low six
 * bits, above them the byte it stands for (256 when it stands for none).
 */
export type PackedEscape = number
export const NO_ESCAPE: PackedEscape = 0
const LENGTH_BITS = 6
export const lengthOf = (escape: PackedEscape): number => escape & 63
export const unitOf = (escape: PackedEscape): number => escape >> LENGTH_BITS

export function byteSet(bytes: Iterable<number>): ByteSet {
  const set = new Uint8Array(256)
  for (const byte of bytes) set[byte] = 1
  return set
}

const SIGNS = byteSet([PERCENT, BACKSLASH, AMPERSAND])

/**
 * The escape that opens at a position, or `NO_ESCAPE`. With doublings a sign that is itself escaped, as often or
 * less, counts as one sign: `%2541`, `\\u0041`, `&amp;#65;`.
 */
export function escapeAt(bytes: Uint8Array, at: number, doublings = 0): PackedEscape {
  const sign = bytes[at] as number
  let escape = NO_ESCAPE
  // The longest reading wins: `%2525` is a percent sign where `%252541` is a letter.
  for (let times = doublingsAt(bytes, at, doublings); escape === NO_ESCAPE && times >= 0; times--) {
    const skipped = times * (DOUBLING[sign]?.length ?? 0)
    escape = escapeOf(bytes, at + skipped, sign)
    if (escape !== NO_ESCAPE) return escape + skipped
  }
  return NO_ESCAPE
}

/** The last byte of the sign takes the place of the sign. */
function escapeOf(bytes: Uint8Array, at: number, sign: number): PackedEscape {
  switch (sign) {
    case PERCENT:
      return packed(numberAt(bytes, at + 1, 2, 16), 3)
    case BACKSLASH:
      return scriptEscape(bytes, at)
    case AMPERSAND:
      return bytes[at + 1] === 0x23 ? numericReference(bytes, at) : namedReference(bytes, at)
    default:
      return NO_ESCAPE
  }
}

/** How a sign is written when it is escaped: `%25`, `\\`, `&amp;`. Here without the sign itself. */
const DOUBLING: Readonly<Record<number, Uint8Array>> = {
  [PERCENT]: Buffer.from('25'),
  [BACKSLASH]: Buffer.from('\\'),
  [AMPERSAND]: Buffer.from('amp;'),
}

/** How often the sign here is escaped again, at most so often. */
function doublingsAt(bytes: Uint8Array, at: number, maximum: number): number {
  const doubling = maximum === 0 ? undefined : DOUBLING[bytes[at] as number]
  if (doubling === undefined) return 0
  let times = 0
  while (times < maximum && standsAt(bytes, at + 1 + times * doubling.length, doubling)) times++
  return times
}

/** Signs that are escaped so many times more: without one of these no doubled escape stands in a text. */
export function doubledSigns(times: number): Buffer[] {
  return Object.entries(DOUBLING).map(([sign, doubling]) =>
    Buffer.concat([Uint8Array.of(Number(sign)), ...Array.from({ length: times }, () => doubling)]),
  )
}

function standsAt(bytes: Uint8Array, at: number, wanted: Uint8Array): boolean {
  for (let index = 0; index < wanted.length; index++) if (bytes[at + index] !== wanted[index]) return false
  return true
}

/**
 * The signs whose escapes stand for a wanted byte somewhere. Ordinary text has many escapes and hardly one
 * of them: `\"`, `\n`, `%20` and `&amp;` hide no token.
 */
export function signsHiding(bytes: Uint8Array, wanted: ByteSet, doublings = 0): number[] {
  const found = new Set<number>()
  for (let at = 0; at < bytes.length; at++) {
    const sign = bytes[at] as number
    if (SIGNS[sign] === 0) continue
    const escape = escapeAt(bytes, at, doublings)
    if (escape !== NO_ESCAPE && wanted[unitOf(escape)] === 1) found.add(sign)
  }
  return [...found]
}

function packed(value: number, length: number): PackedEscape {
  if (value < 0) return NO_ESCAPE
  return ((value > 255 ? NOT_A_BYTE : value) << LENGTH_BITS) | length
}

function scriptEscape(bytes: Uint8Array, at: number): PackedEscape {
  const kind = bytes[at + 1]
  if (kind === 0x75) return packed(numberAt(bytes, at + 2, 4, 16), 6)
  if (kind === 0x78) return packed(numberAt(bytes, at + 2, 2, 16), 4)
  const itself = kind === BACKSLASH || kind === 0x22 || kind === 0x27 || kind === 0x2f
  return itself ? packed(kind, 2) : NO_ESCAPE
}

function namedReference(bytes: Uint8Array, at: number): PackedEscape {
  const named = NAMED.find(([reference]) => standsAt(bytes, at + 1, reference))
  return named === undefined ? NO_ESCAPE : packed(named[1], named[0].length + 1)
}

function numericReference(bytes: Uint8Array, at: number): PackedEscape {
  const isHex = bytes[at + 2] === 0x78 || bytes[at + 2] === 0x58
  const start = at + (isHex ? 3 : 2)
  let digits = 0
  while (digits < MAXIMUM_REFERENCE_DIGITS && bytes[start + digits] !== SEMICOLON) digits++
  if (digits === 0 || bytes[start + digits] !== SEMICOLON) return NO_ESCAPE
  return packed(numberAt(bytes, start, digits, isHex ? 16 : 10), start + digits + 1 - at)
}

/** The number of exactly `digits` digits, or -1. */
function numberAt(bytes: Uint8Array, start: number, digits: number, base: 10 | 16): number {
  let value = 0
  for (let index = start; index < start + digits; index++) {
    const digit = digitOf(bytes[index] ?? 0)
    if (digit >= base) return -1
    value = value * base + digit
  }
  return value
}

function digitOf(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const lower = byte | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : 99
}
