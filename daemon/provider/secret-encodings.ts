// Owns the encodings of secret bytes that the injection and the reflection scan need, from bytes to bytes:
// a JavaScript string of a secret could never be wiped. Must never build one.
// Source: RFC 4648 §4, §5, §6, §8; RFC 2781 (UTF-16).

import { wipeableBytes } from '../../protocol/digest.js'

export type Base64Alphabet = 'base64' | 'base64url'

const COMMON = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
const ALPHABETS: Record<Base64Alphabet, Uint8Array> = {
  base64: Buffer.from(`${COMMON}+/`, 'latin1'),
  base64url: Buffer.from(`${COMMON}-_`, 'latin1'),
}
const PADDING = 0x3d

/** Base64 with padding, as RFC 7617 wants it. */
export function base64Bytes(bytes: Uint8Array): Uint8Array {
  const encoded = wipeableBytes(Math.ceil(bytes.length / 3) * 4).fill(PADDING)
  encoded.set(sextets(bytes, 0, Math.ceil((bytes.length * 8) / 6), 'base64'))
  return encoded
}

/**
 * The part of a base64 text that these bytes alone decide, when `offset` (0, 1, 2) unknown bytes precede
 * them in a group of three: it stands in the encoding of any text that holds the bytes.
 */
export function base64Core(bytes: Uint8Array, offset: 0 | 1 | 2, alphabet: Base64Alphabet): Uint8Array {
  const shifted = wipeableBytes(offset + bytes.length)
  shifted.set(bytes, offset)
  const core = sextets(shifted, Math.ceil((offset * 8) / 6), Math.floor((shifted.length * 8) / 6), alphabet)
  shifted.fill(0)
  return core
}

export type Letters = 'lower' | 'upper'
const BASE32: Record<Letters, Uint8Array> = {
  lower: Buffer.from('abcdefghijklmnopqrstuvwxyz234567', 'latin1'),
  upper: Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZ234567', 'latin1'),
}

/** The same of base32, where 0 to 4 unknown bytes precede in a group of five. */
export function base32Core(bytes: Uint8Array, offset: 0 | 1 | 2 | 3 | 4, letters: Letters): Uint8Array {
  const alphabet = BASE32[letters]
  const from = Math.ceil((offset * 8) / 5)
  const to = Math.floor(((offset + bytes.length) * 8) / 5)
  const core = wipeableBytes(Math.max(0, to - from))
  for (let index = 0; index < core.length; index++) {
    const bit = (from + index) * 5 - offset * 8
    const pair = ((bytes[bit >> 3] ?? 0) << 8) | (bytes[(bit >> 3) + 1] ?? 0)
    core[index] = alphabet[(pair >> (11 - (bit & 7))) & 31] as number
  }
  return core
}

/** ASCII as UTF-16: each byte with a zero byte behind it (little endian) or before it. */
export function utf16Bytes(bytes: Uint8Array, order: 'big' | 'little'): Uint8Array {
  const encoded = wipeableBytes(bytes.length * 2)
  bytes.forEach((byte, index) => {
    encoded[index * 2 + (order === 'big' ? 1 : 0)] = byte
  })
  return encoded
}

/** Some bytes written as several, as a second encoder would. */
export function rewrittenBytes(bytes: Uint8Array, rewritten: ReadonlyMap<number, string>): Uint8Array {
  const parts = Array.from(bytes, byte => rewritten.get(byte))
  const length = parts.reduce((sum, part) => sum + (part?.length ?? 1), 0)
  const encoded = wipeableBytes(length)
  let at = 0
  parts.forEach((part, index) => {
    if (part === undefined) encoded[at++] = bytes[index] as number
    else for (const letter of part) encoded[at++] = letter.charCodeAt(0)
  })
  return encoded
}

export function hexBytes(bytes: Uint8Array, letters: Letters): Uint8Array {
  const digits = Buffer.from(letters === 'lower' ? '0123456789abcdef' : '0123456789ABCDEF', 'latin1')
  const encoded = wipeableBytes(bytes.length * 2)
  bytes.forEach((byte, index) => {
    encoded[index * 2] = digits[byte >> 4] as number
    encoded[index * 2 + 1] = digits[byte & 15] as number
  })
  return encoded
}

/** ASCII letters in lower case, all else kept: how a header name arrives at the caller. */
export function lowerCaseBytes(bytes: Uint8Array): Uint8Array {
  const lowered = wipeableBytes(bytes.length)
  bytes.forEach((byte, index) => {
    lowered[index] = byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte
  })
  return lowered
}

/** Characters `from`..`to` of the base64 text, six bits each; bits past the end are zero. */
function sextets(bytes: Uint8Array, from: number, to: number, alphabet: Base64Alphabet): Uint8Array {
  const letters = ALPHABETS[alphabet]
  const encoded = wipeableBytes(Math.max(0, to - from))
  for (let index = 0; index < encoded.length; index++) {
    const bit = (from + index) * 6
    const pair = ((bytes[bit >> 3] ?? 0) << 8) | (bytes[(bit >> 3) + 1] ?? 0)
    encoded[index] = letters[(pair >> (10 - (bit & 7))) & 63] as number
  }
  return encoded
}
