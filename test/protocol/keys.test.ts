// Public keys are admitted once, by name; two implementations agree on every signature under admitted keys.
import { createPublicKey, verify } from 'node:crypto'
import { verify as nobleVerify } from '@noble/ed25519'
import { describe, expect, test } from 'vitest'
import { toHex } from '../../protocol/digest.js'
import { BrokerError } from '../../protocol/errors.js'
import {
  admitPublicKey,
  type PublicKey,
  signingKey,
  verifySignature,
  verifyStrictly,
} from '../../protocol/keys.js'
import { MAXIMUM_CACHED_SIGNATURES } from '../../protocol/limits.js'
import { fullCount } from '../support/counts.js'
import { type EdgeCase, edgeCases } from '../support/ed25519-edge.js'
import { OWN_VECTORS, readVectors } from '../support/vectors.js'

const frozen = readVectors<{ own: EdgeCase[]; published: EdgeCase[] }>(OWN_VECTORS, 'ed25519-edge.json')
const every = [...frozen.own, ...frozen.published]
const bytes = (hex: string): Uint8Array => new Uint8Array(Buffer.from(hex, 'hex'))

function refusal(hex: string): string {
  try {
    admitPublicKey(hex, 'a key')
    return 'admitted'
  } catch (error) {
    return error instanceof BrokerError ? error.code : 'another error'
  }
}

test('the frozen edge cases are made again, byte for byte', () => {
  expect(edgeCases()).toEqual(frozen.own)
  expect(frozen.published).toHaveLength(12)
})

describe('admission of a public key', () => {
  test.each(every.map(edge => [edge.id, edge] as const))('judges the key of %s', (_id, edge) => {
    expect(refusal(edge.publicKey)).toBe(edge.key)
  })

  test.each([
    ['all zero', '0'.repeat(64), 'weak_key'],
    ['upper case', toHex(new Uint8Array(32).fill(0xab)).toUpperCase(), 'invalid_key'],
    ['63 digits', 'a'.repeat(63), 'invalid_key'],
    ['65 digits', 'a'.repeat(65), 'invalid_key'],
    ['an empty string', '', 'invalid_key'],
    ['a final line feed', `${'a'.repeat(64)}\n`, 'invalid_key'],
    ['P-256', `p256:${'0'.repeat(130)}`, 'unsupported_key'],
    ['P-384', `p384:${'0'.repeat(194)}`, 'unsupported_key'],
    ['a hybrid', 'hybrid:x', 'unsupported_key'],
    ['ed25519 with a prefix', `ed25519:${'a'.repeat(64)}`, 'unsupported_key'],
  ])('refuses %s by name', (_what, hex, code) => {
    expect(refusal(hex)).toBe(code)
  })

  test('says what it refused without repeating it', () => {
    expect(() => admitPublicKey('0'.repeat(64), 'issuer')).toThrow(/^issuer refused: .*all zero/)
  })

  test('is not bypassed by a brand that was never given', () => {
    const weak = frozen.own.find(edge => edge.id === 'key_small_order_0') as EdgeCase
    for (const check of [verifySignature, verifyStrictly]) {
      expect(() => check(weak.publicKey as PublicKey, bytes(weak.message), weak.signature)).toThrow(
        BrokerError,
      )
    }
    expect(refusal(weak.publicKey)).toBe('weak_key')
  })
})

describe('verification under an admitted key', () => {
  const admitted = every.filter(edge => edge.key === 'admitted')

  test.each(admitted.map(edge => [edge.id, edge] as const))('agrees on %s', (_id, edge) => {
    const key = admitPublicKey(edge.publicKey, 'a key')
    const message = bytes(edge.message)
    expect(verifySignature(key, message, edge.signature)).toBe(edge.valid)
    expect(verifyStrictly(key, message, edge.signature)).toBe(edge.valid)
  })

  test('has at least one case where the bare libraries disagree, so that agreement is earned', () => {
    const parted = admitted.filter(edge => bareNode(edge) !== bareNoble(edge))
    expect(parted.map(edge => edge.id)).toContain('r_mixed_order_1')
  })

  test('agrees for every single bit of a good signature turned over', () => {
    const good = frozen.own.find(edge => edge.id === 'good') as EdgeCase
    const key = admitPublicKey(good.publicKey, 'a key')
    const step = 512 / fullCount(64, 512)
    for (let bit = 0; bit < 512; bit += step) {
      const signature = bytes(good.signature)
      signature[bit >> 3] = (signature[bit >> 3] as number) ^ (1 << (bit & 7))
      expect(verifySignature(key, bytes(good.message), toHex(signature))).toBe(false)
      expect(verifyStrictly(key, bytes(good.message), toHex(signature))).toBe(false)
    }
  })

  test.each(['', 'ab', '0'.repeat(127), '0'.repeat(130), 'G'.repeat(128)])(
    'refuses the signature spelling "%s"',
    signature => {
      const key = admitPublicKey((frozen.own[0] as EdgeCase).publicKey, 'a key')
      expect(verifySignature(key, new Uint8Array(1), signature)).toBe(false)
      expect(verifyStrictly(key, new Uint8Array(1), signature)).toBe(false)
    },
  )

  test('refuses the upper-case spelling of a good signature', () => {
    const good = frozen.own.find(edge => edge.id === 'good') as EdgeCase
    const key = admitPublicKey(good.publicKey, 'a key')
    expect(verifySignature(key, bytes(good.message), good.signature.toUpperCase())).toBe(false)
  })
})

describe('a signing key', () => {
  // RFC 8032 section 7.1, tests 1 to 3: seed, public key, message, signature.
  test.each([
    [
      '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60',
      'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
      '',
      'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
    ],
    [
      '4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb',
      '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
      '72',
      '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
    ],
    [
      'c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7',
      'fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025',
      'af82',
      '6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a',
    ],
  ])('signs as RFC 8032 says for seed %s', (seed, publicKey, message, signature) => {
    const key = signingKey(bytes(seed))
    expect(key.publicKey).toBe(publicKey)
    expect(toHex(key.sign(bytes(message)))).toBe(signature)
    expect(verifySignature(key.publicKey, bytes(message), signature)).toBe(true)
    expect(verifyStrictly(key.publicKey, bytes(message), signature)).toBe(true)
  })

  test('takes exactly 32 bytes and leaves them to their owner', () => {
    expect(() => signingKey(new Uint8Array(31))).toThrow('"seed32" expected 32 bytes, got 31 bytes')
    expect(() => signingKey(new Uint8Array(33))).toThrow(RangeError)
    expect(() => signingKey('x'.repeat(32) as unknown as Uint8Array)).toThrow(TypeError)
    const seed = new Uint8Array(32).fill(3)
    signingKey(seed)
    expect(seed).toEqual(new Uint8Array(32).fill(3))
  })

  test('signs nothing after it was wiped', () => {
    const key = signingKey(new Uint8Array(32).fill(3))
    key.wipe()
    expect(() => key.sign(new Uint8Array(1))).toThrow(BrokerError)
  })

  test('prints nothing of the seed', () => {
    const key = signingKey(new Uint8Array(32).fill(0x5a))
    expect(JSON.stringify(key)).toBe(JSON.stringify({ publicKey: key.publicKey }))
  })
})

test('more keys than the cache holds are all still verified', () => {
  const count = fullCount(20, 1_200)
  const keys = Array.from({ length: count }, (_, i) =>
    signingKey(new Uint8Array(32).fill(i % 251).fill(i >> 8, 0, 2)),
  )
  const message = new Uint8Array(3)
  for (const key of keys) expect(verifySignature(key.publicKey, message, toHex(key.sign(message)))).toBe(true)
})

function bareNode(edge: EdgeCase): boolean {
  const x = Buffer.from(edge.publicKey, 'hex').toString('base64url')
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
  return verify(null, bytes(edge.message), key, bytes(edge.signature))
}

function bareNoble(edge: EdgeCase): boolean {
  return nobleVerify(bytes(edge.signature), bytes(edge.message), bytes(edge.publicKey), { zip215: false })
}

describe('a signature that was found good', () => {
  const key = signingKey(new Uint8Array(32).fill(41))
  const message = Buffer.from('the same bytes')
  const signature = toHex(key.sign(message))
  const flipped = (hex: string, at: number): string =>
    `${hex.slice(0, at)}${hex[at] === '0' ? '1' : '0'}${hex.slice(at + 1)}`

  test('is good again, and no other message, key or signature is for its sake', () => {
    const other = signingKey(new Uint8Array(32).fill(42)).publicKey
    for (let round = 0; round < 2; round++) {
      expect(verifySignature(key.publicKey, message, signature)).toBe(true)
      expect(verifySignature(key.publicKey, Buffer.from('the same byteS'), signature)).toBe(false)
      expect(verifySignature(other, message, signature)).toBe(false)
      for (const at of [0, 63, 64, 127])
        expect(verifySignature(key.publicKey, message, flipped(signature, at))).toBe(false)
    }
  })

  test('moves no byte from one part of what was signed to another', () => {
    const shorter = signature.slice(0, 126)
    expect(
      verifySignature(
        key.publicKey,
        Buffer.concat([Buffer.from(signature.slice(126), 'hex'), message]),
        shorter,
      ),
    ).toBe(false)
  })

  test('is good however many others came meanwhile', () => {
    for (let count = 0; count <= MAXIMUM_CACHED_SIGNATURES; count++) key.sign(Buffer.from(`${count}`))
    expect(verifySignature(key.publicKey, message, signature)).toBe(true)
  })
})
