// Owns the one spelling that RFC 8785 gives a string: which characters are escaped and how, and the
// order of member names. Must never repair: a lone surrogate or another escape is a refusal.
// Source: RFC 8785 sections 3.2.2.2 and 3.2.3.

const LONE_SURROGATE = /\p{Surrogate}/u

/** Escape letter for a byte that RFC 8785 writes as backslash and letter, else 0. */
const SHORT_ESCAPE = new Uint8Array(128)
/** The byte that a backslash and this letter stand for, else 255. */
const ESCAPED_BYTE = new Uint8Array(128).fill(255)

for (const [byte, letter] of [
  [0x08, 'b'],
  [0x09, 't'],
  [0x0a, 'n'],
  [0x0c, 'f'],
  [0x0d, 'r'],
  [0x22, '"'],
  [0x5c, '\\'],
] as const) {
  SHORT_ESCAPE[byte] = letter.charCodeAt(0)
  ESCAPED_BYTE[letter.charCodeAt(0)] = byte
}

export function shortEscape(byte: number): number {
  return SHORT_ESCAPE[byte] as number
}

export function escapedByte(letter: number): number {
  return ESCAPED_BYTE[letter] ?? 255
}

/** Value of a lower-case hex digit, else -1. RFC 8785 writes no other. */
export function lowerHexValue(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  if (byte >= 0x61 && byte <= 0x66) return byte - 0x57
  return -1
}

export function hasLoneSurrogate(text: string): boolean {
  return LONE_SURROGATE.test(text)
}

/** Order of UTF-16 code units, which differs from the order of code points above U+FFFF. */
export function compareUtf16(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0
}
