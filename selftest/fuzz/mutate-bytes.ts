// Owns blind changes of bytes: flips, cuts, repeats, foreign pieces, and the numbers at which limits stand.
// Knows no format; what knows one is beside it.
import type { Random } from './random.js'
import { CANARY } from './target.js'

const SIGNS = Buffer.from('0 9"\\,:;[]{}-+.eEx%&=\r\n\t\0\x7f\x80\xff\xc3', 'latin1')
const PIECES = ['null', '[]', '{}', '-0', '1e9', '\\u0000', '"__proto__":1,', '\r\n', '\r\n\r\n', '0\r\n\r\n']
  .concat('\ud83d\ude00', '\ufeff', '\u2028', CANARY, '00', '255', '256', 'true')
  .map(text => Buffer.from(text))
const LENGTHS = [0, 1, 2, 3, 127, 128, 255, 256, 65_535, 65_536, 0x7fffffff, 0x80000000, 0xffffffff]

type Change = (bytes: Buffer, other: Uint8Array, random: Random) => Buffer

const CHANGES: readonly Change[] = [
  (bytes, _other, random) => put(bytes, random, Uint8Array.of(random.below(256)), 1),
  (bytes, _other, random) => put(bytes, random, Uint8Array.of(random.pick([...SIGNS])), 1),
  (bytes, _other, random) => flipBit(bytes, random),
  (bytes, _other, random) => put(bytes, random, random.bytes(1 + random.below(4)), random.below(3)),
  (bytes, _other, random) => put(bytes, random, random.pick(PIECES), random.below(3)),
  (bytes, _other, random) => put(bytes, random, new Uint8Array(0), 1 + random.below(12)),
  (bytes, _other, random) => put(bytes, random, new Uint8Array(0), 1 + random.below(bytes.length)),
  (bytes, _other, random) => put(bytes, random, slice(bytes, random), 0),
  (bytes, other, random) => put(bytes, random, slice(other, random), random.below(16)),
  (bytes, _other, random) => bytes.subarray(0, random.below(bytes.length + 1)),
  (bytes, _other, random) => putLength(bytes, random),
]

/** One to four changes. */
export function mutateBytes(base: Uint8Array, other: Uint8Array, random: Random): Uint8Array {
  let bytes = Buffer.from(base)
  const rounds = 1 + random.below(random.once(3) ? 4 : 1)
  for (let round = 0; round < rounds; round++)
    bytes = random.pick(CHANGES)(bytes, other, random) as typeof bytes
  return bytes
}

/** Puts a piece in the place of `removed` bytes somewhere. */
function put(bytes: Buffer, random: Random, piece: Uint8Array, removed: number): Buffer {
  const at = random.below(bytes.length + 1)
  return Buffer.concat([bytes.subarray(0, at), piece, bytes.subarray(at + removed)])
}

function slice(bytes: Uint8Array, random: Random): Uint8Array {
  const from = random.below(bytes.length)
  return bytes.subarray(from, from + 1 + random.below(random.once(4) ? bytes.length : 32))
}

function flipBit(bytes: Buffer, random: Random): Buffer {
  const flipped = Buffer.from(bytes)
  const at = random.below(flipped.length)
  if (flipped.length > 0) flipped[at] = (flipped[at] as number) ^ (1 << random.below(8))
  return flipped
}

/** Four bytes, big endian: a length at or near a limit. */
function putLength(bytes: Buffer, random: Random): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(random.once(3) ? (bytes.length + random.below(9) - 4) >>> 0 : random.pick(LENGTHS))
  const at = random.once(2) ? 0 : random.below(bytes.length + 1)
  return Buffer.concat([bytes.subarray(0, at), length, bytes.subarray(at + 4)])
}
