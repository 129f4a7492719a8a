// Owns encryption at rest: ChaCha20-Poly1305, a fresh nonce before and the tag after the ciphertext, everything
// that the content belongs to as associated data. Keys are derived, one a purpose and a content.
// Must never: reveal why opening failed. A wrong key and a changed byte are one answer.
// Source: RFC 8439; RFC 5869 (HKDF); the broker protocol's blob encryption.
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto'
import { BrokerError } from '../protocol/errors.js'
import { KEY_BYTES } from '../protocol/limits.js'

const ALGORITHM = 'chacha20-poly1305'
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Derives a key for one purpose. @param context ends what the key is for; NUL separates it from the purpose. */
export function deriveKey(masterKey: Uint8Array, purpose: string, context: Uint8Array): Uint8Array {
  const info = Buffer.concat([Buffer.from(`${purpose}\0`, 'utf8'), context])
  return new Uint8Array(hkdfSync('sha256', masterKey, new Uint8Array(0), info, KEY_BYTES))
}

export function keyedDigest(key: Uint8Array, message: Uint8Array): Uint8Array {
  return new Uint8Array(createHmac('sha256', key).update(message).digest())
}

export function seal(key: Uint8Array, plaintext: Uint8Array, associated: Uint8Array): Uint8Array {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES })
  cipher.setAAD(associated, { plaintextLength: plaintext.length })
  const ciphertext = cipher.update(plaintext)
  return Buffer.concat([nonce, ciphertext, cipher.final(), cipher.getAuthTag()])
}

/** @throws BrokerError `custody`. */
export function unseal(key: Uint8Array, sealed: Uint8Array, associated: Uint8Array): Uint8Array {
  if (sealed.length < NONCE_BYTES + TAG_BYTES) throw unreadable()
  const nonce = sealed.subarray(0, NONCE_BYTES)
  const ciphertext = sealed.subarray(NONCE_BYTES, sealed.length - TAG_BYTES)
  const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES })
  decipher.setAAD(associated, { plaintextLength: ciphertext.length })
  decipher.setAuthTag(sealed.subarray(sealed.length - TAG_BYTES))
  const plaintext = decipher.update(ciphertext)
  try {
    decipher.final()
    return plaintext
  } catch {
    plaintext.fill(0)
    throw unreadable()
  }
}

function unreadable(): BrokerError {
  return new BrokerError(
    'custody',
    'sealed record refused: expected the bytes that were stored under this master key, got others',
  )
}
