// The report that ends a started call, over the kernel's own socket: believed under one authorization, taken once.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { CallerAuthorization } from '../../../protocol/caller-authorization.js'
import type { CallerReport } from '../../../protocol/caller-report.js'
import { encode } from '../../../protocol/codec.js'
import { valueHash } from '../../../protocol/kernel-receipt.js'
import { CapabilityReference } from '../../../protocol/kernel-rpc.js'
import type { ToolCallRequest } from '../../../protocol/tool-call.js'
import { TestExecutor } from '../../support/caller-executor.js'
import { approve, type TestKernel } from '../../support/kernel.js'
import { callKernel, callUnder, reservedCall, startedCall, tokenOf } from '../../support/tool-call.js'

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
const stateOf = async (operationId: string | null) => (await inspect(operationId)).state
const stranger = new TestExecutor()
const report = (authorization: CallerAuthorization, signed: CallerReport) =>
  kernel.client.call('call_reconcile', { authorization, report: signed })

describe('a report', () => {
  test('ends its call with the output, attested by its executor, and again with the same receipt', async () => {
    const { authorization, operationId } = await started()
    const signed = executor.report(authorization)
    const first = await report(authorization, signed)
    expect(first).toMatchObject({
      executionAuthorized: false,
      output: { kind: 'value', value: { written: true } },
      receipt: {
        content_hash: valueHash({ written: true }),
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
    await restart()
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
