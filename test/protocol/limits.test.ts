// The limits are pinned, so that none is widened in passing; each is tested at and one over where it is applied.
import { expect, test } from 'vitest'
import * as limits from '../../protocol/limits.js'

test('the limits that the wire fixes keep their values', () => {
  expect(limits).toMatchObject({
    FRAME_PREFIX_BYTES: 4,
    MAXIMUM_REQUEST_FRAME_BYTES: 8_388_608,
    MAXIMUM_RESPONSE_FRAME_BYTES: 33_554_432,
    MAXIMUM_PREAUTHENTICATION_BYTES: 16_777_216,
    LARGE_FRAME_BYTES: 1_048_576,
    MAXIMUM_JSON_DEPTH: 64,
    MAXIMUM_INTEGER: 9_007_199_254_740_991,
    MAXIMUM_IDENTIFIER_BYTES: 512,
    MAXIMUM_AUTHORIZATION_BYTES: 65_536,
    MAXIMUM_BODY_BYTES: 524_288,
    MAXIMUM_RESPONSE_BYTES: 2_097_152,
    MAXIMUM_HEADER_COUNT: 64,
    MAXIMUM_HEADER_NAME_BYTES: 128,
    MAXIMUM_HEADER_VALUE_BYTES: 8_192,
    MAXIMUM_PATH_AND_QUERY_BYTES: 16_384,
    MAXIMUM_TIMEOUT_MS: 120_000,
    MINIMUM_NONCE_BYTES: 16,
    MAXIMUM_NONCE_BYTES: 128,
    MAXIMUM_NONCE_TTL_SECONDS: 300,
    MAXIMUM_QUOTAS: 8,
    MAXIMUM_REVOCATION_SET_MEMBERS: 128,
    MAXIMUM_SOURCE_RECEIPT_IDS: 64,
    MAXIMUM_SECRET_BYTES: 65_536,
    MAXIMUM_APPROVALS: 32,
    MAXIMUM_PREPARED_LIFETIME_MS: 30_000,
    MAXIMUM_SOCKET_PATH_BYTES: 100,
  })
})

test('a whole body and a whole response really fit their frames', () => {
  // A byte costs four characters at most, and its characters are bytes of the outer array: ASCII digits and
  // commas, at most three characters each.
  const innerText = (bytes: number): number => bytes * 4
  const outerText = (characters: number): number => characters * 3
  expect(outerText(innerText(limits.MAXIMUM_BODY_BYTES))).toBeLessThan(limits.MAXIMUM_REQUEST_FRAME_BYTES)
  expect(outerText(innerText(limits.MAXIMUM_RESPONSE_BYTES))).toBeLessThan(
    limits.MAXIMUM_RESPONSE_FRAME_BYTES,
  )
})

test('every limit has a unit in its name', () => {
  const unit =
    /_(BYTES|MS|SECONDS|COUNT|DEPTH|DIGITS|KEYS|SIGNATURES|ADDRESSES|APPROVALS|QUOTAS|MEMBERS|IDS|INTEGER|((CONNECTIONS|CALLS|LOG_LINES|ACCEPTS)(_PER_(UID|CONNECTOR|SECOND|TURN))?))$/
  expect(Object.keys(limits).filter(name => !unit.test(name))).toEqual([])
})
