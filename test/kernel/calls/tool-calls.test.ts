// The tool-call API over the kernel's own socket: preflight, refreshed context, reserve with the nonce, start.
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { CallGuard } from '../../../kernel/calls/evaluate-call.js'
import { kernelStorePath } from '../../../kernel/start-kernel.js'
import { verifyKernelReceipt } from '../../../protocol/kernel-receipt.js'
import type { TestKernel } from '../../support/kernel.js'
import {
  callKernel,
  callUnder,
  contextAt,
  preflight,
  reservedCall,
  reserveWith,
  startWith,
  tokenOf,
} from '../../support/tool-call.js'

let kernel: TestKernel
/** Labels in the order in which the guard saw them. */
const seen: string[] = []
const guard: CallGuard = {
  name: 'information-flow',
  judge({ context: { labels } }) {
    seen.push(labels.join())
    return labels.includes('secret') ? 'a secret was read in this session' : null
  },
}
beforeAll(async () => {
  kernel = await callKernel({}, [guard])
})
afterAll(() => kernel.remove())

const stateOf = async (operationId: string | null) =>
  (await kernel.client.call('inspect', { operationId: operationId as string })).state

test('a call is prepared by its preflight, made ready by its reserve, and no answer lets anybody execute', async () => {
  const request = callUnder(tokenOf(kernel))
  const preflighted = await preflight(kernel, request)
  expect(preflighted).toMatchObject({ executionAuthorized: false, state: 'prepared', verdict: 'allow' })
  const ready = await reserveWith(kernel, request, preflighted)
  expect(ready).toMatchObject({
    executionAuthorized: false,
    executionNonce: preflighted.executionNonce,
    operationId: preflighted.operationId,
    state: 'ready_to_dispatch',
    verdict: 'allow',
  })
  expect(ready.receipt?.decision).toEqual({ verdict: 'allow' })
  if (ready.receipt === null) throw new Error('expected the receipt of the reserve')
  verifyKernelReceipt(ready.receipt, kernel.running.publicKeys.kernel)
})

test('without a pinned executor a start is refused by name, with a receipt, and the call stays ready', async () => {
  const request = callUnder(tokenOf(kernel))
  const ready = await reservedCall(kernel, request)
  const start = await startWith(kernel, request, ready)
  expect(start).toMatchObject({
    check: 'admission',
    code: 'executor_unpinned',
    executionAuthorized: false,
    reason: expect.stringMatching(
      /^durable admission failed: start of .* expected a pinned executor/,
    ) as string,
    verdict: 'deny',
  })
  expect(start.receipt?.decision).toMatchObject({ guard: 'kernel', verdict: 'deny' })
  expect(await stateOf(ready.operationId)).toBe('ready_to_dispatch')
})

describe('the same request again', () => {
  test('finds its operation in every state, with the same nonce', async () => {
    const request = callUnder(tokenOf(kernel))
    const first = await preflight(kernel, request)
    expect(await preflight(kernel, request)).toEqual(first)
    const ready = await reserveWith(kernel, request, first)
    expect(await reserveWith(kernel, request, first)).toEqual(ready)
    expect((await preflight(kernel, request)).executionNonce).toEqual(first.executionNonce)
  })

  test('goes on after a restart from where it stood: recovery adopts what lives', async () => {
    const [prepared, ready] = [callUnder(tokenOf(kernel)), callUnder(tokenOf(kernel))]
    const preflighted = await preflight(kernel, prepared)
    const reserved = await reservedCall(kernel, ready)
    await kernel.restart({
      toolCalls: { guards: [guard], targets: [{ serverId: 'notes', toolName: 'append' }] },
    })
    expect(await reserveWith(kernel, prepared, preflighted)).toMatchObject({ state: 'ready_to_dispatch' })
    expect(await startWith(kernel, ready, reserved)).toMatchObject({ code: 'executor_unpinned' })
  })
})

describe('between preflight and reserve', () => {
  test.each([
    ['arguments', { params: { note: 'another' } }],
    ['the tool', { tool: 'delete' }],
    ['an intent', { governed_intent: { purpose: 'another' } }],
  ])('%s that changed are a mismatch, and the original is unchanged', async (_what, changes) => {
    const request = callUnder(tokenOf(kernel))
    const preflighted = await preflight(kernel, request)
    const refused = await reserveWith(kernel, { ...request, ...changes }, preflighted)
    expect(refused).toMatchObject({
      code: 'request_binding_mismatch',
      reason: expect.stringMatching(/^durable admission failed: request_binding_mismatch: /) as string,
      verdict: 'deny',
    })
    expect(await stateOf(preflighted.operationId)).toBe('prepared')
    expect(await reserveWith(kernel, request, preflighted)).toMatchObject({ state: 'ready_to_dispatch' })
  })

  test('another token for the same call is a mismatch too', async () => {
    const request = callUnder(tokenOf(kernel))
    const preflighted = await preflight(kernel, request)
    const other = { ...request, capability_token: tokenOf(kernel) }
    expect(await reserveWith(kernel, other, preflighted)).toMatchObject({ code: 'request_binding_mismatch' })
  })

  test('the nonce of another call is refused by name and changes neither', async () => {
    const [one, other] = [callUnder(tokenOf(kernel)), callUnder(tokenOf(kernel))]
    const [ofOne, ofOther] = [await preflight(kernel, one), await preflight(kernel, other)]
    expect(await reserveWith(kernel, one, ofOther)).toMatchObject({
      code: 'execution_nonce_binding',
      reason: expect.stringContaining(
        'durable admission failed: urn:chio:error:kernel:execution-nonce-binding',
      ) as string,
    })
    expect(await stateOf(ofOne.operationId)).toBe('prepared')
    expect(await stateOf(ofOther.operationId)).toBe('prepared')
  })

  test('a reserve without a nonce is refused by name', async () => {
    const request = callUnder(tokenOf(kernel))
    await preflight(kernel, request)
    expect(await reserveWith(kernel, request, { executionNonce: null })).toMatchObject({
      reason: expect.stringMatching(
        /^durable admission failed: preflight returned no nonce; inspect its decision/,
      ) as string,
      verdict: 'deny',
    })
  })

  test.each([
    ['an older generation', contextAt(0)],
    ['another session', { ...contextAt(2), session_id: 'session-2' }],
    ['other labels in the same generation', contextAt(1, ['public'])],
  ])('%s of the context is refused, and a fresh one goes on', async (_what, context) => {
    const request = callUnder(tokenOf(kernel))
    const preflighted = await preflight(kernel, request)
    expect(await reserveWith(kernel, request, preflighted, context)).toMatchObject({ code: 'context_stale' })
    expect(await reserveWith(kernel, request, preflighted)).toMatchObject({ state: 'ready_to_dispatch' })
  })

  test('a guard sees the refreshed labels; what it denies is taken back with its hold', async () => {
    const token = tokenOf(kernel, { max_invocations: 1 })
    const request = callUnder(token)
    seen.length = 0
    const preflighted = await preflight(kernel, request)
    const refused = await reserveWith(kernel, request, preflighted, contextAt(2, ['secret']))
    expect(seen).toEqual(['', 'secret'])
    expect(refused).toMatchObject({
      check: 'guard',
      code: 'guard_denied',
      receipt: {
        decision: { guard: 'information-flow', reason: 'a secret was read in this session', verdict: 'deny' },
        evidence: [{ guard_name: 'information-flow', verdict: false }],
      },
      state: 'compensated_before_dispatch',
    })
    expect(await reserveWith(kernel, request, preflighted)).toMatchObject({
      code: 'operation_state',
      reason: expect.stringContaining(
        'has ended as compensated_before_dispatch: a secret was read',
      ) as string,
    })
    expect(await reservedCall(kernel, callUnder(token))).toMatchObject({ state: 'ready_to_dispatch' })
  })
})

describe('a start', () => {
  test('from any state but ready_to_dispatch is refused with the state found and the next step', async () => {
    const request = callUnder(tokenOf(kernel))
    const preflighted = await preflight(kernel, request)
    expect(await startWith(kernel, request, preflighted)).toHaveProperty(
      'reason',
      expect.stringMatching(
        /^durable admission failed: .* expected ready_to_dispatch, got prepared; refresh the context and reserve/,
      ),
    )
    await kernel.client.call('cancel', { operationId: preflighted.operationId as string })
    expect(await startWith(kernel, request, preflighted)).toMatchObject({
      code: 'operation_state',
      reason: expect.stringContaining('got compensated_before_dispatch; nothing was started') as string,
    })
  })

  test('of arguments that an unresolved call has too is refused where the configuration says so', async () => {
    const strict = await callKernel({ onSharedArguments: 'refuse' })
    try {
      const [one, other] = [callUnder(tokenOf(strict)), callUnder(tokenOf(strict))]
      const ready = await reservedCall(strict, one)
      await reservedCall(strict, other)
      expect(await startWith(strict, one, ready)).toMatchObject({ code: 'operation_shares_arguments' })
    } finally {
      await strict.remove()
    }
  })

  test('with other arguments, an older context or a nonce of nothing is refused and changes nothing', async () => {
    const request = callUnder(tokenOf(kernel))
    const ready = await reservedCall(kernel, request)
    const { executionNonce } = ready
    if (executionNonce === null) throw new Error('expected a nonce')
    const start = { arguments: request.params, context: contextAt(3), credentials: {}, executionNonce }
    const other = { ...executionNonce.nonce.bound_to, request_id: 'nothing' }
    const foreign = { ...executionNonce, nonce: { ...executionNonce.nonce, bound_to: other } }
    const codes = []
    for (const changes of [
      { arguments: { note: 'another' } },
      { context: contextAt(1) },
      { executionNonce: foreign },
      { executionNonce: { ...executionNonce, signature: '0'.repeat(128) } },
      { credentials: { dpop_proof: 'a proof' } },
      { credentials: { declassification_grant: 'a grant' } },
    ]) {
      codes.push((await kernel.client.call('call_start', { ...start, ...changes })).code)
    }
    expect(codes).toEqual([
      'request_binding_mismatch',
      'context_stale',
      'operation_unknown',
      'execution_nonce_signature',
      'possession_denied',
      'authorization_denied',
    ])
    expect(await stateOf(ready.operationId)).toBe('ready_to_dispatch')
  })
})

test('a call is inspected like any operation, and its arguments rest encrypted', async () => {
  const request = callUnder(tokenOf(kernel))
  const { operationId } = await reservedCall(kernel, request)
  const inspected = await kernel.client.call('inspect', { operationId: operationId as string })
  expect(inspected).toMatchObject({
    attemptId: null,
    document: {
      attachments: {
        budget_hold_id: `budget-hold:${request.id}:${request.capability_token.id}:0`,
        nonce_issuance_digest: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
        nonce_preflight_digest: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
      },
      binding: {
        request_binding: { participant_requirements: { broker_attempt: false, budget_capture: true } },
      },
    },
    grantId: request.capability_token.id,
    invocationId: request.id,
  })
  kernel.client.close()
  await kernel.running.close()
  expect(readFileSync(kernelStorePath(kernel.config)).includes('needle in the arguments')).toBe(false)
})
