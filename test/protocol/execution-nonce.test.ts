// The checks of a presented execution nonce, in their one order, and the bytes of a nonce apart from a frame.
import { describe, expect, test } from 'vitest'
import { encode } from '../../protocol/codec.js'
import {
  type ExecutionNonce,
  type NonceContext,
  SignedExecutionNonce,
  signExecutionNonce,
  verifyNonce,
} from '../../protocol/execution-nonce.js'
import {
  decodeHistoricalNonce,
  decodeNonce,
  decodeNonceReservation,
  encodeNonceReservation,
  isHistoricalNonceSigned,
} from '../../protocol/execution-nonce-encoding.js'
import { canonicalBytes } from '../../protocol/canonical.js'
import type { JsonValue } from '../../protocol/json.js'
import { admitPublicKey, signingKey } from '../../protocol/keys.js'
import { MAXIMUM_NONCE_RESERVATION_BYTES } from '../../protocol/limits.js'
import { describeVectors, readVectors } from '../support/vectors.js'

const key = signingKey(new Uint8Array(32).fill(7))
const operationId = '0a'.repeat(32)
const nonce: ExecutionNonce = {
  bound_to: {
    capability_id: 'grant',
    parameter_hash: '0b'.repeat(32),
    request_id: 'request',
    subject_id: 'subject',
    tool_name: 'execute',
    tool_server: 'server',
  },
  expires_at: 130,
  issued_at: 100,
  nonce_id: '0190a000-0000-7000-8000-000000000002',
  schema: 'chio.execution_nonce.v2',
}
const context: NonceContext = {
  boundTo: nonce.bound_to,
  issuer: key.publicKey,
  nowUnixSeconds: 110,
  operationId,
}
const foreign = { ...nonce.bound_to, request_id: 'another' }

const codeOf = (act: () => unknown): string => {
  try {
    act()
    return 'none'
  } catch (error) {
    return (error as { code: string }).code
  }
}
const judged = (given: Partial<ExecutionNonce>, seen: Partial<NonceContext> = {}, signature?: string) => {
  const signed = signExecutionNonce({ ...nonce, ...given }, operationId, key)
  const presented = signature === undefined ? signed : { ...signed, signature }
  return codeOf(() => verifyNonce(presented, { ...context, ...seen }))
}

describe('a presented nonce', () => {
  test('passes for its operation, its request and its time', () => {
    const signed = signExecutionNonce(nonce, operationId, key)
    expect(verifyNonce(signed, context)).toEqual({ operationId, signed })
  })

  test.each([
    ['window', { expires_at: 100 }, {}],
    ['window', { expires_at: 9_007_199_254_741 }, {}],
    ['not_yet_valid', {}, { nowUnixSeconds: 99 }],
    ['expired', {}, { nowUnixSeconds: 130 }],
    ['binding', {}, { boundTo: foreign }],
    ['signature', {}, { operationId: '0c'.repeat(32) }],
    ['signature', {}, { issuer: signingKey(new Uint8Array(32).fill(8)).publicKey }],
  ] as const)('is refused by its %s', (check, given, seen) => {
    expect(judged(given, seen)).toBe(`execution_nonce_${check}`)
  })

  test('lives from its first second to the one before its last', () => {
    expect([100, 129].map(nowUnixSeconds => judged({}, { nowUnixSeconds }))).toEqual(['none', 'none'])
  })

  test('with several faults is refused by the first in order', () => {
    const faults = [
      ['window', { given: { expires_at: 90 }, seen: { nowUnixSeconds: 95, boundTo: foreign } }],
      ['not_yet_valid', { given: {}, seen: { nowUnixSeconds: 95, boundTo: foreign } }],
      ['expired', { given: {}, seen: { nowUnixSeconds: 135, boundTo: foreign } }],
      ['binding', { given: {}, seen: { boundTo: foreign } }],
      ['signature', { given: {}, seen: {} }],
    ] as const
    for (const [check, { given, seen }] of faults) {
      expect(judged(given, seen, '00'.repeat(64))).toBe(`execution_nonce_${check}`)
    }
  })

  test('names the foreign member and its published name, and nothing of the nonce', () => {
    const signed = signExecutionNonce(nonce, operationId, key)
    expect(() => verifyNonce(signed, { ...context, boundTo: foreign })).toThrow(
      "urn:chio:error:kernel:execution-nonce-binding: execution nonce refused: expected one of this operation's request, by its request_id",
    )
  })
})

describe('the bytes of a nonce', () => {
  const bytes = encode(SignedExecutionNonce, signExecutionNonce(nonce, operationId, key))

  test('are read exactly', () => {
    expect(encode(SignedExecutionNonce, decodeNonce(bytes))).toEqual(bytes)
    expect(codeOf(() => decodeNonce(Buffer.concat([bytes, Buffer.from(' ')])))).toBe(
      'execution_nonce_encoding',
    )
    expect(codeOf(() => decodeNonce(new Uint8Array(MAXIMUM_NONCE_RESERVATION_BYTES + 1)))).toBe(
      'execution_nonce_encoding',
    )
  })

  test('of a reservation come back as they were', () => {
    const members = { issuer: key.publicKey, operation_id: operationId, signed_nonce: decodeNonce(bytes) }
    const reservation = encodeNonceReservation(members)
    expect(decodeNonceReservation(reservation)).toMatchObject(members)
    expect(codeOf(() => decodeNonceReservation(reservation.subarray(1)))).toBe('execution_nonce_encoding')
  })

  test('of a reservation with the longest members stay within their limit', () => {
    const long = 'x'.repeat(512)
    const bound_to = {
      ...nonce.bound_to,
      capability_id: long,
      request_id: long,
      subject_id: long,
      tool_name: long,
      tool_server: long,
    }
    const signed_nonce = signExecutionNonce({ ...nonce, bound_to }, operationId, key)
    const members = { issuer: key.publicKey, operation_id: operationId, signed_nonce }
    expect(encodeNonceReservation(members).length).toBeLessThan(MAXIMUM_NONCE_RESERVATION_BYTES)
  })
})

interface NonceVector {
  readonly issuer: string
  readonly v1: JsonValue
}

describeVectors('derived execution nonce, first profile', folder => {
  const vector = readVectors<NonceVector>(folder, 'derived/execution-nonce.json')
  const bytes = canonicalBytes(vector.v1)

  test('is read as history, and its signature still holds', () => {
    const historical = decodeHistoricalNonce(bytes)
    expect(isHistoricalNonceSigned(historical, admitPublicKey(vector.issuer, 'issuer'))).toBe(true)
    expect(isHistoricalNonceSigned(historical, key.publicKey)).toBe(false)
  })

  test('is refused for a fresh authority, by its schema', () => {
    expect(codeOf(() => decodeNonce(bytes))).toBe('execution_nonce_schema')
  })
})
