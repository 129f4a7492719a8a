// What a reservation mints and holds, and what it refuses, asked over the real host socket.
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { signingKey } from '../../protocol/keys.js'

import {
  announce,
  registered,
  requestUnder,
  reserved,
  started,
  startOf,
} from '../support/brokered-operation.js'
import { issueGrant, makeTestKernel, seed, type TestKernel } from '../support/kernel.js'

const now = (): number => Math.floor(Date.now() / 1_000)

let kernel: TestKernel
beforeEach(async () => {
  kernel = await makeTestKernel()
})
afterEach(() => kernel.remove())

const refusedWith = (code: string): unknown => expect.objectContaining({ code })

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
        (error: unknown) => (error as { code: string }).code,
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
