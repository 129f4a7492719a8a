// Caller delivery over the kernel's own socket: a start that is answered with one signed authorization, and the report
// that ends it, once.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { verifyForClaim } from '../../../protocol/caller-authorization.js'
import type { CallerAuthorization } from '../../../protocol/caller-authorization.js'
import type { CallerReport } from '../../../protocol/caller-report.js'
import { canonicalBytes } from '../../../protocol/canonical.js'
import { capabilityTokenHash } from '../../../protocol/capability-token.js'
import { encode } from '../../../protocol/codec.js'
import { sha256Hex } from '../../../protocol/digest.js'
import { valueHash, verifyKernelReceipt } from '../../../protocol/kernel-receipt.js'
import { CapabilityReference } from '../../../protocol/kernel-rpc.js'
import type { ToolCallRequest } from '../../../protocol/tool-call.js'
import { TestExecutor } from '../../support/caller-executor.js'
import { approve, type TestKernel, type TestKernelOptions } from '../../support/kernel.js'
import { callKernel, callUnder, reservedCall, startWith, tokenOf } from '../../support/tool-call.js'

const executor = new TestExecutor()
const stranger = new TestExecutor()
const targets = [{ serverId: 'notes', toolName: 'append' }]
let kernel: TestKernel
beforeAll(async () => {
  kernel = await callKernel({ callerExecutor: executor.pin })
})
afterAll(() => kernel.remove())

const restart = (options: TestKernelOptions) => kernel.restart({ toolCalls: { targets }, ...options })
const inspect = (operationId: string | null) =>
  kernel.client.call('inspect', { operationId: operationId as string })
const stateOf = async (operationId: string | null) => (await inspect(operationId)).state
const report = (authorization: CallerAuthorization, signed: CallerReport) =>
  kernel.client.call('call_reconcile', { authorization, report: signed })

async function started(request: ToolCallRequest = callUnder(tokenOf(kernel))) {
  const ready = await reservedCall(kernel, request)
  const start = await startWith(kernel, request, ready)
  const { authorization } = start
  if (authorization === null) throw new Error(`expected an authorization, got ${start.reason}`)
  return { authorization, operationId: ready.operationId, ready, request, start }
}

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
    await restart({ callerExecutor: executor.pin })
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

describe('a report', () => {
  test('ends its call with the output, attested by its executor, and again with the same receipt', async () => {
    const { authorization, operationId } = await started()
    const signed = executor.report(authorization)
    const first = await report(authorization, signed)
    expect(first).toMatchObject({
      executionAuthorized: false,
      output: { kind: 'value', value: { written: true } },
      receipt: {
        content_hash: sha256Hex(canonicalBytes({ written: true })),
        decision: { verdict: 'allow' },
        metadata: {
          attested_by: 'executor',
          caller_delivery: {
            claim_id: signed.report.claim_id,
            executor: executor.pin,
            schema: 'chio.authenticated-caller-observation.v1',
          },
        },
        tool_origin: 'caller_executed',
      },
      state: 'completed',
      verdict: 'allow',
    })
    expect(await report(authorization, signed)).toEqual(first)
    await restart({ callerExecutor: executor.pin })
    expect(await report(authorization, signed)).toEqual(first)
    expect((await inspect(operationId)).settlement).toBe("settled by its executor's report")
  })

  test('is taken of a call whose token was revoked after its start', async () => {
    const { authorization, request } = await started()
    await revoke(request)
    expect(await report(authorization, executor.report(authorization))).toMatchObject({ state: 'completed' })
  })

  const cases: [string, string, (authorization: CallerAuthorization) => CallerReport][] = [
    ['of another executor', 'caller_delivery_binding', a => stranger.report(a, { executor: stranger.pin })],
    [
      'of another authorization',
      'caller_delivery_binding',
      a => executor.report(a, { authorization_digest: 'a'.repeat(64) }),
    ],
    [
      'whose output was changed',
      'caller_delivery_signature',
      a => {
        const signed = executor.report(a)
        return { ...signed, report: { ...signed.report, output: 'other' } }
      },
    ],
    [
      'that began too late',
      'caller_delivery_expired',
      a => {
        const late = a.authorization.expires_at_unix_ms
        return executor.report(a, { completed_at_unix_ms: late, execution_started_at_unix_ms: late })
      },
    ],
    [
      'that ended in the future',
      'caller_delivery_expired',
      a => executor.report(a, { completed_at_unix_ms: a.authorization.not_before_unix_ms + 86_400_000 }),
    ],
  ]
  test.each(cases)('%s is refused as %s, and the original is taken afterwards', async (_what, code, make) => {
    const { authorization, operationId } = await started()
    const before = await inspect(operationId)
    const refused = await report(authorization, make(authorization))
    expect(refused).toMatchObject({ check: 'admission', code, output: null, verdict: 'deny' })
    expect(refused.receipt?.decision).toMatchObject({ verdict: 'deny' })
    expect(await inspect(operationId)).toEqual(before)
    expect(await report(authorization, executor.report(authorization))).toMatchObject({ state: 'completed' })
  })

  test('under an authorization that this kernel never signed is refused', async () => {
    const [one, other] = [await started(), await started()]
    const forged = { ...one.authorization, signature: other.authorization.signature }
    const refused = await report(forged, executor.report(forged))
    expect(refused).toMatchObject({ code: 'caller_delivery_binding' })
    expect(await stateOf(one.operationId)).toBe('awaiting_caller_report')
  })

  test('that conflicts with the retained one is refused, and the first answer stands', async () => {
    const { authorization } = await started()
    const signed = executor.report(authorization)
    const first = await report(authorization, signed)
    expect(await report(authorization, executor.report(authorization, { output: 'another' }))).toMatchObject({
      code: 'conflict',
      reason: expect.stringContaining('conflicts with retained authenticated delivery') as string,
    })
    expect(await report(authorization, signed)).toEqual(first)
  })

  test('that is brought by several at once ends its call once', async () => {
    const { authorization } = await started()
    const signed = executor.report(authorization)
    const calls = kernel.running.kernel.calls
    const answers = await Promise.all(
      [1, 2, 3].map(() => calls.reconcile(null, { authorization, report: signed })),
    )
    expect(answers.filter(({ state }) => state === 'completed')).toHaveLength(1)
    expect(answers.filter(({ reason }) => reason?.includes('already being evaluated'))).toHaveLength(2)
    expect(await report(authorization, signed)).toMatchObject({ state: 'completed' })
  })

  test('of a call that was not started names the commitment that it preceded', async () => {
    const { authorization } = await started()
    const request = callUnder(tokenOf(kernel))
    const { operationId } = await reservedCall(kernel, request)
    const early = ofRequest(authorization, request.id)
    expect(await report(early, executor.report(early))).toMatchObject({
      code: 'operation_state',
      operationId,
      reason: expect.stringContaining('preceded dispatch commitment') as string,
    })
  })

  test('of nothing that was asked here names the original that is absent', async () => {
    const { authorization } = await started()
    const foreign = ofRequest(authorization, 'nothing')
    expect(await report(foreign, executor.report(foreign))).toMatchObject({
      code: 'operation_unknown',
      operationId: null,
      reason: expect.stringContaining('original request is absent') as string,
    })
  })
})

/** The same authorization, as if it were another request's. */
function ofRequest(signed: CallerAuthorization, request_id: string): CallerAuthorization {
  const { authorization } = signed
  return {
    ...signed,
    authorization: { ...authorization, invocation: { ...authorization.invocation, request_id } },
  }
}

async function revoke({ capability_token: { id } }: ToolCallRequest): Promise<void> {
  const payload = encode(CapabilityReference, { capabilityId: id })
  await kernel.client.call(
    'revoke_capability',
    { capabilityId: id },
    approve(kernel, 'revoke_capability', payload),
  )
}
