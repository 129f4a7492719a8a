// How operations end by the broker's records and by their hosts, and what a caller may read of them.
import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { signingKey } from '../../../protocol/keys.js'
import { verifyRegistrationAuthorization } from '../../../protocol/registration.js'

import {
  COMMITTED,
  failureOf,
  NOT_COMMITTED,
  NOT_STARTED,
  receiptOf,
  registered,
  reserved,
  started,
  startOf,
  UNKNOWN,
} from '../../support/brokered-operation.js'
import {
  issueGrant,
  makeTestKernel,
  seed,
  TENANT,
  type TestKernel,
  UNREACHABLE,
} from '../../support/kernel.js'

const now = (): number => Math.floor(Date.now() / 1_000)

let kernel: TestKernel
beforeEach(async () => {
  kernel = await makeTestKernel()
})
afterEach(() => kernel.remove())

const refusedWith = (code: string): unknown => expect.objectContaining({ code })

describe('finalize', () => {
  test('ends by a receipt as completed, once; the same receipt again is the same answer', async () => {
    const operation = await started(kernel, await issueGrant(kernel))
    const { operationId } = operation
    const record = receiptOf(kernel, operation)
    const ended = await kernel.client.call('finalize', { operationId, record })
    expect(ended).toMatchObject({ state: 'completed', settlesAtUnixMs: null })
    expect(await kernel.client.call('finalize', { operationId, record })).toEqual(ended)
    const other = failureOf(kernel, operation, UNKNOWN)
    await expect(kernel.client.call('finalize', { operationId, record: other })).rejects.toEqual(
      refusedWith('conflict'),
    )
    const { receipt: _receipt, ...view } = ended
    expect(await kernel.client.call('inspect', { operationId })).toMatchObject(view)
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
      clockFault: null,
      operations: [
        { count: 1, state: 'dispatch_committed' },
        { count: 1, state: 'ready_to_dispatch' },
      ],
      ownerEpoch: 1,
      waiting: 0,
    })
  })

  test('asks the broker once for all who want its status at the same time', async () => {
    let asked = 0
    let answer: () => void = () => {}
    const isReachable = () => {
      asked += 1
      return new Promise<boolean>(resolve => {
        answer = () => resolve(true)
      })
    }
    await kernel.restart({ records: { ...UNREACHABLE, isReachable } })
    const { running } = kernel
    const all = Array.from({ length: 20 }, () => running.kernel.status())
    await expect.poll(() => asked).toBe(1)
    answer()
    expect((await Promise.all(all)).every(status => status.brokerReachable)).toBe(true)
    const later = running.kernel.status()
    await expect.poll(() => asked).toBe(2)
    answer()
    await later
  })

  test('refuses an operation that it does not hold', async () => {
    const operationId = randomUUID().replaceAll('-', '').padEnd(64, '0')
    await expect(kernel.client.call('inspect', { operationId })).rejects.toEqual(
      refusedWith('operation_unknown'),
    )
  })
})
