// A signature covers one body under one domain; both envelopes read, write and verify.
import { describe, expect, test } from 'vitest'
import { canonicalBytes } from '../../protocol/canonical.js'
import { decode, encode, identifier, integer, object } from '../../protocol/codec.js'
import { toHex } from '../../protocol/digest.js'
import { parseStrictJson } from '../../protocol/json.js'
import { admitPublicKey, signingKey, verifySignature, verifyStrictly } from '../../protocol/keys.js'
import {
  domainMessage,
  signBody,
  signedEnvelope,
  signEnvelope,
  signerEnvelope,
  verifyBody,
  verifyEnvelope,
} from '../../protocol/signing.js'
import { describeVectors, readVectors } from '../support/vectors.js'

const DOMAIN = 'chio.test-document.v1'
const Body = object({ name: identifier(), count: integer({ min: 0, max: 10 }) })
const Signed = signedEnvelope(Body)
const key = signingKey(new Uint8Array(32).fill(1))
const other = signingKey(new Uint8Array(32).fill(2))
const body = { name: 'one', count: 1 }

describe('domainMessage', () => {
  test('is the canonical object of body and domain, with the final NUL escaped', () => {
    const message = domainMessage(DOMAIN, encode(Body, body))
    const expected = canonicalBytes({ body, domain: `${DOMAIN}\0` })
    expect(toHex(message)).toBe(toHex(expected))
  })

  test.each([`${DOMAIN}\0`, '', 'a"b'])('refuses the domain %j', domain => {
    expect(() => domainMessage(domain, encode(Body, body))).toThrow(RangeError)
  })
})

describe('an envelope', () => {
  const envelope = signEnvelope(DOMAIN, Body, body, key)

  test('verifies under the pinned key after it was read again', () => {
    const read = decode(Signed, encode(Signed, envelope), 'document')
    expect(read).toEqual(envelope)
    expect(verifyEnvelope(DOMAIN, Body, read, key.publicKey)).toBe(true)
  })

  test('does not verify under another key, another domain or another body', () => {
    expect(verifyEnvelope(DOMAIN, Body, envelope, other.publicKey)).toBe(false)
    expect(verifyEnvelope('chio.test-document.v2', Body, envelope, key.publicKey)).toBe(false)
    expect(verifyEnvelope(DOMAIN, Body, { ...envelope, body: { ...body, count: 2 } }, key.publicKey)).toBe(
      false,
    )
  })

  test('names its signer in the other form without being trusted for it', () => {
    const forged = { ...signEnvelope(DOMAIN, Body, body, other), signer: key.publicKey }
    const read = decode(signerEnvelope(Body), encode(signerEnvelope(Body), forged), 'document')
    expect(read.signer).toBe(key.publicKey)
    expect(verifyEnvelope(DOMAIN, Body, read, key.publicKey)).toBe(false)
  })

  test.each(['ed25519ph', 'ED25519', 'p256'])('is refused with the algorithm %s', algorithm => {
    const text = Buffer.from(encode(Signed, envelope))
      .toString()
      .replace('"ed25519"', JSON.stringify(algorithm))
    expect(() => decode(Signed, Buffer.from(text), 'document')).toThrow(/"ed25519" in algorithm/)
  })

  test('signs the same bytes as its body alone', () => {
    expect(envelope.signature).toBe(signBody(DOMAIN, encode(Body, body), key))
    expect(verifyBody(DOMAIN, encode(Body, body), envelope.signature, key.publicKey)).toBe(true)
  })
})

interface SigningCase {
  readonly id: string
  readonly input_utf8?: string
  readonly input_json?: string
  readonly canonical_json?: string
  readonly public_key_hex: string
  readonly signature_hex: string
  readonly expected_verify: boolean
}

describeVectors('chio signing vectors', folder => {
  const vectors = readVectors<{
    json_cases: SigningCase[]
    utf8_cases: SigningCase[]
    signing_key_seed_hex: string
  }>(folder, 'chio/signing/v1.json')
  const signer = signingKey(Buffer.from(vectors.signing_key_seed_hex, 'hex'))

  test.each([...vectors.json_cases, ...vectors.utf8_cases].map(vector => [vector.id, vector] as const))(
    '%s',
    (_id, vector) => {
      const message = messageOf(vector)
      const publicKey = admitPublicKey(vector.public_key_hex, 'vector key')
      expect(publicKey).toBe(signer.publicKey)
      expect(verifySignature(publicKey, message, vector.signature_hex)).toBe(vector.expected_verify)
      expect(verifyStrictly(publicKey, message, vector.signature_hex)).toBe(vector.expected_verify)
      expect(toHex(signer.sign(message)) === vector.signature_hex).toBe(vector.expected_verify)
    },
  )

  function messageOf(vector: SigningCase): Uint8Array {
    if (vector.input_json === undefined) return Buffer.from(vector.input_utf8 ?? '')
    const bytes = canonicalBytes(parseStrictJson(Buffer.from(vector.input_json), 'vector'))
    expect(Buffer.from(bytes).toString()).toBe(vector.canonical_json)
    return bytes
  }
})
