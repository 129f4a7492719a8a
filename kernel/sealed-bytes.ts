// Owns: how bytes rest in the kernel's store: encrypted under a key of their own purpose and operation.
// Must never: leave them readable beside their key, or open under another operation's id or another purpose.
// Source: RFC 8439 (ChaCha20-Poly1305), RFC 5869 (HKDF).
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { KEY_BYTES } from '../protocol/limits.js'
import type { SealedRequest } from './operation/operation.js'

const CIPHER = 'chacha20-poly1305'
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** What bytes are sealed for. */
export interface SealPurpose {
  /** A domain of its own for every kind of content. */
  readonly domain: string
  readonly operationId: string
}

export function sealBytes(storageKey: Uint8Array, purpose: SealPurpose, plain: Uint8Array): SealedRequest {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, keyOf(storageKey, purpose), nonce, { authTagLength: TAG_BYTES })
  cipher.setAAD(associatedData(purpose), { plaintextLength: plain.length })
  const ciphertext = Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()])
  return { nonce, ciphertext }
}

/** @throws Error when key, purpose or bytes do not belong together; whoever asked says it in its own words. */
export function openBytes(storageKey: Uint8Array, purpose: SealPurpose, sealed: SealedRequest): Uint8Array {
  const { ciphertext, nonce } = sealed
  const text = ciphertext.subarray(0, Math.max(0, ciphertext.length - TAG_BYTES))
  const decipher = createDecipheriv(CIPHER, keyOf(storageKey, purpose), nonce, { authTagLength: TAG_BYTES })
  decipher.setAAD(associatedData(purpose), { plaintextLength: text.length })
  decipher.setAuthTag(ciphertext.subarray(text.length))
  return Buffer.concat([decipher.update(text), decipher.final()])
}

/** A key for each purpose and operation, so that no nonce can ever be used twice under one key. */
function keyOf(storageKey: Uint8Array, purpose: SealPurpose): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', storageKey, '', textOf(purpose), KEY_BYTES))
}

function associatedData(purpose: SealPurpose): Uint8Array {
  return Buffer.from(textOf(purpose), 'utf8')
}

function textOf({ domain, operationId }: SealPurpose): string {
  return `${domain}\0${operationId}`
}
