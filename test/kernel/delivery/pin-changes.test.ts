// Which executor a kernel delivers to, and what becomes of operations when that changes or their kernel dies in between.
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { ToolCallRequest } from '../../../protocol/tool-call.js'
import type { CallAnswer } from '../../../protocol/tool-call-rpc.js'
import { TestExecutor } from '../../support/caller-executor.js'
import type { TestKernel, TestKernelOptions } from '../../support/kernel.js'
import {
  callKernel,
  callUnder,
  preflight,
  reservedCall,
  reserveWith,
  startedCall,
  startWith,
  tokenOf,
} from '../../support/tool-call.js'

class Crash extends Error {}
const [one, other] = [new TestExecutor('one', 1), new TestExecutor('other', 2)]
const targets = [{ serverId: 'notes', toolName: 'append' }]
let kernel: TestKernel
let crashAt: string | null
beforeEach(async () => {
  crashAt = null
  kernel = await callKernel({ atCutpoint, callerExecutor: one.pin })
})
afterEach(() => kernel.remove())

function atCutpoint(name: string): void {
  if (name === crashAt) throw new Crash(name)
}

const restart = (options: TestKernelOptions) => kernel.restart({ toolCalls: { targets }, ...options })
const inspect = (operationId: string | null) =>
  kernel.client.call('inspect', { operationId: operationId as string })
const explain = async (id: string | null) =>
  (await kernel.client.call('explain', { id: id as string })).explanation

/** Captured, and its kernel dies before it signs. */
async function captured(request: ToolCallRequest): Promise<CallAnswer> {
  const ready = await reservedCall(kernel, request)
  crashAt = 'kernel.call_authorized.before'
  const executionNonce = ready.executionNonce as NonNullable<typeof ready.executionNonce>
  const start = { arguments: request.params, context: null, credentials: {}, executionNonce }
  await expect(kernel.running.kernel.calls.start(null, start)).rejects.toThrow(Crash)
  crashAt = null
  return ready
}

describe('a call that was captured and not signed', () => {
  test('is signed by the same start again', async () => {
    const request = callUnder(tokenOf(kernel))
    const ready = await captured(request)
    expect(await inspect(ready.operationId)).toMatchObject({
      settlement: 'captured; its kernel signs what its executor may act on',
      state: 'dispatch_committed',
    })
    expect((await explain(ready.operationId)).next).toMatch(/^start it again/)
    expect(await startWith(kernel, request, ready)).toMatchObject({ state: 'awaiting_caller_report' })
  })

  test('waits for its report after an opening under the same pin, and the start has the signed authorization', async () => {
    const request = callUnder(tokenOf(kernel))
    const ready = await captured(request)
    await restart({ callerExecutor: one.pin })
    expect(await inspect(ready.operationId)).toMatchObject({
      settlesAtUnixMs: null,
      state: 'awaiting_caller_report',
    })
    const first = await startWith(kernel, request, ready)
    expect(first.authorization?.authorization.committed.dispatch_commit.coordinator_lease_epoch).toBe(1)
    expect(await startWith(kernel, request, ready)).toEqual(first)
  })

  test.each([
    ['none', {}],
    ['another executor', { callerExecutor: other.pin }],
  ])('is an unknown outcome after an opening under %s', async (_what, options) => {
    const { operationId } = await captured(callUnder(tokenOf(kernel)))
    await restart(options)
    expect(await inspect(operationId)).toMatchObject({
      lastError: 'captured for an executor that is pinned no more, and never authorized',
      state: 'outcome_unknown_after_dispatch',
    })
    expect((await explain(operationId)).next).toContain('chio operation reconcile')
  })
})

test('an opening under the same pin leaves a call that waits for its report as it is', async () => {
  const { authorization, ready } = await startedCall(kernel)
  const before = await inspect(ready.operationId)
  await restart({ callerExecutor: one.pin })
  expect(await inspect(ready.operationId)).toEqual(before)
  expect((await explain(ready.operationId)).mover).toBe('executor')
  const answer = await kernel.client.call('call_reconcile', {
    authorization,
    report: one.report(authorization),
  })
  expect(answer).toMatchObject({ state: 'completed' })
})

test('a report that was kept and not judged is judged by the next kernel alone', async () => {
  const { authorization, ready } = await startedCall(kernel)
  const report = one.report(authorization)
  crashAt = 'kernel.call_finished.before'
  const reported = kernel.running.kernel.calls.reconcile(null, { authorization, report })
  await expect(reported).rejects.toThrow(Crash)
  expect(await inspect(ready.operationId)).toMatchObject({ state: 'finalizing' })
  await restart({ callerExecutor: one.pin })
  await expect.poll(async () => (await inspect(ready.operationId)).state).toBe('completed')
  const first = await kernel.client.call('call_reconcile', { authorization, report })
  expect(first).toMatchObject({ output: { value: { written: true } }, verdict: 'allow' })
})

describe('an operation of another pin', () => {
  const named = /expected its own pin, executor one of epoch 1, key .*, got executor other of epoch 2/

  test('stays as it is, and every step says whose it is', async () => {
    const [prepared, ready, running] = [1, 2, 3].map(() => callUnder(tokenOf(kernel))) as [
      ToolCallRequest,
      ToolCallRequest,
      ToolCallRequest,
    ]
    const preflighted = await preflight(kernel, prepared)
    const reserved = await reservedCall(kernel, ready)
    const { authorization, ready: startedReady } = await startedCall(kernel, running)
    await restart({ callerExecutor: other.pin })
    const refused = [
      await preflight(kernel, prepared),
      await reserveWith(kernel, prepared, preflighted),
      await startWith(kernel, ready, reserved),
      await startWith(kernel, running, startedReady),
      await kernel.client.call('call_reconcile', { authorization, report: one.report(authorization) }),
    ]
    for (const answer of refused) {
      expect(answer).toMatchObject({
        code: 'executor_changed',
        reason: expect.stringMatching(named) as string,
        verdict: 'deny',
      })
    }
    await restart({ callerExecutor: one.pin })
    expect(await startWith(kernel, ready, reserved)).toMatchObject({ state: 'awaiting_caller_report' })
    const report = one.report(authorization)
    expect(await kernel.client.call('call_reconcile', { authorization, report })).toMatchObject({
      state: 'completed',
    })
  })

  test('or of none is not adopted by a pin that comes later, nor by the end of one', async () => {
    const under = callUnder(tokenOf(kernel))
    await preflight(kernel, under)
    await restart({})
    expect(await preflight(kernel, under)).toMatchObject({
      code: 'executor_changed',
      reason: expect.stringContaining('got no executor') as string,
    })
    const without = callUnder(tokenOf(kernel))
    const ready = await reservedCall(kernel, without)
    await restart({ callerExecutor: one.pin })
    expect(await startWith(kernel, without, ready)).toMatchObject({
      code: 'executor_changed',
      reason: expect.stringContaining('expected its own pin, no executor, got executor one') as string,
    })
  })
})

test('a store that may forget is no place to deliver from', async () => {
  await restart({ callerExecutor: one.pin, durableMode: 'off' })
  expect(await preflight(kernel, callUnder(tokenOf(kernel)))).toMatchObject({
    code: 'authorization_denied',
    reason: expect.stringContaining(
      'caller execution requires qualified native capture and recoverable release custody',
    ) as string,
  })
})
