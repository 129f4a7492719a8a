// Owns ed25519 keys: admission of every public key that enters, signing, verifying. A key that admitPublicKey
// did not accept never reaches node:crypto, which accepts keys of small order.
// Accepted: canonical encoding, prime order (no torsion part). For these keys cofactored and cofactorless
// verification differ only in R, and R of small order is refused here too, so every verifier agrees.
// Source: RFC 8032; Chalkias, Garillot, Nikolaenko, "Taming the many EdDSAs" (2020).

import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'
import { hashes, Point, verify as nobleVerify } from '@noble/ed25519'
import { fromHex, toHex, wipe } from './digest.js'
import { BrokerError } from './errors.js'
import { KEY_BYTES, MAXIMUM_CACHED_KEYS, MAXIMUM_CACHED_SIGNATURES } from './limits.js'

hashes.sha512 = message => new Uint8Array(createHash('sha512').update(message).digest())

declare const admitted: unique symbol
/** 64 lower-case hex digits of a key that admitPublicKey accepted. */
export type PublicKey = string & { readonly [admitted]: true }

export interface SigningKey {
  readonly publicKey: PublicKey
  /** @returns 64 bytes. */
  sign(message: Uint8Array): Uint8Array
  /** Drops the key; every later use throws. */
  wipe(): void
}

const HEX_KEY = /^[0-9a-f]{64}$/
const HEX_SIGNATURE = /^[0-9a-f]{128}$/
const FOREIGN_ALGORITHM = /^(p256|p384|hybrid|ed25519|rsa|secp256k1)(:|$)/
const PKCS8_ED25519_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex')
const ALL_ZERO = '0'.repeat(64)

/** Admitted keys with their imported form, least recently used first. Nothing else ever gets in here. */
const imported = new Map<string, KeyObject>()

/**
 * Admits a public key: the one door through which keys of documents, pins and configuration enter.
 * @throws BrokerError unsupported_key, invalid_key or weak_key.
 */
export function admitPublicKey(hex: string, what: string): PublicKey {
  if (typeof hex !== 'string') throw new TypeError(`"${what}" expected a string, got ${typeof hex}`)
  admittedKey(hex, what)
  return hex as PublicKey
}

function admittedKey(hex: string, what: string): KeyObject {
  const known = imported.get(hex)
  if (known !== undefined) {
    imported.delete(hex)
    imported.set(hex, known)
    return known
  }
  const foreign = FOREIGN_ALGORITHM.exec(hex)?.[1]
  if (foreign !== undefined) {
    throw new BrokerError('unsupported_key', `${what} refused: expected a plain ed25519 key, got ${foreign}`)
  }
  if (!HEX_KEY.test(hex)) refuseKey('invalid_key', what, '64 lower-case hex digits', 'other text')
  assertPrimeOrder(hex, what)
  return remember(hex)
}

function assertPrimeOrder(hex: string, what: string): void {
  if (hex === ALL_ZERO) refuseKey('weak_key', what, 'a key', 'all zero')
  const point = pointOf(hex, what)
  if (point.isSmallOrder()) refuseKey('weak_key', what, 'a key of prime order', 'one of small order')
  if (!point.isTorsionFree()) refuseKey('weak_key', what, 'a key of prime order', 'one of mixed order')
}

function pointOf(hex: string, what: string): Point {
  let point: Point
  try {
    point = Point.fromHex(hex, false)
  } catch {
    return refuseKey('invalid_key', what, 'the canonical encoding of a curve point', 'other bytes')
  }
  if (point.toHex() !== hex) {
    refuseKey('invalid_key', what, 'the canonical encoding of a curve point', 'another encoding of one')
  }
  return point
}

function refuseKey(code: 'invalid_key' | 'weak_key', what: string, expected: string, got: string): never {
  throw new BrokerError(code, `${what} refused: expected ${expected}, got ${got}; give an ed25519 key`)
}

/** JWK import takes 9 microseconds, SPKI 100: measured. */
function remember(publicKey: string): KeyObject {
  const x = Buffer.from(publicKey, 'hex').toString('base64url')
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
  if (imported.size >= MAXIMUM_CACHED_KEYS) imported.delete(imported.keys().next().value as string)
  imported.set(publicKey, key)
  return key
}

/** Encodings of the eight points of small order, as R of a signature: refused, as strict verifiers do. */
const SMALL_ORDER_R: ReadonlySet<string> = new Set([
  '0100000000000000000000000000000000000000000000000000000000000000',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0000000000000000000000000000000000000000000000000000000000000080',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa',
])

/**
 * Verifies over exactly these bytes. False says nothing about why.
 * @throws BrokerError for a key that was branded without being admitted.
 */
export function verifySignature(publicKey: PublicKey, message: Uint8Array, signatureHex: string): boolean {
  if (!HEX_SIGNATURE.test(signatureHex) || SMALL_ORDER_R.has(signatureHex.slice(0, 64))) return false
  const key = admittedKey(publicKey, 'public key')
  const signature = fromHex(signatureHex)
  const digest = digestOfSigned(publicKey, message, signature)
  if (goodSignatures.has(digest)) return true
  const isGood = verify(null, message, key, signature)
  if (isGood) rememberGood(digest)
  return isGood
}

/**
 * SHA-256 of key, signature and message that were found good here, or made here, oldest first. The same document is
 * judged at register and again at prepare; the same bytes under the same key have one answer, and it costs 100
 * microseconds to find. Only this: times, pins and everything else that a caller compares are compared every time.
 */
const goodSignatures = new Set<string>()

/** Key and signature have one length each, so that no two triples share their bytes. */
function digestOfSigned(publicKey: PublicKey, message: Uint8Array, signature: Uint8Array): string {
  const hash = createHash('sha256').update(publicKey, 'latin1').update(signature)
  return hash.update(message).digest('base64')
}

function rememberGood(digest: string): void {
  if (goodSignatures.size >= MAXIMUM_CACHED_SIGNATURES) {
    goodSignatures.delete(goodSignatures.keys().next().value as string)
  }
  goodSignatures.add(digest)
}

/** Second opinion by another implementation; slower by ten. Same answer as verifySignature on every input. */
export function verifyStrictly(publicKey: PublicKey, message: Uint8Array, signatureHex: string): boolean {
  admittedKey(publicKey, 'public key')
  if (!HEX_SIGNATURE.test(signatureHex)) return false
  try {
    const commitment = Point.fromHex(signatureHex.slice(0, 64), false)
    // Cofactored verification ignores a torsion part of R; node:crypto does not.
    if (commitment.isSmallOrder() || !commitment.isTorsionFree()) return false
    return nobleVerify(fromHex(signatureHex), message, fromHex(publicKey), { zip215: false })
  } catch {
    return false
  }
}

/**
 * Makes a signing key from a seed. The seed stays the caller's, to be wiped there.
 * @param seed32 32 bytes (RFC 8032 section 5.1.5).
 */
export function signingKey(seed32: Uint8Array): SigningKey {
  if (!(seed32 instanceof Uint8Array)) throw new TypeError('"seed32" expected a Uint8Array')
  if (seed32.length !== KEY_BYTES) {
    throw new RangeError(`"seed32" expected ${KEY_BYTES} bytes, got ${seed32.length} bytes`)
  }
  let key: KeyObject | undefined = importSeed(seed32)
  const publicKey = admitPublicKey(publicHex(key), 'own public key')
  return {
    publicKey,
    sign(message) {
      if (key === undefined)
        throw new BrokerError('custody', 'signing refused: expected a key, got a wiped one')
      const signature = new Uint8Array(sign(null, message, key))
      rememberGood(digestOfSigned(publicKey, message, signature))
      return signature
    },
    wipe() {
      key = undefined
    },
  }
}

function importSeed(seed: Uint8Array): KeyObject {
  const der = Buffer.alloc(PKCS8_ED25519_PREFIX.length + KEY_BYTES)
  der.set(PKCS8_ED25519_PREFIX)
  der.set(seed, PKCS8_ED25519_PREFIX.length)
  try {
    return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
  } finally {
    wipe(der)
  }
}

function publicHex(key: KeyObject): string {
  const { x } = createPublicKey(key).export({ format: 'jwk' })
  return toHex(Buffer.from(x as string, 'base64url'))
}
