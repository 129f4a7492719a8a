// A host's side of the tool-call sequence, over the kernel's own socket.
import { afterEach, beforeEach, expect, test } from 'vitest'
import { preflightCall, reserveAfterPreflight, startReserved } from '../../client/tool-calls.js'
import type { TestKernel } from '../support/kernel.js'
import { callKernel, callUnder, contextAt, tokenOf } from '../support/tool-call.js'

let kernel: TestKernel
beforeEach(async () => {
  kernel = await callKernel()
})
afterEach(() => kernel.remove())

test('leads from the preflight over a refreshed context to the start', async () => {
  const request = callUnder(tokenOf(kernel))
  const preflight = await preflightCall(kernel.client, request, contextAt(1))
  const ready = await reserveAfterPreflight(kernel.client, request, preflight, contextAt(2))
  expect(ready).toMatchObject({ state: 'ready_to_dispatch', verdict: 'allow' })
  expect(await startReserved(kernel.client, request, ready, { context: contextAt(3) })).toMatchObject({
    code: 'executor_unpinned',
  })
})

test('ends by name where a preflight or a reserve answered no nonce', async () => {
  const request = callUnder(tokenOf(kernel), { tool: 'delete' })
  const refused = await preflightCall(kernel.client, request, contextAt(1))
  expect(refused.verdict).toBe('deny')
  expect(() => reserveAfterPreflight(kernel.client, request, refused, contextAt(2))).toThrow(
    'durable admission failed: preflight returned no nonce; inspect its decision',
  )
  expect(() => startReserved(kernel.client, request, refused, { context: contextAt(2) })).toThrow(
    'durable admission failed: reserve returned no nonce; inspect its decision',
  )
})
