// The dispatch authorization of caller delivery: the order of its checks, and every bound at and one over.
import { describe, expect, test } from 'vitest'
import {
  CallerAuthorization,
  type CallerAuthorizationBody,
  callerAuthorizationDigest,
  type CallerPins,
  canonicalAuthorization,
  claimableAt,
  decodeCallerAuthorization,
  signCallerAuthorization,
  verifyForClaim,
  verifyHistorical,
} from '../../protocol/caller-authorization.js'
import { callerDeliveryCheckOf, callerDeliveryRefusal } from '../../protocol/caller-delivery-refusal.js'
import { encode } from '../../protocol/codec.js'
import { sha256Hex, toHex } from '../../protocol/digest.js'
import { BrokerError } from '../../protocol/errors.js'
import { checkOf, sortedText } from '../support/caller-checks.js'
import {
  authorizationBody,
  CALLER_BEGIN_UNIX_MS as BEGIN,
  CALLER_END_UNIX_MS as END,
  ownAuthorization,
} from '../support/own-caller.js'
import { OWN_KEYS } from '../support/own-request.js'

/** The neutral point: small order. */
const WEAK_KEY = `01${'00'.repeat(31)}`
const [kernel, executor] = [OWN_KEYS.authority, OWN_KEYS.caller]
const body = authorizationBody()
const pins: CallerPins = {
  executor: body.executor,
  invocation: body.invocation,
  kernelKey: kernel.publicKey,
}
const known = verifyHistorical(ownAuthorization, pins)

/** An authorization that the kernel signed whatever its members say, as only a kernel of another make would. */
function forged(changed: object): CallerAuthorization {
  const authorization = { ...body, ...changed } as CallerAuthorizationBody
  const signature = toHex(kernel.sign(Buffer.from(sortedText(authorization))))
  return { authorization, signature }
}

describe('a dispatch authorization', () => {
  test('is history for ever and claimable from its first millisecond to the one before its last', () => {
    expect(known.digest).toBe(callerAuthorizationDigest(ownAuthorization))
    expect(known.digest).toBe(sha256Hex(encode(CallerAuthorization, ownAuthorization)))
    const moments = [BEGIN - 1, BEGIN, END - 1, END].map(now =>
      checkOf(() => verifyForClaim(ownAuthorization, pins, now)),
    )
    expect(moments).toEqual(['expired', 'none', 'none', 'expired'])
    expect(claimableAt(known, BEGIN).claimableAtUnixMs).toBe(BEGIN)
  })

  test.each([
    ['kernelKey', { kernelKey: executor.publicKey }],
    ['executor executor_id', { executor: { ...pins.executor, executor_id: 'another' } }],
    ['executor public_key', { executor: { ...pins.executor, public_key: kernel.publicKey } }],
    ['executor key_epoch', { executor: { ...pins.executor, key_epoch: 2 } }],
    ...Object.entries(pins.invocation).map(
      ([member, value]) =>
        [
          `invocation ${member}`,
          { invocation: { ...pins.invocation, [member]: value.replace(/.$/, '0') } },
        ] as const,
    ),
  ] as const)('for another %s is refused by its binding', (_member, changed) => {
    expect(checkOf(() => verifyHistorical(ownAuthorization, { ...pins, ...changed }))).toBe('binding')
  })

  test('with several faults is refused by shape, binding, signature, time, in this order', () => {
    const broken = { ...ownAuthorization, signature: '00'.repeat(64) }
    const other = { ...pins, invocation: { ...pins.invocation, tool_name: 'read' } }
    const misshapen = { ...broken, authorization: { ...body, expires_at_unix_ms: BEGIN } }
    expect([
      checkOf(() => verifyForClaim(misshapen, other, END)),
      checkOf(() => verifyForClaim(broken, other, END)),
      checkOf(() => verifyForClaim(broken, pins, END)),
      checkOf(() => verifyForClaim(ownAuthorization, pins, END)),
    ]).toEqual(['shape', 'binding', 'signature', 'expired'])
  })

  const attempt = body.committed.dispatch_commit.provider_attempt
  const withAttempt = (changed: object) => ({
    committed: {
      ...body.committed,
      dispatch_commit: {
        ...body.committed.dispatch_commit,
        provider_attempt: { ...attempt, ...changed },
      },
    },
  })
  test.each([
    ['an empty interval', { expires_at_unix_ms: BEGIN }],
    ['a moment of 0', { not_before_unix_ms: 0 }],
    ['a moment beyond 2^53-1', { expires_at_unix_ms: Number.MAX_SAFE_INTEGER + 1 }],
    ['an epoch of 0', { executor: { ...body.executor, key_epoch: 0 } }],
    ['the attempt of another operation', withAttempt({ operation_id: '00'.repeat(32) })],
    ['the transport of another server', withAttempt({ transport_id: 'caller-report:other' })],
    ['a transport of another kind', withAttempt({ transport_id: 'chio-broker' })],
    ['another epoch than its executor', withAttempt({ transport_key_epoch: 2 })],
    ['a weak kernel key', { kernel_public_key: WEAK_KEY }],
    ['a weak executor key', { executor: { ...body.executor, public_key: WEAK_KEY } }],
    ['no attempt', { committed: { ...body.committed, dispatch_commit: null } }],
    ['an identifier of 513 bytes', { invocation: { ...body.invocation, tool_name: 'x'.repeat(513) } }],
    ['an identifier with outer space', { invocation: { ...body.invocation, tool_name: ' x' } }],
  ])('with %s is refused by its shape', (_fault, changed) => {
    const signed = forged(changed)
    expect(checkOf(() => verifyHistorical(signed, pins))).toBe('shape')
    const bytes = Buffer.from(JSON.stringify(signed))
    expect(checkOf(() => decodeCallerAuthorization(bytes))).toBe('shape')
    expect(checkOf(() => signCallerAuthorization({ ...body, ...changed } as never, kernel))).toMatch(
      /shape|RangeError/,
    )
  })

  test('at the limit of every number and identifier is in order, over either transport', () => {
    const long = 'x'.repeat(512)
    const server_id = 'ä'.repeat(244)
    const transport_id = `native-caller-report:v1:${server_id}`
    expect(Buffer.byteLength(transport_id)).toBe(512)
    const largest: CallerAuthorizationBody = {
      ...body,
      ...withAttempt({ transport_id, transport_key_epoch: Number.MAX_SAFE_INTEGER }),
      executor: { ...body.executor, executor_id: long, key_epoch: Number.MAX_SAFE_INTEGER },
      expires_at_unix_ms: Number.MAX_SAFE_INTEGER,
      invocation: { ...body.invocation, server_id, tool_name: long },
    }
    const signed = signCallerAuthorization(largest, kernel)
    const own = { ...pins, executor: largest.executor, invocation: largest.invocation }
    expect(checkOf(() => verifyForClaim(signed, own, BEGIN))).toBe('none')
    expect(decodeCallerAuthorization(canonicalAuthorization(signed))).toEqual(signed)
  })

  test('is signed by the kernel that it names, and by no other', () => {
    expect(() => signCallerAuthorization(body, executor)).toThrow(RangeError)
  })

  test('is refused over 32,768 bytes before anything in it is read', () => {
    const over = (length: number) => {
      try {
        return decodeCallerAuthorization(new Uint8Array(length).fill(0x20))
      } catch (error) {
        return (error as Error).message
      }
    }
    expect(over(32_769)).toBe('dispatch authorization refused: expected at most 32768 bytes, got 32769')
    expect(over(32_768)).not.toContain('at most 32768')
  })

  test('read from other bytes than the canonical ones is refused by its shape', () => {
    const bytes = canonicalAuthorization(ownAuthorization)
    expect(decodeCallerAuthorization(bytes)).toEqual(ownAuthorization)
    expect(checkOf(() => decodeCallerAuthorization(Buffer.concat([bytes, Buffer.from('\n')])))).toBe('shape')
    const known = JSON.stringify({ ...ownAuthorization, note: 1 })
    expect(checkOf(() => decodeCallerAuthorization(Buffer.from(known)))).toBe('shape')
  })
})

test('only a refusal of caller delivery names a check', () => {
  expect(callerDeliveryCheckOf(callerDeliveryRefusal('expired', 'x'))).toBe('expired')
  expect(callerDeliveryCheckOf(new BrokerError('conflict', 'x'))).toBeUndefined()
  expect(callerDeliveryCheckOf(new Error('x'))).toBeUndefined()
})
