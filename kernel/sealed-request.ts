// Owns: how the exact execute request rests in the store: encrypted under a key of its own operation.
// Must never: leave the request readable beside its key, or open under another operation's id.
// Source: RFC 8439 (ChaCha20-Poly1305), RFC 5869 (HKDF).
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { decode } from '../protocol/codec.js'
import { BrokerError } from '../protocol/errors.js'
import { BrokerExecuteRequest } from '../protocol/execute-request.js'
import { KEY_BYTES } from '../protocol/limits.js'
import type { SealedRequest } from './operation.js'

const CIPHER = 'chacha20-poly1305'
const NONCE_BYTES = 12
const TAG_BYTES = 16
const CONTEXT = 'chio.kernel-retained-request.v1'

/** Encrypts the canonical bytes of a request. */
export function sealRequest(
  storageKey: Uint8Array,
  operationId: string,
  canonical: Uint8Array,
): SealedRequest {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, operationKey(storageKey, operationId), nonce, {
    authTagLength: TAG_BYTES,
  })
  cipher.setAAD(associatedData(operationId), { plaintextLength: canonical.length })
  const ciphertext = Buffer.concat([cipher.update(canonical), cipher.final(), cipher.getAuthTag()])
  return { nonce, ciphertext }
}

/** @throws BrokerError `storage` when key, operation or bytes do not belong together. */
export function openRequest(
  storageKey: Uint8Array,
  operationId: string,
  sealed: SealedRequest,
): BrokerExecuteRequest {
  const { ciphertext, nonce } = sealed
  const text = ciphertext.subarray(0, Math.max(0, ciphertext.length - TAG_BYTES))
  const decipher = createDecipheriv(CIPHER, operationKey(storageKey, operationId), nonce, {
    authTagLength: TAG_BYTES,
  })
  try {
    decipher.setAAD(associatedData(operationId), { plaintextLength: text.length })
    decipher.setAuthTag(ciphertext.subarray(text.length))
    const canonical = Buffer.concat([decipher.update(text), decipher.final()])
    return decode(BrokerExecuteRequest, canonical, 'retained request')
  } catch (cause) {
    throw new BrokerError(
      'storage',
      'retained request refused: expected one sealed for this operation under this storage key',
      { cause },
    )
  }
}

/** A key an operation, so that no nonce can ever be used twice under one key. */
function operationKey(storageKey: Uint8Array, operationId: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', storageKey, '', `${CONTEXT}\0${operationId}`, KEY_BYTES))
}

function associatedData(operationId: string): Uint8Array {
  return Buffer.from(`${CONTEXT}\0${operationId}`, 'utf8')
}
