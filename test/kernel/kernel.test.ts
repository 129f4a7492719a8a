// The kernel's operations, asked over its real host socket, on a real store.
import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { signingKey } from '../../protocol/keys.js'
import { registrationDigest, verifyRegistrationAuthorization } from '../../protocol/registration.js'
import { verifyExecuteRequest } from '../../protocol/execute-request.js'
import {
  announce,
  COMMITTED,
  executeOf,
  failureOf,
  NOT_COMMITTED,
  NOT_STARTED,
  receiptOf,
  registered,
  requestUnder,
  reserved,
  started,
  startOf,
  UNKNOWN,
} from '../support/brokered-operation.js'
import {
  AUDIENCE,
  issueGrant,
  makeTestKernel,
  revokeGrant,
  seed,
  TENANT,
  type TestKernel,
} from '../support/kernel.js'

const now = (): number => Math.floor(Date.now() / 1_000)

let kernel: TestKernel
beforeEach(async () => {
  kernel = await makeTestKernel()
})
afterEach(() => kernel.remove())

const refusedWith = (code: string) => expect.objectContaining({ code })

describe('reserve', () => {
  test('mints a one-use capability for the exact body and holds one execution', async () => {
    const grant = await issueGrant(kernel)
    const { answer, announced } = await reserved(kernel, grant)
    const { body } = answer.capability
    expect(body.maximumExecutions).toBe(1)
    expect(body.constraints.requiredBodySha256).toBe(announced.bodySha256)
    expect(body.constraints.providerOwnedHeaders).toEqual(['authorization'])
    expect(body.parentCapabilityId).toBe(grant.grantId)
    expect(body.capabilityId).toBe(body.brokerQuotaKeyId)
    expect(body.expiresAtUnixSeconds - now()).toBeLessThanOrEqual(120)
    expect(answer.quotas.map(({ keyId }) => keyId)).toEqual([body.capabilityId, grant.grantId].sort())
    const view = await kernel.client.call('show_grant', { grantId: grant.grantId })
    expect(view).toMatchObject({ executions: 0, held: 1, revoked: false })
  })

  test('answers the same request with the same answer, also after a restart', async () => {
    const grant = await issueGrant(kernel)
    const { answer, announced } = await reserved(kernel, grant)
    expect(await kernel.client.call('reserve', announced)).toEqual(answer)
    await kernel.restart()
    expect(await kernel.client.call('reserve', announced)).toEqual(answer)
    const view = await kernel.client.call('show_grant', { grantId: grant.grantId })
    expect(view.held).toBe(1)
  })

  test.each(['requestDigest', 'bodySha256'] as const)(
    'refuses a changed %s under a retained invocation id and changes nothing',
    async member => {
      const grant = await issueGrant(kernel)
      const { answer, announced, operationId } = await reserved(kernel, grant)
      const before = await kernel.client.call('inspect', { operationId })
      const changed = { ...announced, [member]: 'a'.repeat(64) }
      await expect(kernel.client.call('reserve', changed)).rejects.toEqual(
        refusedWith('request_binding_mismatch'),
      )
      expect(await kernel.client.call('inspect', { operationId })).toEqual(before)
      expect(await kernel.client.call('reserve', announced)).toEqual(answer)
    },
  )

  test('refuses another caller key than the one of the uid', async () => {
    const grant = await issueGrant(kernel)
    const announced = announce(kernel, grant, requestUnder(grant))
    const foreign = signingKey(seed()).publicKey
    await expect(kernel.client.call('reserve', { ...announced, callerPublicKey: foreign })).rejects.toEqual(
      refusedWith('authorization_denied'),
    )
  })

  test('answers a grant of another caller as one that does not exist', async () => {
    const grant = await issueGrant(kernel, { callerPublicKey: signingKey(seed()).publicKey })
    const announced = announce(kernel, grant, requestUnder(grant))
    await expect(kernel.client.call('reserve', announced)).rejects.toEqual(refusedWith('grant_unknown'))
    await expect(kernel.client.call('show_grant', { grantId: grant.grantId })).rejects.toEqual(
      refusedWith('grant_unknown'),
    )
  })

  test('refuses a request beyond the grant by naming the member', async () => {
    const grant = await issueGrant(kernel, { maximumTimeoutMs: 4_999 })
    const announced = announce(kernel, grant, requestUnder(grant))
    await expect(kernel.client.call('reserve', announced)).rejects.toThrow(/timeoutMs.*4999.*5000/)
    const narrow = await issueGrant(kernel, { maximumTimeoutMs: 5_000 })
    await kernel.client.call('reserve', announce(kernel, narrow, requestUnder(narrow)))
  })

  test('refuses a proof outside the clock skew', async () => {
    const grant = await issueGrant(kernel)
    const announced = announce(kernel, grant, requestUnder(grant))
    for (const offset of [-8, 8]) {
      const stale = { ...announced, proofIssuedAtUnixSeconds: announced.proofIssuedAtUnixSeconds + offset }
      await expect(kernel.client.call('reserve', stale)).rejects.toThrow(/proofIssuedAtUnixSeconds/)
    }
  })

  test('holds exactly ten of fifty that ask at once under a grant of ten', async () => {
    const grant = await issueGrant(kernel, { maximumExecutions: 10 })
    const asked = Array.from({ length: 50 }, () =>
      reserved(kernel, grant).then(
        () => 'held',
        error => error.code,
      ),
    )
    const answers = await Promise.all(asked)
    expect(answers.filter(answer => answer === 'held')).toHaveLength(10)
    expect(answers.filter(answer => answer === 'grant_exhausted')).toHaveLength(40)
    const view = await kernel.client.call('show_grant', { grantId: grant.grantId })
    expect(view).toMatchObject({ executions: 0, held: 10 })
  })

  test('gives a cancelled execution back and keeps a started one spent', async () => {
    const grant = await issueGrant(kernel, { maximumExecutions: 1 })
    const first = await reserved(kernel, grant)
    await expect(reserved(kernel, grant)).rejects.toEqual(refusedWith('grant_exhausted'))
    const cancelled = await kernel.client.call('cancel', { operationId: first.operationId })
    expect(cancelled.state).toBe('compensated_before_dispatch')
    await started(kernel, grant)
    await expect(reserved(kernel, grant)).rejects.toEqual(refusedWith('grant_exhausted'))
  })

  test('refuses when every nonce is reserved and evicts none', async () => {
    await kernel.restart({ nonce: { ttlSeconds: 30, capacity: 2 } })
    const grant = await issueGrant(kernel)
    const [first] = [await registered(kernel, grant), await reserved(kernel, grant)]
    await expect(reserved(kernel, grant)).rejects.toEqual(refusedWith('execution_nonce_capacity'))
    await kernel.client.call('start', startOf(first))
    await reserved(kernel, grant)
  })
})

describe('authorize_registration', () => {
  test('signs register and prepare over the registration of the exact request, anew each time', async () => {
    const grant = await issueGrant(kernel)
    const { execute, operationId } = await reserved(kernel, grant)
    const authorized = await kernel.client.call('authorize_registration', { execute, operationId })
    expect(authorized.registration.ids.operationId).toBe(operationId)
    const { authority } = kernel.running.publicKeys
    for (const [action, authorization] of [
      ['register', authorized.registerAuthorization],
      ['prepare', authorized.prepareAuthorization],
    ] as const) {
      const pins = { action, authority, clockSkewSeconds: 5, tenantScope: TENANT }
      verifyRegistrationAuthorization(authorization, authorized.registration, pins, now())
    }
    const again = await kernel.client.call('authorize_registration', { execute, operationId })
    expect(registrationDigest(again.registration)).toBe(registrationDigest(authorized.registration))
  })

  test('accepts what the broker will accept: the same checks with the same pins', async () => {
    const grant = await issueGrant(kernel)
    const { execute } = await registered(kernel, grant)
    const pins = {
      adapter: { id: 'https', version: 1 },
      audience: AUDIENCE,
      clockSkewSeconds: 5,
      issuer: kernel.running.publicKeys.issuer,
    }
    expect(() => verifyExecuteRequest(execute, pins, now())).not.toThrow()
  })

  test.each([
    ['another body', (grant: Parameters<typeof requestUnder>[0]) => requestUnder(grant, 'other')],
    [
      'another timeout',
      (grant: Parameters<typeof requestUnder>[0]) => {
        const request = requestUnder(grant)
        return { ...request, options: { ...request.options, timeoutMs: 4_000 } }
      },
    ],
    [
      'another header',
      (grant: Parameters<typeof requestUnder>[0]) => ({ ...requestUnder(grant), headers: [] }),
    ],
  ])('refuses %s than was reserved', async (_what, change) => {
    const grant = await issueGrant(kernel)
    const { announced, answer, operationId } = await reserved(kernel, grant)
    const execute = executeOf(kernel, announced, answer, change(grant))
    await expect(kernel.client.call('authorize_registration', { execute, operationId })).rejects.toEqual(
      refusedWith('request_binding_mismatch'),
    )
    expect((await kernel.client.call('inspect', { operationId })).attemptId).toBeNull()
  })

  test("refuses a proof that is not the caller's", async () => {
    const grant = await issueGrant(kernel)
    const { execute, operationId } = await reserved(kernel, grant)
    const forged = { ...execute, proof: { ...execute.proof, signature: '0'.repeat(128) } }
    await expect(
      kernel.client.call('authorize_registration', { execute: forged, operationId }),
    ).rejects.toThrow(/proof signature/)
  })

  test('refuses a capability that another reservation minted', async () => {
    const grant = await issueGrant(kernel)
    const first = await reserved(kernel, grant)
    const second = await reserved(kernel, grant)
    const execute = executeOf(kernel, first.announced, second.answer, requestUnder(grant))
    const { operationId } = first
    await expect(kernel.client.call('authorize_registration', { execute, operationId })).rejects.toEqual(
      refusedWith('request_binding_mismatch'),
    )
  })
})

describe('start', () => {
  test('captures once and answers every later start with the first answer', async () => {
    const grant = await issueGrant(kernel)
    const operation = await registered(kernel, grant)
    const first = await kernel.client.call('start', startOf(operation))
    expect(await kernel.client.call('start', startOf(operation))).toEqual(first)
    await kernel.restart()
    expect(await kernel.client.call('start', startOf(operation))).toEqual(first)
    expect(first.captured.leaderEpoch).toBe(1)
    expect(first.captured.budgetCommitIndex).toBeGreaterThan(0)
    expect(first.captured.revocationCommitIndex).toBeGreaterThan(0)
    const view = await kernel.client.call('show_grant', { grantId: grant.grantId })
    expect(view).toMatchObject({ executions: 1, held: 0 })
  })

  test('refuses a start before the registration, naming the next step', async () => {
    const grant = await issueGrant(kernel)
    const operation = await reserved(kernel, grant)
    await expect(kernel.client.call('start', startOf(operation))).rejects.toThrow(
      /authorize the registration/,
    )
  })

  test('refuses the nonce of one operation with another and changes neither', async () => {
    const grant = await issueGrant(kernel)
    const [a, b] = [await registered(kernel, grant), await registered(kernel, grant)]
    const crossed = { executionNonce: a.answer.executionNonce, operationId: b.operationId }
    await expect(kernel.client.call('start', crossed)).rejects.toEqual(refusedWith('execution_nonce_binding'))
    for (const { operationId } of [a, b]) {
      expect((await kernel.client.call('inspect', { operationId })).state).toBe('ready_to_dispatch')
    }
    await kernel.client.call('start', startOf(a))
    await kernel.client.call('start', startOf(b))
  })

  test('is denied once the grant is revoked, and the operation can still be cancelled', async () => {
    const grant = await issueGrant(kernel)
    const operation = await registered(kernel, grant)
    expect((await revokeGrant(kernel, grant.grantId)).newlyRevoked).toBe(true)
    await expect(kernel.client.call('start', startOf(operation))).rejects.toEqual(
      refusedWith('grant_revoked'),
    )
    const { operationId } = operation
    const cancelled = await kernel.client.call('cancel', { operationId })
    expect(cancelled.state).toBe('compensated_before_dispatch')
    await expect(kernel.client.call('start', startOf(operation))).rejects.toEqual(
      refusedWith('operation_state'),
    )
  })
})

describe('finalize', () => {
  test('ends by a receipt as completed, once; the same receipt again is the same answer', async () => {
    const operation = await started(kernel, await issueGrant(kernel))
    const { operationId } = operation
    const record = receiptOf(kernel, operation)
    const view = await kernel.client.call('finalize', { operationId, record })
    expect(view).toMatchObject({ state: 'completed', settlesAtUnixMs: null })
    expect(await kernel.client.call('finalize', { operationId, record })).toEqual(view)
    const other = failureOf(kernel, operation, UNKNOWN)
    await expect(kernel.client.call('finalize', { operationId, record: other })).rejects.toEqual(
      refusedWith('conflict'),
    )
    expect(await kernel.client.call('inspect', { operationId })).toEqual(view)
  })

  test.each([
    ['not started', NOT_STARTED, 'not_accepted_after_dispatch_commit'],
    ['not committed', NOT_COMMITTED, 'not_accepted_after_dispatch_commit'],
    ['committed and failed', COMMITTED, 'denied_after_delivery'],
    ['unknown', UNKNOWN, 'outcome_unknown_after_dispatch'],
  ] as const)(
    'ends a started operation by a failure %s; the hold stays spent',
    async (_name, said, state) => {
      const grant = await issueGrant(kernel)
      const operation = await started(kernel, grant)
      const { operationId } = operation
      const record = failureOf(kernel, operation, said)
      const view = await kernel.client.call('finalize', { operationId, record })
      expect(view).toMatchObject({ state, lastError: 'chio.broker.upstream' })
      expect(await kernel.client.call('show_grant', { grantId: grant.grantId })).toMatchObject({
        executions: 1,
        held: 0,
      })
    },
  )

  test('takes back what was not started by a failure that says so', async () => {
    const grant = await issueGrant(kernel)
    const operation = await registered(kernel, grant)
    const { operationId } = operation
    const record = failureOf(kernel, operation, NOT_STARTED)
    const view = await kernel.client.call('finalize', { operationId, record })
    expect(view.state).toBe('compensated_before_dispatch')
    expect(await kernel.client.call('show_grant', { grantId: grant.grantId })).toMatchObject({
      executions: 0,
      held: 0,
    })
  })

  test('never overwrites an unknown outcome by a later certain one', async () => {
    const operation = await started(kernel, await issueGrant(kernel))
    const { operationId } = operation
    await kernel.client.call('finalize', { operationId, record: failureOf(kernel, operation, UNKNOWN) })
    for (const record of [receiptOf(kernel, operation), failureOf(kernel, operation, NOT_COMMITTED)]) {
      await expect(kernel.client.call('finalize', { operationId, record })).rejects.toEqual(
        refusedWith('conflict'),
      )
    }
    const { state } = await kernel.client.call('inspect', { operationId })
    expect(state).toBe('outcome_unknown_after_dispatch')
  })

  test('refuses a record of a dispatch that was never started', async () => {
    const operation = await registered(kernel, await issueGrant(kernel))
    const { operationId } = operation
    const record = failureOf(kernel, operation, COMMITTED)
    await expect(kernel.client.call('finalize', { operationId, record })).rejects.toEqual(
      refusedWith('conflict'),
    )
  })

  test('refuses a record of another key, of another operation, of another capture', async () => {
    const grant = await issueGrant(kernel)
    const [operation, other] = [await started(kernel, grant), await started(kernel, grant)]
    const { operationId } = operation
    const strange = { ...kernel, broker: signingKey(seed()) }
    const captured = { ...operation.captured, budgetCommitIndex: operation.captured.budgetCommitIndex + 1 }
    const records = [
      receiptOf(strange, operation),
      failureOf(strange, operation, UNKNOWN),
      receiptOf(kernel, other),
      failureOf(kernel, other, UNKNOWN),
      receiptOf(kernel, { ...operation, captured }),
    ]
    for (const record of records) {
      await expect(kernel.client.call('finalize', { operationId, record })).rejects.toEqual(
        refusedWith('authorization_denied'),
      )
    }
    const { state } = await kernel.client.call('inspect', { operationId })
    expect(state).toBe('dispatch_committed')
  })
})

describe('cancel, release and reading', () => {
  test('refuses to cancel what was started, naming what ends it', async () => {
    const { operationId } = await started(kernel, await issueGrant(kernel))
    await expect(kernel.client.call('cancel', { operationId })).rejects.toThrow(/dispatch_committed.*record/)
  })

  test('signs a release over the registration', async () => {
    const { operationId, registration } = await started(kernel, await issueGrant(kernel))
    const release = await kernel.client.call('authorize_release', { operationId })
    const pins = {
      action: 'release',
      authority: kernel.running.publicKeys.authority,
      clockSkewSeconds: 5,
      tenantScope: TENANT,
    } as const
    expect(release.registration).toEqual(registration)
    verifyRegistrationAuthorization(release.releaseAuthorization, registration, pins, now())
  })

  test('shows a caller nothing of another caller, and a peer without a key everything', async () => {
    const grant = await issueGrant(kernel)
    const operation = await registered(kernel, grant)
    const { operationId } = operation
    await kernel.restart({ callerPublicKey: signingKey(seed()).publicKey })
    await expect(kernel.client.call('inspect', { operationId })).rejects.toEqual(
      refusedWith('operation_unknown'),
    )
    await expect(kernel.client.call('cancel', { operationId })).rejects.toEqual(
      refusedWith('operation_unknown'),
    )
    expect(await kernel.client.call('list', { limit: 10 })).toEqual({ operations: [] })
    expect(await kernel.client.call('list_grants', { limit: 10 })).toEqual({ grants: [] })
    await kernel.restart({ callerPublicKey: null })
    expect((await kernel.client.call('inspect', { operationId })).operationId).toBe(operationId)
    expect((await kernel.client.call('list', { limit: 10 })).operations).toHaveLength(1)
    await expect(kernel.client.call('start', startOf(operation))).rejects.toEqual(
      refusedWith('operation_unknown'),
    )
    await expect(kernel.client.call('reserve', operation.announced)).rejects.toEqual(
      refusedWith('authorization_denied'),
    )
  })

  test('counts operations by state and says that the broker is away', async () => {
    const grant = await issueGrant(kernel)
    await reserved(kernel, grant)
    await started(kernel, grant)
    expect(await kernel.client.call('status', {})).toEqual({
      brokerReachable: false,
      operations: [
        { count: 1, state: 'dispatch_committed' },
        { count: 1, state: 'ready_to_dispatch' },
      ],
      ownerEpoch: 1,
      waiting: 0,
    })
  })

  test('refuses an operation that it does not hold', async () => {
    const operationId = randomUUID().replaceAll('-', '').padEnd(64, '0')
    await expect(kernel.client.call('inspect', { operationId })).rejects.toEqual(
      refusedWith('operation_unknown'),
    )
  })
})
