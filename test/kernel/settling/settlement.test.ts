// What the kernel does with operations that nobody ended: while it runs, and when it starts. Time is held in the
// hand; the broker's answers are scripted, since a real one cannot be made to forget.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  COMMITTED,
  failureOf,
  NOT_COMMITTED,
  receiptOf,
  registered,
  reserved,
  started,
  UNKNOWN,
} from '../../support/brokered-operation.js'
import { HeldClock } from '../../support/clock.js'
import { issueGrant, makeTestKernel, type TestKernel } from '../../support/kernel.js'
import { ScriptedRecords, statusOf } from '../../support/scripted-records.js'

/** Start + 30 s + the request's five seconds + 10 s. */
const STARTED_DUE_MS = 45_000
const NONCE_DUE_MS = 30_000

let clock: HeldClock
let records: ScriptedRecords
let kernel: TestKernel
beforeEach(async () => {
  clock = new HeldClock(Math.floor(Date.now() / 1_000) * 1_000)
  records = new ScriptedRecords()
  kernel = await makeTestKernel({ clock, records })
})
afterEach(() => kernel.remove())

const grantNow = () => issueGrant(kernel, {}, clock)
const view = (operationId: string) => kernel.client.call('inspect', { operationId })
const until = (operationId: string, state: string) =>
  vi.waitFor(async () => expect((await view(operationId)).state).toBe(state), {
    timeout: 5_000,
    interval: 20,
  })
const waits = (operationId: string, text: RegExp) =>
  vi.waitFor(async () => expect((await view(operationId)).settlement).toMatch(text), {
    timeout: 5_000,
    interval: 20,
  })

describe('an operation that was not started', () => {
  test('is given back at its nonce expiry and not before, without a word to the broker, when nothing was signed', async () => {
    const grant = await grantNow()
    const { operationId } = await reserved(kernel, grant, clock)
    clock.pass(NONCE_DUE_MS - 1)
    await new Promise(resolve => setTimeout(resolve, 600))
    expect((await view(operationId)).state).toBe('ready_to_dispatch')
    clock.pass(1)
    await until(operationId, 'compensated_before_dispatch')
    expect(records.asked).toEqual([])
    const { held } = await kernel.client.call('show_grant', { grantId: grant.grantId })
    expect(held).toBe(0)
  })

  test('is released at the broker first and then given back', async () => {
    const { operationId, registration } = await registered(kernel, await grantNow(), clock)
    records.statuses = [statusOf(registration.ids.attemptId)]
    records.releases = ['released']
    clock.pass(NONCE_DUE_MS)
    await until(operationId, 'compensated_before_dispatch')
    expect(records.asked).toEqual(['status', 'release'])
    expect(records.attempt?.registration).toEqual(registration)
  })

  test('waits while the broker cannot be reached, says so, and is settled when it can', async () => {
    const { operationId } = await registered(kernel, await grantNow(), clock)
    clock.pass(NONCE_DUE_MS)
    await waits(operationId, /cannot be reached/)
    expect((await kernel.client.call('status', {})).waiting).toBe(1)
    expect((await view(operationId)).state).toBe('ready_to_dispatch')
    records.statuses = ['unknown']
    clock.pass(5_000)
    await until(operationId, 'compensated_before_dispatch')
    expect((await kernel.client.call('status', {})).waiting).toBe(0)
  })

  test('whose release the broker refuses waits under that name, and is settled when it takes it', async () => {
    const { operationId, registration } = await registered(kernel, await grantNow(), clock)
    records.statuses = [statusOf(registration.ids.attemptId)]
    records.releases = ['refused', 'released']
    records.replays = ['pending']
    clock.pass(NONCE_DUE_MS)
    await waits(operationId, /refused the kernel's release; see that both clocks agree/)
    expect((await view(operationId)).state).toBe('ready_to_dispatch')
    clock.pass(5_000)
    await until(operationId, 'compensated_before_dispatch')
  })

  test('is looked at again at the deadline of an attempt that the broker still holds', async () => {
    const { operationId, registration } = await registered(kernel, await grantNow(), clock)
    const { attemptId } = registration.ids
    records.statuses = [
      statusOf(attemptId, { held: true, state: 'prepared' }),
      statusOf(attemptId, { state: 'failed' }),
    ]
    records.releases = ['released']
    clock.pass(NONCE_DUE_MS)
    await waits(operationId, /still holds/)
    expect(records.asked).toEqual(['status'])
    clock.pass(31_000)
    await until(operationId, 'compensated_before_dispatch')
  })

  test('is settled by the next process when this one ends', async () => {
    const { operationId } = await reserved(kernel, await grantNow(), clock)
    await kernel.restart({ clock, records })
    clock.pass(NONCE_DUE_MS)
    await until(operationId, 'compensated_before_dispatch')
  })
})

describe('an operation that was started', () => {
  test.each([
    ['its receipt', 'receipt', 'completed'],
    ['a failure before the dispatch', NOT_COMMITTED, 'not_accepted_after_dispatch_commit'],
    ['a failure after the dispatch', COMMITTED, 'denied_after_delivery'],
    ['an unknown outcome', UNKNOWN, 'outcome_unknown_after_dispatch'],
  ] as const)('is ended by %s, which the kernel asks for itself', async (_name, said, state) => {
    const operation = await started(kernel, await grantNow(), clock)
    const { operationId, registration } = operation
    records.statuses = [statusOf(registration.ids.attemptId, { state: 'completed' })]
    records.replays = [said === 'receipt' ? receiptOf(kernel, operation) : failureOf(kernel, operation, said)]
    clock.pass(STARTED_DUE_MS - 1)
    await new Promise(resolve => setTimeout(resolve, 600))
    expect(records.asked).toEqual([])
    clock.pass(1)
    await until(operationId, state)
    expect(records.asked).toEqual(['status', 'replay'])
  })

  test('is released when it is registered and not held, and ended by the failure that the release signs', async () => {
    const operation = await started(kernel, await grantNow(), clock)
    const { operationId, registration } = operation
    records.statuses = [statusOf(registration.ids.attemptId)]
    records.replays = ['pending', failureOf(kernel, operation, NOT_COMMITTED)]
    records.releases = ['released']
    clock.pass(STARTED_DUE_MS)
    await until(operationId, 'not_accepted_after_dispatch_commit')
    expect(records.asked).toEqual(['status', 'replay', 'release', 'replay'])
  })

  test('ends as not accepted when the broker never came to hold it; the execution stays spent', async () => {
    const grant = await grantNow()
    const { operationId } = await started(kernel, grant, clock)
    records.statuses = ['unknown']
    clock.pass(STARTED_DUE_MS)
    await until(operationId, 'not_accepted_after_dispatch_commit')
    const { executions, held } = await kernel.client.call('show_grant', { grantId: grant.grantId })
    expect({ executions, held }).toEqual({ executions: 1, held: 0 })
  })

  test('and ended without a record, agrees with a late one that says the same and refuses any other', async () => {
    const operation = await started(kernel, await grantNow(), clock)
    const { operationId } = operation
    records.statuses = ['unknown']
    clock.pass(STARTED_DUE_MS)
    await until(operationId, 'not_accepted_after_dispatch_commit')
    const ended = await view(operationId)
    const late = failureOf(kernel, operation, NOT_COMMITTED)
    const { document: _document, ...seen } = ended
    expect(await kernel.client.call('finalize', { operationId, record: late })).toMatchObject(seen)
    for (const record of [receiptOf(kernel, operation), failureOf(kernel, operation, UNKNOWN)]) {
      await expect(kernel.client.call('finalize', { operationId, record })).rejects.toMatchObject({
        code: 'conflict',
      })
    }
    expect(await view(operationId)).toEqual(ended)
  })

  test('never becomes terminal while the broker cannot be reached', async () => {
    const { operationId, registration } = await started(kernel, await grantNow(), clock)
    clock.pass(STARTED_DUE_MS)
    await waits(operationId, /cannot be reached/)
    for (const [status, replay] of [
      ['unreachable', 'unreachable'],
      [statusOf(registration.ids.attemptId), 'unreachable'],
      [statusOf(registration.ids.attemptId), 'pending'],
    ] as const) {
      records.statuses = [status]
      records.replays = [replay]
      const asked = records.asked.length
      clock.pass(5_000)
      await vi.waitFor(() => expect(records.asked.length).toBeGreaterThan(asked), { timeout: 5_000 })
      expect((await view(operationId)).state).toBe('dispatch_committed')
    }
  })

  test('is not ended by a record that another key signed, and says so', async () => {
    const operation = await started(kernel, await grantNow(), clock)
    const { operationId, registration } = operation
    records.statuses = [statusOf(registration.ids.attemptId, { state: 'completed' })]
    records.replays = [receiptOf({ broker: kernel.caller }, operation), receiptOf(kernel, operation)]
    clock.pass(STARTED_DUE_MS)
    await waits(operationId, /record was refused/)
    clock.pass(5_000)
    await until(operationId, 'completed')
  })

  test('is settled at the start of the next process, whose wall clock may have stepped', async () => {
    const operation = await started(kernel, await grantNow(), clock)
    const { operationId, registration } = operation
    records.statuses = [statusOf(registration.ids.attemptId, { state: 'completed' })]
    records.replays = [receiptOf(kernel, operation)]
    clock.stepWall(-3_600_000)
    await kernel.restart({ clock, records })
    clock.pass(STARTED_DUE_MS)
    await until(operationId, 'completed')
  })
})

describe('the wall clock', () => {
  test('set forward does not end an operation before its time on the boot clock', async () => {
    const { operationId } = await started(kernel, await grantNow(), clock)
    clock.stepWall(3_600_000)
    await new Promise(resolve => setTimeout(resolve, 600))
    expect(records.asked).toEqual([])
    expect((await view(operationId)).state).toBe('dispatch_committed')
  })

  test('set back does not let a nonce live longer', async () => {
    const operation = await registered(kernel, await grantNow(), clock)
    const { operationId } = operation
    clock.stepWall(-5_000)
    const start = { executionNonce: operation.answer.executionNonce, operationId }
    await expect(kernel.client.call('start', start)).rejects.toMatchObject({
      code: 'execution_nonce_not_yet_valid',
    })
    clock.stepWall(5_000)
    clock.pass(NONCE_DUE_MS)
    clock.stepWall(-10_000)
    await expect(kernel.client.call('start', start)).rejects.toMatchObject({
      code: 'execution_nonce_expired',
    })
  })

  test('set forward beyond the nonce refuses the start', async () => {
    const operation = await registered(kernel, await grantNow(), clock)
    clock.stepWall(NONCE_DUE_MS)
    const start = { executionNonce: operation.answer.executionNonce, operationId: operation.operationId }
    await expect(kernel.client.call('start', start)).rejects.toMatchObject({
      code: 'execution_nonce_expired',
    })
  })

  test('that jumps stops admission with a sentence until it stands right again', async () => {
    const operation = await registered(kernel, await grantNow(), clock)
    const start = { executionNonce: operation.answer.executionNonce, operationId: operation.operationId }
    clock.stepWall(20_000)
    await expect(kernel.client.call('start', start)).rejects.toThrow(/wall clock refused.*chio clock accept/)
    clock.stepWall(-20_000)
    await kernel.client.call('start', start)
  })

  test('that passes the end of the grant refuses the start by the grant', async () => {
    const expiresAtUnixSeconds = Math.floor(clock.unixMs() / 1_000) + 20
    const grant = await issueGrant(kernel, { expiresAtUnixSeconds }, clock)
    const operation = await registered(kernel, grant, clock)
    clock.pass(20_000)
    const start = { executionNonce: operation.answer.executionNonce, operationId: operation.operationId }
    await expect(kernel.client.call('start', start)).rejects.toMatchObject({ code: 'grant_expired' })
  })
})
