// Owns how a hash of the log is written: 0x and 64 lower-case hex digits, told apart by this from the plain digest of
// a document. Must never be compared as text with one.
// Source: the hash text of checkpoints and proofs; the inclusion proof's schema.
import { pattern } from './codec.js'
import { fromHex, toHex } from './digest.js'

/** A root or a sibling: `0x` and 64 lower-case hex digits. */
export const logHash = () =>
  pattern(/^0x[0-9a-f]{64}$/, 66, 'a hash of the log: 0x and 64 lower-case hex digits')

export function logHashText(hash: Uint8Array): string {
  return `0x${toHex(hash)}`
}

/** @param text as the codec admits it. */
export function logHashBytes(text: string): Uint8Array {
  return fromHex(text.slice(2))
}
