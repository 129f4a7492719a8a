// Owns what is signed: the canonical `{"body":<body>,"domain":"<domain>\u0000"}`. The domain keeps a signature
// of one kind of document from ever being one of another. Must never take a trusted key from a document.
// The codecs read canonical bytes only, so the body that is encoded here again is, byte for byte, the body
// that was received (a property test holds them to it).
// Source: the broker protocol's signature input, section 0.

import { type Codec, encode, literal, object, publicKeyHex, signatureHex } from './codec.js'
import { assertDomain, toHex } from './digest.js'
import { type PublicKey, type SigningKey, verifySignature } from './keys.js'

export interface SignedEnvelope<B> {
  readonly algorithm: 'ed25519'
  readonly body: B
  readonly signature: string
}

export interface SignerEnvelope<B> extends SignedEnvelope<B> {
  /** Names the key; it is not trusted because it is named here. */
  readonly signer: string
}

/** Signature input. The domain is given without its final NUL, the body as canonical bytes. */
export function domainMessage(domain: string, bodyCanonicalBytes: Uint8Array): Uint8Array {
  assertDomain(domain)
  return Buffer.concat([
    Buffer.from('{"body":', 'latin1'),
    bodyCanonicalBytes,
    Buffer.from(`,"domain":"${domain}\\u0000"}`, 'latin1'),
  ])
}

/** @returns the signature as 128 hex digits. */
export function signBody(domain: string, bodyCanonicalBytes: Uint8Array, key: SigningKey): string {
  return toHex(key.sign(domainMessage(domain, bodyCanonicalBytes)))
}

export function verifyBody(
  domain: string,
  bodyCanonicalBytes: Uint8Array,
  signature: string,
  pinned: PublicKey,
): boolean {
  return verifySignature(pinned, domainMessage(domain, bodyCanonicalBytes), signature)
}

/** Codec of `{algorithm, body, signature}`. */
export function signedEnvelope<B>(body: Codec<B>) {
  return object({ algorithm: literal('ed25519'), body, signature: signatureHex() })
}

/** Codec of `{algorithm, body, signature, signer}`. */
export function signerEnvelope<B>(body: Codec<B>) {
  return object({ algorithm: literal('ed25519'), body, signature: signatureHex(), signer: publicKeyHex() })
}

export function signEnvelope<B>(
  domain: string,
  codec: Codec<B>,
  body: B,
  key: SigningKey,
): SignedEnvelope<B> {
  return { algorithm: 'ed25519', body, signature: signBody(domain, encode(codec, body), key) }
}

/** Verifies with a pinned key. Says nothing about what the body claims. */
export function verifyEnvelope<B>(
  domain: string,
  codec: Codec<B>,
  envelope: SignedEnvelope<B>,
  pinned: PublicKey,
): boolean {
  return verifyBody(domain, encode(codec, envelope.body), envelope.signature, pinned)
}
