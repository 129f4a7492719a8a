// SHA-256, hex with one spelling, and digests that a domain keeps apart.
import { describe, expect, test } from 'vitest'
import {
  domainDigestHex,
  domainPrefix,
  fromHex,
  sha256,
  sha256Hex,
  toHex,
  wipe,
} from '../../protocol/digest.js'
import { describeVectors, readVectors } from '../support/vectors.js'

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)

describe('sha256', () => {
  test('gives the published digest of "abc", in one part or in three', () => {
    const expected = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'
    expect(sha256Hex(utf8('abc'))).toBe(expected)
    expect(sha256Hex(utf8('a'), utf8(''), utf8('bc'))).toBe(expected)
    expect(toHex(sha256(utf8('abc')))).toBe(expected)
  })
})

describe('domainDigestHex', () => {
  test('puts the domain and one zero byte before the bytes', () => {
    expect(domainDigestHex('a.v1', utf8('x'))).toBe(sha256Hex(utf8('a.v1\0x')))
    expect([...domainPrefix('a')]).toEqual([97, 0])
  })

  test.each(['a.v1\0', '', 'A.v1', 'ä', 'a b'])('refuses the domain %j', domain => {
    expect(() => domainDigestHex(domain, utf8('x'))).toThrow(RangeError)
  })
})

describe('hex', () => {
  test('goes there and back for every byte', () => {
    const every = Uint8Array.from({ length: 256 }, (_, i) => i)
    expect(fromHex(toHex(every))).toEqual(every)
  })

  test('respects the window of a subarray', () => {
    expect(toHex(Uint8Array.of(1, 2, 3, 4).subarray(1, 3))).toBe('0203')
  })

  test.each(['0', 'AB', 'zz', '0x00', 'ab ', 'ab\n'])('refuses the spelling %j', hex => {
    expect(() => fromHex(hex)).toThrow(RangeError)
  })
})

test('wipe leaves nothing', () => {
  const bytes = Uint8Array.of(1, 2, 3)
  wipe(bytes)
  expect([...bytes]).toEqual([0, 0, 0])
})

interface HashCase {
  readonly id: string
  readonly input_utf8: string
  readonly sha256_hex: string
}

describeVectors('chio hashing vectors', folder => {
  const { cases } = readVectors<{ cases: HashCase[] }>(folder, 'chio/hashing/v1.json')
  const extra = readVectors<{ hashing: HashCase[] }>(folder, 'chio/draft-appendix-extra.json').hashing
  test.each([...cases, ...extra].map(hash => [hash.id, hash] as const))('%s', (_id, hash) => {
    expect(sha256Hex(utf8(hash.input_utf8))).toBe(hash.sha256_hex)
  })
})
