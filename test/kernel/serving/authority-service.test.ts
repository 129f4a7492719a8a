// The authority's socket as the broker uses it: signed questions, several at once on one connection.
import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../../native/clock.js'
import {
  type AuthorityOperation,
  type AuthorityQuestion,
  type AuthorityResult,
  type HoldQuery,
  SignedAuthorityRequest,
  SignedAuthorityResponse,
  signAuthorityRequest,
  verifyAuthorityResponse,
} from '../../../protocol/authority-rpc.js'
import { decode, encode } from '../../../protocol/codec.js'
import { grantRevocationId, revocationAuthorityDomain } from '../../../protocol/hold.js'
import type { SigningKey } from '../../../protocol/keys.js'
import { RpcConnection } from '../../../system/rpc-connection.js'
import {
  failureOf,
  receiptOf,
  registered,
  type RegisteredOperation,
  reserved,
  started,
  UNKNOWN,
} from '../../support/brokered-operation.js'
import { AUDIENCE, issueGrant, makeTestKernel, revokeGrant, type TestKernel } from '../../support/kernel.js'

let kernel: TestKernel
let rpc: RpcConnection
beforeEach(async () => {
  kernel = await makeTestKernel()
  rpc = connect()
})
afterEach(async () => {
  rpc.close()
  await kernel.remove()
})

function connect(): RpcConnection {
  return new RpcConnection({
    clock: systemClock,
    keyOf: body => decode(SignedAuthorityResponse, body, 'authority answer').body.requestId,
    maximumFrameBytes: 65_536,
    ownerUid: process.geteuid?.() ?? 0,
    path: kernel.config.authoritySocketPath,
    socketGid: null,
  })
}

interface Asking {
  readonly key?: SigningKey
  readonly ageSeconds?: number
}

async function ask(
  operation: AuthorityOperation,
  { ageSeconds = 0, key = kernel.broker }: Asking = {},
): Promise<AuthorityResult> {
  const nowUnixSeconds = Math.floor(Date.now() / 1_000)
  const requestId = randomBytes(32).toString('hex')
  const request = signAuthorityRequest(
    { issuedAtUnixSeconds: nowUnixSeconds - ageSeconds, operation, requestId },
    key,
  )
  const deadline = systemClock.bootNs() + 5_000_000_000n
  const body = await rpc.request(requestId, encode(SignedAuthorityRequest, request), deadline)
  const response = decode(SignedAuthorityResponse, body, 'authority answer')
  const pins = { authority: kernel.running.publicKeys.authority, clockSkewSeconds: 5 }
  return verifyAuthorityResponse(response, request, pins, nowUnixSeconds).body.result
}

const CAPABILITIES: AuthorityOperation = { kind: 'capabilities', request: {} }

function holdOf(
  { answer, registration }: RegisteredOperation,
  given: Partial<HoldQuery> = {},
): AuthorityOperation {
  const { brokerCapabilityId, ids, parentCapabilityId, quotas } = registration
  return {
    kind: 'query_execution_hold',
    request: {
      captureEventId: ids.captureEventId,
      holdId: ids.holdId,
      operationId: ids.operationId,
      quotas,
      revocationIds: [brokerCapabilityId, parentCapabilityId, answer.capability.body.revocationId].sort(),
      ...given,
    },
  }
}

describe('the conversation', () => {
  test('answers many questions of one connection, each for itself', async () => {
    const answers = await Promise.all(Array.from({ length: 100 }, () => ask(CAPABILITIES)))
    const expected = {
      kind: 'capabilities',
      response: {
        atomicMultiKeyHolds: true,
        combinedCaptureAndRevocation: true,
        profile: 'authoritative_hold_event',
        queryById: true,
        sharedRevocationWriteDomain: true,
      },
    }
    expect(answers).toEqual(answers.map(() => expected))
  })

  test.each([
    ['that another key signed', () => ({ key: kernel.caller })],
    ['older than the clock skew', () => ({ ageSeconds: 7 })],
    ['from the future', () => ({ ageSeconds: -7 })],
  ])('closes without an answer on a question %s, and serves on', async (_what, asking) => {
    await expect(ask(CAPABILITIES, asking())).rejects.toMatchObject({ code: 'authority_unavailable' })
    expect((await ask(CAPABILITIES)).kind).toBe('capabilities')
  })

  test('closes on bytes that are no question, and serves on', async () => {
    const deadline = systemClock.bootNs() + 5_000_000_000n
    await expect(rpc.request('a', Buffer.from('{}'), deadline)).rejects.toMatchObject({
      code: 'authority_unavailable',
    })
    expect((await ask(CAPABILITIES)).kind).toBe('capabilities')
  })

  test('serves nobody but the uid of the broker', async () => {
    await kernel.restart({ brokerUid: 61_001 })
    rpc.close()
    rpc = connect()
    await expect(ask(CAPABILITIES)).rejects.toMatchObject({ code: 'authority_unavailable' })
    expect(kernel.events).toContainEqual(
      expect.objectContaining({ event: 'connection_refused', reason: 'not_admitted' }),
    )
  })
})

describe('live parent and revocation', () => {
  const parent = (capabilityId: string, given = {}): AuthorityOperation => ({
    kind: 'verify_live_parent',
    request: { audience: AUDIENCE, capabilityId, subject: kernel.caller.publicKey, ...given },
  })
  const revocationOf = (...revocationIds: string[]): AuthorityOperation => ({
    kind: 'check_broker_revocation',
    request: { revocationIds },
  })

  test('confirms a grant that lives, without ancestors', async () => {
    const grant = await issueGrant(kernel)
    const answer = await ask(parent(grant.grantId))
    expect(answer).toMatchObject({
      kind: 'live_parent',
      response: {
        capabilityId: grant.grantId,
        delegationAncestorIds: [],
        expiresAtUnixSeconds: grant.expiresAtUnixSeconds,
        subject: grant.callerPublicKey,
      },
    })
  })

  test('rejects a grant that is unknown, foreign, of another audience or revoked', async () => {
    const grant = await issueGrant(kernel)
    const rejected = { kind: 'rejected', response: { code: 'authorization_denied' } }
    expect(await ask(parent('grant-of-nobody'))).toEqual(rejected)
    expect(await ask(parent(grant.grantId, { subject: kernel.broker.publicKey }))).toEqual(rejected)
    expect(await ask(parent(grant.grantId, { audience: 'another' }))).toEqual(rejected)
    await revokeGrant(kernel, grant.grantId)
    expect(await ask(parent(grant.grantId))).toEqual(rejected)
  })

  test('sees a revocation at the next question, under a higher commit index', async () => {
    const grant = await issueGrant(kernel)
    const ids = [grant.grantId, 'broker-capability-x', grantRevocationId(grant.grantId)]
    const before = await ask(revocationOf(...ids))
    const { commitIndex } = await revokeGrant(kernel, grant.grantId)
    const after = await ask(revocationOf(...ids))
    const authorityDomain = revocationAuthorityDomain(kernel.running.publicKeys.authority)
    expect(before).toMatchObject({ kind: 'revocation', response: { authorityDomain, revoked: false } })
    expect(after).toMatchObject({
      kind: 'revocation',
      response: { authorityDomain, commitIndex, revoked: true },
    })
    expect(await ask(revocationOf(grantRevocationId(grant.grantId)))).toMatchObject({
      response: { revoked: true },
    })
  })
})

test('several questions are answered in their order, each as if asked alone, under one signature', async () => {
  const grant = await issueGrant(kernel)
  const operation = await started(kernel, grant)
  const asked: AuthorityQuestion[] = [
    {
      kind: 'verify_live_parent',
      request: { audience: AUDIENCE, capabilityId: 'grant-of-nobody', subject: kernel.caller.publicKey },
    },
    { kind: 'check_broker_revocation', request: { revocationIds: [grant.grantId] } },
    holdOf(operation) as AuthorityQuestion,
  ]
  const answer = await ask({ kind: 'questions', request: { questions: asked } })
  if (answer.kind !== 'answers') throw new Error(`expected answers, got ${answer.kind}`)
  expect(answer.response.answers).toMatchObject([
    { kind: 'rejected', response: { code: 'authorization_denied' } },
    { kind: 'revocation', response: { revoked: false } },
    { kind: 'hold', response: { captured: operation.captured } },
  ])
})

describe('the hold', () => {
  test('is held before the start and captured after it, with the commits of the start', async () => {
    const grant = await issueGrant(kernel)
    expect(await ask(holdOf(await registered(kernel, grant)))).toEqual({ kind: 'hold', response: 'held' })
    const operation = await started(kernel, grant)
    expect(await ask(holdOf(operation))).toEqual({
      kind: 'hold',
      response: { captured: operation.captured },
    })
  })

  test('is reversed when the operation was taken back, unknown when nobody reserved it', async () => {
    const operation = await registered(kernel, await issueGrant(kernel))
    await kernel.client.call('cancel', { operationId: operation.operationId })
    expect(await ask(holdOf(operation))).toEqual({ kind: 'hold', response: 'reversed' })
    for (const strange of [{ holdId: 'broker-hold-x' }, { operationId: 'f'.repeat(64) }]) {
      expect(await ask(holdOf(operation, strange))).toEqual({ kind: 'hold', response: 'unknown' })
    }
  })

  test('is denied for other quotas, another capture event or another revocation set', async () => {
    const operation = await started(kernel, await issueGrant(kernel))
    const others: Partial<HoldQuery>[] = [
      { captureEventId: 'broker-capture-x' },
      { quotas: operation.registration.quotas.slice(1) },
      { quotas: operation.registration.quotas.map(quota => ({ ...quota, maximumExecutions: 2 })) },
      { revocationIds: [operation.registration.parentCapabilityId] },
    ]
    for (const given of others) {
      expect(await ask(holdOf(operation, given))).toEqual({ kind: 'hold', response: 'denied' })
    }
  })

  test('permits nothing more once the operation has ended, however it ended', async () => {
    const grant = await issueGrant(kernel)
    const [delivered, doubtful] = [await started(kernel, grant), await started(kernel, grant)]
    const finalize = (operation: typeof delivered, record: ReturnType<typeof receiptOf>) =>
      kernel.client.call('finalize', { operationId: operation.operationId, record })
    await finalize(delivered, receiptOf(kernel, delivered))
    await finalize(doubtful, failureOf(kernel, doubtful, UNKNOWN))
    for (const operation of [delivered, doubtful]) {
      expect(await ask(holdOf(operation))).toEqual({ kind: 'hold', response: 'denied' })
    }
  })

  test('stays captured when the grant is revoked: revocation is a question of its own', async () => {
    const grant = await issueGrant(kernel)
    const operation = await started(kernel, grant)
    await revokeGrant(kernel, grant.grantId)
    expect(await ask(holdOf(operation))).toMatchObject({ response: { captured: operation.captured } })
  })

  test('changes nothing by being asked for', async () => {
    const grant = await issueGrant(kernel)
    const { answer, operationId } = await reserved(kernel, grant)
    const before = await kernel.client.call('inspect', { operationId })
    const query = {
      captureEventId: 'broker-capture-x',
      holdId: 'broker-hold-x',
      operationId,
      quotas: answer.quotas,
      revocationIds: [grant.grantId],
    }
    await ask({ kind: 'query_execution_hold', request: query })
    expect(await kernel.client.call('inspect', { operationId })).toEqual(before)
  })
})
