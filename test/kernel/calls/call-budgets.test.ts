// What a tool call may use up: the budget of its grant and the room for nonces; and calls that never become an operation.
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { MAXIMUM_OPEN_CALLS_OF_AGENT_COUNT } from '../../../protocol/limits.js'
import { TOKEN_NOW_UNIX_SECONDS } from '../../support/capability-tokens.js'
import type { TestKernel } from '../../support/kernel.js'
import {
  callKernel,
  callUnder,
  preflight,
  reservedCall,
  reserveWith,
  tokenOf,
} from '../../support/tool-call.js'

let kernel: TestKernel
beforeAll(async () => {
  kernel = await callKernel()
})
afterAll(() => kernel.remove())

async function withNonces(
  nonce: { readonly capacity: number; readonly ttlSeconds: number },
  body: (own: TestKernel) => Promise<void>,
): Promise<void> {
  const own = await callKernel({ nonce })
  try {
    await body(own)
  } finally {
    await own.remove()
  }
}

describe('budgets', () => {
  test('of calls at once, exactly as many are reserved as the grant allows; a call taken back makes room', async () => {
    const token = tokenOf(kernel, { max_invocations: 2 })
    const asked = Array.from({ length: 5 }, () => callUnder(token))
    const preflighted = await Promise.all(asked.map(request => preflight(kernel, request)))
    const answers = await Promise.all(
      asked.map((request, at) => reserveWith(kernel, request, preflighted[at] ?? { executionNonce: null })),
    )
    const ready = answers.filter(({ state }) => state === 'ready_to_dispatch')
    expect(ready).toHaveLength(2)
    expect(answers.filter(({ code }) => code === 'grant_exhausted')).toHaveLength(3)
    await kernel.client.call('cancel', { operationId: ready[0]?.operationId as string })
    expect(await reservedCall(kernel, callUnder(token))).toMatchObject({ verdict: 'allow' })
    expect(await preflight(kernel, callUnder(token))).toMatchObject({ check: 'budget', operationId: null })
  })

  test('a call under a total without a cap for one invocation is refused: nothing could be held', async () => {
    const token = tokenOf(kernel, { max_total_cost: { currency: 'USD', units: 5 } })
    expect(await preflight(kernel, callUnder(token))).toMatchObject({
      check: 'budget',
      code: 'capability_denied',
    })
  })

  test('what a call may cost is held, and the total is never passed', async () => {
    const usd = (units: number) => ({ currency: 'USD', units })
    const token = tokenOf(kernel, { max_cost_per_invocation: usd(4), max_total_cost: usd(10) })
    const first = await reservedCall(kernel, callUnder(token))
    expect(await reservedCall(kernel, callUnder(token))).toMatchObject({ verdict: 'allow' })
    const denied = {
      code: 'grant_exhausted',
      reason: expect.stringContaining('total_cost of grant 0') as string,
    }
    expect(await preflight(kernel, callUnder(token))).toMatchObject(denied)
    await kernel.client.call('cancel', { operationId: first.operationId as string })
    expect(await preflight(kernel, callUnder(token))).toMatchObject({ verdict: 'allow' })
  })

  test('the ceiling of one capability counts over all its grants', async () => {
    const grants = ['notes', '*'].map(server_id => ({
      operations: ['invoke' as const],
      server_id,
      tool_name: 'append',
    }))
    const ceiling = { max_invocations: 2, scope: 'capability' } as const
    const token = tokenOf(kernel, {}, { aggregate_invocation_budget: ceiling, scope: { grants } })
    const first = await reservedCall(kernel, callUnder(token))
    const waiting = callUnder(token)
    const preflighted = await preflight(kernel, waiting)
    expect(await reservedCall(kernel, callUnder(token))).toMatchObject({ verdict: 'allow' })
    expect(await preflight(kernel, callUnder(token))).toMatchObject({ code: 'grant_exhausted' })
    expect(await reserveWith(kernel, waiting, preflighted)).toMatchObject({
      code: 'grant_exhausted',
      state: 'compensated_before_dispatch',
    })
    await kernel.client.call('cancel', { operationId: first.operationId as string })
    expect(await reservedCall(kernel, callUnder(token))).toMatchObject({ verdict: 'allow' })
    expect(await preflight(kernel, callUnder(token))).toMatchObject({ code: 'grant_exhausted' })
  })

  test('the hold and the nonce of a call that nobody starts are given back when the nonce expires', async () => {
    await withNonces({ capacity: 1, ttlSeconds: 1 }, async own => {
      const token = tokenOf(own, { max_invocations: 1 })
      const { operationId } = await reservedCall(own, callUnder(token))
      await vi.waitFor(async () => {
        const { state } = await own.client.call('inspect', { operationId: operationId as string })
        expect(state).toBe('compensated_before_dispatch')
      }, 10_000)
      expect(await reservedCall(own, callUnder(token))).toMatchObject({ state: 'ready_to_dispatch' })
    })
  })

  test('a store full of nonces refuses, and takes nothing', async () => {
    await withNonces({ capacity: 1, ttlSeconds: 60 }, async own => {
      const token = tokenOf(own, { max_invocations: 2 })
      const first = await reservedCall(own, callUnder(token))
      const waiting = callUnder(token)
      const preflighted = await preflight(own, waiting)
      expect(await reserveWith(own, waiting, preflighted)).toMatchObject({ code: 'execution_nonce_capacity' })
      await own.client.call('cancel', { operationId: first.operationId as string })
      expect(await reserveWith(own, waiting, preflighted)).toMatchObject({ state: 'ready_to_dispatch' })
    })
  })
})

test.each([
  [
    'an expired token',
    () => tokenOf(kernel, {}, { expires_at: TOKEN_NOW_UNIX_SECONDS, issued_at: 1 }),
    'capability_expired',
    'token',
  ],
  ['a tool that nobody registered', () => tokenOf(kernel, { tool_name: '*' }), 'capability_denied', 'target'],
  [
    'another subject',
    () => tokenOf(kernel, {}, { subject: kernel.administrator.publicKey }),
    'capability_denied',
    'subject',
  ],
])('%s is a refusal with a signed receipt, and no operation', async (_what, token, code, check) => {
  const changes = check === 'target' ? { tool: 'delete' } : {}
  const refused = await preflight(kernel, callUnder(token(), changes))
  expect(refused).toMatchObject({ check, code, operationId: null, state: null, verdict: 'deny' })
  expect(refused.receipt).toMatchObject({
    decision: { guard: 'kernel', verdict: 'deny' },
    tool_server: 'notes',
  })
})

describe('open reservations of one agent', () => {
  test('are as many as it may have; what it asked for before is found, and one that ends leaves room', async () => {
    // What is counted is the same where nothing is synced.
    const own = await callKernel({ durableMode: 'off' })
    try {
      const first = callUnder(tokenOf(own))
      const ready = await reservedCall(own, first)
      for (let open = 1; open < MAXIMUM_OPEN_CALLS_OF_AGENT_COUNT; open++) {
        expect(await preflight(own, callUnder(tokenOf(own)))).toMatchObject({ verdict: 'allow' })
      }
      const refused = { check: 'admission', code: 'reservation_capacity', operationId: null, verdict: 'deny' }
      expect(await preflight(own, callUnder(tokenOf(own)))).toMatchObject(refused)
      expect(await preflight(own, first)).toMatchObject({ operationId: ready.operationId, verdict: 'allow' })
      await own.client.call('cancel', { operationId: ready.operationId as string })
      expect(await preflight(own, callUnder(tokenOf(own)))).toMatchObject({ verdict: 'allow' })
    } finally {
      await own.remove()
    }
  })
})
