// From the reservation to the start: the exact request is compared, retained and signed, the start is once.
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { MAXIMUM_BODY_BYTES } from '../../protocol/limits.js'
import { registrationDigest, verifyRegistrationAuthorization } from '../../protocol/registration.js'
import { verifyExecuteRequest } from '../../protocol/execute-request.js'
import {
  announce,
  executeOf,
  registered,
  requestUnder,
  reserved,
  startOf,
} from '../support/brokered-operation.js'
import {
  AUDIENCE,
  issueGrant,
  makeTestKernel,
  revokeGrant,
  TENANT,
  type TestKernel,
} from '../support/kernel.js'

const now = (): number => Math.floor(Date.now() / 1_000)

let kernel: TestKernel
beforeEach(async () => {
  kernel = await makeTestKernel()
})
afterEach(() => kernel.remove())

const refusedWith = (code: string): unknown => expect.objectContaining({ code })

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

  test.each([0, MAXIMUM_BODY_BYTES])('retains a body of %i bytes', async length => {
    const grant = await issueGrant(kernel, { maximumBodyBytes: MAXIMUM_BODY_BYTES })
    const request = requestUnder(grant, new Uint8Array(length).fill(0xff))
    const announced = announce(kernel, grant, request)
    const answer = await kernel.client.call('reserve', announced)
    const execute = executeOf(kernel, announced, answer, request)
    const { operationId } = answer
    const authorized = await kernel.client.call('authorize_registration', { execute, operationId })
    expect(authorized.registration.requestDigest).toBe(announced.requestDigest)
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
