// A start under a pinned executor, over the kernel's own socket: captured once, signed once, answered as often as asked.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { verifyForClaim } from '../../../protocol/caller-authorization.js'
import { capabilityTokenHash } from '../../../protocol/capability-token.js'
import { valueHash, verifyKernelReceipt } from '../../../protocol/kernel-receipt.js'
import type { ToolCallRequest } from '../../../protocol/tool-call.js'
import { openCallApprovals } from '../../support/call-approvals.js'
import { TestExecutor } from '../../support/caller-executor.js'
import type { TestKernel } from '../../support/kernel.js'
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

const executor = new TestExecutor()
const targets = [{ serverId: 'notes', toolName: 'append' }]
let kernel: TestKernel
beforeAll(async () => {
  kernel = await callKernel({ callerExecutor: executor.pin })
})
afterAll(() => kernel.remove())

const started = (request?: ToolCallRequest) => startedCall(kernel, request)
const restart = () => kernel.restart({ callerExecutor: executor.pin, toolCalls: { targets } })
const inspect = (operationId: string | null) =>
  kernel.client.call('inspect', { operationId: operationId as string })

describe('a start under a pinned executor', () => {
  test('is committed, then signed for exactly this call and this executor', async () => {
    const { authorization, ready, request, start } = await started()
    const { invocation, committed } = authorization.authorization
    expect(start).toMatchObject({
      executionAuthorized: true,
      state: 'awaiting_caller_report',
      verdict: 'allow',
      receipt: { metadata: { admission: { projected_state: 'dispatch_committed' } } },
    })
    expect(invocation).toMatchObject({
      capability_digest: capabilityTokenHash(request.capability_token),
      operation_id: ready.operationId,
      parameters_digest: valueHash(request.params),
      request_id: request.id,
      server_id: 'notes',
      tool_name: 'append',
    })
    const { document } = await inspect(ready.operationId)
    expect(committed).toEqual({
      budget_hold_id: document.attachments.budget_hold_id,
      dispatch_commit: document.dispatch_commit,
      execution_nonce_id: ready.executionNonce?.nonce.nonce_id,
      frozen_context_digest: document.attachments.caller_dispatch_context_digest,
    })
    const pins = { executor: executor.pin, invocation, kernelKey: kernel.running.publicKeys.kernel }
    verifyForClaim(authorization, pins, authorization.authorization.not_before_unix_ms)
  })

  test('ends with its nonce, or with its token where that is sooner', async () => {
    const { authorization, ready } = await started()
    const nonceEnd = (ready.executionNonce?.nonce.expires_at as number) * 1_000
    expect(authorization.authorization.expires_at_unix_ms).toBe(nonceEnd)
    const expires_at = Math.floor(Date.now() / 1_000) + 12
    const short = await started(callUnder(tokenOf(kernel, {}, { expires_at })))
    expect(short.authorization.authorization.expires_at_unix_ms).toBe(expires_at * 1_000)
  })

  test('is answered again with the same bytes, after a restart too, and asks for no credential', async () => {
    const { ready, request, start } = await started()
    expect(await startWith(kernel, request, ready)).toEqual(start)
    await restart()
    const executionNonce = ready.executionNonce as NonNullable<typeof ready.executionNonce>
    const again = { arguments: request.params, context: null, executionNonce }
    expect(await kernel.client.call('call_start', { ...again, credentials: { dpop_proof: 'any' } })).toEqual(
      start,
    )
  })

  test('of a host without a flow context is judged under that of its reserve', async () => {
    const request = callUnder(tokenOf(kernel))
    const caller = { callerPublicKey: kernel.caller.publicKey, uid: 0 }
    const { calls } = kernel.running.kernel
    const { executionNonce } = await calls.reserveCall(caller, request)
    if (executionNonce === null) throw new Error('expected a nonce')
    const start = { arguments: request.params, context: null, credentials: {}, executionNonce }
    expect(await calls.start(null, start)).toMatchObject({ state: 'awaiting_caller_report' })
  })

  test('is not repeated for other arguments or with another nonce', async () => {
    const { ready, request } = await started()
    const other = await startWith(kernel, { ...request, params: { note: 'another' } }, ready)
    expect(other).toMatchObject({ authorization: null, code: 'request_binding_mismatch' })
    const nonce = ready.executionNonce as NonNullable<typeof ready.executionNonce>
    const forged = { executionNonce: { ...nonce, signature: '0'.repeat(128) } }
    expect(await startWith(kernel, request, forged)).toMatchObject({ code: 'execution_nonce_binding' })
  })

  test('captures the budget once: it is given back to nobody', async () => {
    const token = tokenOf(kernel, { max_invocations: 1 })
    const { operationId } = await started(callUnder(token))
    await expect(kernel.client.call('cancel', { operationId: operationId as string })).rejects.toMatchObject({
      code: 'operation_state',
    })
    const other = await kernel.client.call('call_preflight', {
      context: { generation: 1, labels: [], schema: 'chio.invocation-context.v1', session_id: 'x' },
      request: callUnder(token),
    })
    expect(other).toMatchObject({ code: 'grant_exhausted' })
  })

  test('of a call that people approved: its attempt was announced before they were asked', async () => {
    const world = await openCallApprovals(1, { callerExecutor: executor.pin })
    try {
      const { operationId, request } = await world.waiting()
      await world.say(operationId, 'lead')
      const ready = await reserveWith(world.kernel, request, await preflight(world.kernel, request))
      const { authorization } = await startWith(world.kernel, request, ready)
      if (authorization === null) throw new Error('expected an authorization')
      const reported = { authorization, report: executor.report(authorization) }
      expect(await world.kernel.client.call('call_reconcile', reported)).toMatchObject({ state: 'completed' })
      const { explanation } = await world.kernel.client.call('explain', { id: operationId })
      const states = explanation.history.map(({ to }) => to)
      expect(states.slice(0, 3)).toEqual(['prepared', 'broker_attempt_registered', 'approval_required'])
      expect(states.slice(-5)).toEqual([
        'capture_pending',
        'dispatch_committed',
        'awaiting_caller_report',
        'finalizing',
        'completed',
      ])
      expect(explanation.attempt).toContain('of executor executor-of-tests of epoch 1')
      const byAttempt = await world.kernel.client.call('explain', {
        id: authorization.authorization.committed.dispatch_commit.provider_attempt.attempt_id,
      })
      expect(byAttempt.operation.operationId).toBe(operationId)
    } finally {
      await world.kernel.remove()
    }
  })

  test('that is refused is a signed receipt, and nothing is authorized', async () => {
    const request = callUnder(tokenOf(kernel))
    const ready = await reservedCall(kernel, request)
    await kernel.client.call('cancel', { operationId: ready.operationId as string })
    const start = await startWith(kernel, request, ready)
    expect(start).toMatchObject({ authorization: null, executionAuthorized: false, verdict: 'deny' })
    if (start.receipt === null) throw new Error('expected a receipt')
    verifyKernelReceipt(start.receipt, kernel.running.publicKeys.kernel)
  })
})
