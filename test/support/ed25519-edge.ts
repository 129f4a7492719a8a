// Owns the making of our edge vectors for ed25519: signatures and keys that careless verifiers accept. They are
// made from a fixed seed with point arithmetic and frozen in test/vectors/ed25519-edge.json, together with the
// twelve published cases. A test makes them again and compares.
// Source: RFC 8032; Chalkias, Garillot, Nikolaenko, "Taming the many EdDSAs" (2020), appendix.
import { createHash } from 'node:crypto'
import { hashes, Point, utils } from '@noble/ed25519'

export interface EdgeCase {
  readonly id: string
  readonly publicKey: string
  readonly message: string
  readonly signature: string
  /** `admitted`, or the code that refuses the key. */
  readonly key: 'admitted' | 'weak_key' | 'invalid_key'
  /** Whether a verifier under an admitted key accepts. */
  readonly valid: boolean
}

const sha512 = (...parts: readonly Uint8Array[]): Uint8Array => {
  const hash = createHash('sha512')
  for (const part of parts) hash.update(part)
  return new Uint8Array(hash.digest())
}
hashes.sha512 = message => sha512(message) as Uint8Array<ArrayBuffer>

const L = Point.CURVE().n
const P = Point.CURVE().p
const SEED = new Uint8Array(32).fill(7)
const MESSAGE = new TextEncoder().encode('one exact signed request')

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')
const fromLittleEndian = (bytes: Uint8Array): bigint => BigInt(`0x${hex(Uint8Array.from(bytes).reverse())}`)
const littleEndian = (value: bigint): Uint8Array =>
  Uint8Array.from(Buffer.from(value.toString(16).padStart(64, '0'), 'hex')).reverse()

/** A point of order eight; its multiples are all eight points of small order. */
const TORSION = Point.fromHex('c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a')
const torsion = (multiple: number): Point => {
  let point = Point.ZERO
  for (let i = 0; i < multiple; i++) point = point.add(TORSION)
  return point
}

const signer = utils.getExtendedPublicKey(SEED)
const COMMITMENT_SCALAR = fromLittleEndian(sha512(Uint8Array.of(1))) % L

/** Solves S = r + k·a for any bytes of R, also wrong ones. */
function signatureFor(commitment: Uint8Array, scalar: bigint, publicKey: Uint8Array): Uint8Array {
  const k = fromLittleEndian(sha512(commitment, publicKey, MESSAGE)) % L
  return joined(commitment, (scalar + k * signer.scalar) % L)
}

const joined = (commitment: Uint8Array, s: bigint): Uint8Array =>
  Uint8Array.from([...commitment, ...littleEndian(s)])

function edge(id: string, signature: Uint8Array, verdict: Partial<EdgeCase> = {}): EdgeCase {
  return {
    id,
    publicKey: hex(signer.pointBytes),
    message: hex(MESSAGE),
    signature: hex(signature),
    key: 'admitted',
    valid: false,
    ...verdict,
  }
}

/** Spellings of S and R under a good key. */
function signatureCases(): EdgeCase[] {
  const key = signer.pointBytes
  const commitment = Point.BASE.multiply(COMMITMENT_SCALAR).toBytes()
  const good = signatureFor(commitment, COMMITMENT_SCALAR, key)
  const s = fromLittleEndian(good.subarray(32))
  const identity = Point.ZERO.toBytes()
  return [
    edge('good', good, { valid: true }),
    edge('s_plus_l', joined(commitment, s + L)),
    edge('s_plus_8l', joined(commitment, s + 8n * L)),
    edge('s_is_l', joined(commitment, L)),
    edge('s_is_l_minus_1', joined(commitment, L - 1n)),
    edge('s_top_bit_set', joined(commitment, s | (1n << 255n))),
    edge('s_all_ones', joined(commitment, (1n << 256n) - 1n)),
    edge('s_zero', joined(commitment, 0n)),
    edge('s_negated', joined(commitment, L - s)),
    edge(
      'r_sign_flipped',
      joined(
        Uint8Array.from(commitment, (b, i) => (i === 31 ? b ^ 0x80 : b)),
        s,
      ),
    ),
    edge('all_zero', new Uint8Array(64)),
    edge('r_identity', signatureFor(identity, 0n, key)),
    edge('r_identity_not_canonical', signatureFor(littleEndian(P + 1n), 0n, key)),
    edge('r_identity_sign_bit', signatureFor(littleEndian(1n | (1n << 255n)), 0n, key)),
    edge('r_not_on_curve', signatureFor(littleEndian(2n), COMMITMENT_SCALAR, key)),
    ...[1, 2, 3, 4, 5, 6, 7].flatMap(multiple => torsionCommitments(multiple, key)),
  ]
}

/** R of small order, and R of mixed order: where cofactored and cofactorless verifiers part. */
function torsionCommitments(multiple: number, key: Uint8Array): EdgeCase[] {
  const small = torsion(multiple).toBytes()
  const mixed = Point.BASE.multiply(COMMITMENT_SCALAR).add(torsion(multiple)).toBytes()
  return [
    edge(`r_small_order_${multiple}`, signatureFor(small, 0n, key)),
    edge(`r_mixed_order_${multiple}`, signatureFor(mixed, COMMITMENT_SCALAR, key)),
  ]
}

/** Keys that a verifier must not take, each with a signature that some verifier accepts under it. */
function keyCases(): EdgeCase[] {
  const torsionKeys = [0, 1, 2, 3, 4, 5, 6, 7].flatMap(multiple => [
    keyCase(`key_small_order_${multiple}`, torsion(multiple).toBytes(), 'weak_key'),
    ...(multiple === 0 ? [] : [mixedKey(multiple)]),
  ])
  const invalid: [string, bigint][] = [
    ['key_identity_plus_p', P + 1n],
    ['key_zero_y_plus_p', P],
    ['key_minus_one_plus_p', P - 1n + (1n << 255n)],
    ['key_largest_y', (1n << 255n) - 1n],
    ['key_all_ones', (1n << 256n) - 1n],
    ['key_identity_sign_bit', 1n | (1n << 255n)],
    ['key_not_on_curve', 2n],
    ['key_y_3_plus_p', P + 3n],
  ]
  return [...torsionKeys, ...invalid.map(([id, y]) => keyCase(id, littleEndian(y), 'invalid_key'))]
}

function keyCase(id: string, publicKey: Uint8Array, key: 'weak_key' | 'invalid_key'): EdgeCase {
  const commitment = Point.BASE.multiply(COMMITMENT_SCALAR).toBytes()
  return edge(id, joined(commitment, COMMITMENT_SCALAR), { publicKey: hex(publicKey), key })
}

function mixedKey(multiple: number): EdgeCase {
  const publicKey = Point.fromBytes(signer.pointBytes).add(torsion(multiple)).toBytes()
  const commitment = Point.BASE.multiply(COMMITMENT_SCALAR).toBytes()
  const signature = signatureFor(commitment, COMMITMENT_SCALAR, publicKey)
  return edge(`key_mixed_order_${multiple}`, signature, { publicKey: hex(publicKey), key: 'weak_key' })
}

/** Every case of our own. */
export function edgeCases(): readonly EdgeCase[] {
  return [...signatureCases(), ...keyCases()]
}
