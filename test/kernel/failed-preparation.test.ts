// What a host tells of a failed preparation: noted once, in one of two words, with an operation that was not started.
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { PreparationFailure } from '../../protocol/failed-preparation.js'
import { BrokerError, isBrokerError } from '../../protocol/errors.js'
import { preparationFailureOf } from '../../host/failed-preparation.js'
import { registered, reserved, startOf } from '../support/brokered-operation.js'
import { issueGrant, makeTestKernel, type TestKernel } from '../support/kernel.js'

let kernel: TestKernel
beforeEach(async () => {
  kernel = await makeTestKernel()
})
afterEach(() => kernel.remove())

const tell = (operationId: string, detail: PreparationFailure = 'authorization_denied') =>
  kernel.client.call('preparation_failed', { error: { code: 'tool_server_error', detail }, operationId })

const refusalOf = async (told: Promise<unknown>): Promise<string> =>
  told.then(
    () => 'taken',
    (error: unknown) => (isBrokerError(error) ? error.code : String(error)),
  )

describe('a failed preparation', () => {
  test('is noted once, and changes no state; the same word again changes nothing', async () => {
    const { operationId } = await registered(kernel, await issueGrant(kernel))
    const noted = await tell(operationId)
    const lastError = 'preparation failed: tool_server_error: authorization_denied'
    expect(noted).toMatchObject({ lastError, state: 'ready_to_dispatch' })
    expect(await tell(operationId)).toEqual(noted)
    expect(await refusalOf(tell(operationId, 'authority_unavailable'))).toBe('conflict')
    const { explanation } = await kernel.client.call('explain', { id: operationId })
    expect(explanation.history.filter(({ cause }) => cause === lastError)).toHaveLength(1)
    await kernel.client.call('cancel', { operationId })
    const { receipt } = await kernel.client.call('show_receipt', { operationId, receiptId: null })
    expect(receipt.decision).toEqual({ reason: lastError, verdict: 'cancelled' })
  })

  test('is refused before a registration, after a start, and of an operation that is not there', async () => {
    const grant = await issueGrant(kernel)
    const { operationId } = await reserved(kernel, grant)
    expect(await refusalOf(tell(operationId))).toBe('operation_state')
    const started = await registered(kernel, grant)
    await kernel.client.call('start', startOf(started))
    expect(await refusalOf(tell(started.operationId))).toBe('operation_state')
    expect(await refusalOf(tell('f'.repeat(64)))).toBe('operation_unknown')
  })

  test('has one of exactly two words', async () => {
    const { operationId } = await registered(kernel, await issueGrant(kernel))
    await expect(tell(operationId, 'conflict' as PreparationFailure)).rejects.toThrow()
    expect(preparationFailureOf(new BrokerError('authorization_denied', 'x'))).toBe('authorization_denied')
    expect(preparationFailureOf(new BrokerError('credential_unavailable', 'x'))).toBe('authorization_denied')
    for (const code of ['authority_unavailable', 'broker_unavailable', 'conflict', 'peer_mismatch'] as const)
      expect(preparationFailureOf(new BrokerError(code, 'x'))).toBe('authority_unavailable')
    expect(preparationFailureOf(new Error('anything'))).toBe('authority_unavailable')
  })
})
