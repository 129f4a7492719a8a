// A kernel that is killed at a commit of a tool call: the same request again, to its successor, goes on from what is on
// record. One call of the budget is held in the end, by one hold, and nothing is left of a commit that was not reached; a
// start and a report are answered with the same bytes as often as they are asked.
import { rmSync } from 'node:fs'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { KernelClient } from '../../client/kernel-client.js'
import type { KernelConfig } from '../../kernel/config.js'
import { provisionKernel } from '../../kernel/start-kernel.js'
import { systemClock } from '../../native/clock.js'
import type { CallerReport } from '../../protocol/caller-report.js'
import type { SignedExecutionNonce } from '../../protocol/execution-nonce.js'
import { type SigningKey, signingKey } from '../../protocol/keys.js'
import type { ToolCallRequest } from '../../protocol/tool-call.js'
import type { CallAnswer } from '../../protocol/tool-call-rpc.js'
import { TestExecutor } from '../support/caller-executor.js'
import type { CompiledChild } from '../support/compiled-child.js'
import { isFullRun } from '../support/counts.js'
import { clientOf, kernelConfig, makeKernelFolder, seed } from '../support/kernel.js'
import { type KernelSeeds, startKernelChild } from '../support/kernel-child.js'
import { callUnder, contextAt, tokenOf } from '../support/tool-call.js'

/** Several processes are started one after the other. */
const TARGETS = [{ serverId: 'notes', toolName: 'append' }]
const MOMENTS = isFullRun
  ? ['call_preflighted.before', 'call_preflighted.after', 'call_reserved.before', 'call_reserved.after']
  : ['call_reserved.after']
const DELIVERY_MOMENTS = ['call_started', 'call_authorized', 'call_returned', 'call_finished']
  .flatMap(commit => [`${commit}.before`, `${commit}.after`])
  .filter(moment => isFullRun || moment === 'call_started.after')
const executor = new TestExecutor()

let folder: string
let config: KernelConfig
let seeds: KernelSeeds
let caller: SigningKey
let serving: { child: CompiledChild; client: KernelClient } | undefined
beforeEach(async () => {
  folder = makeKernelFolder()
  caller = signingKey(seed())
  const people = { administrator: signingKey(seed()), broker: signingKey(seed()), caller }
  // A nonce lasts as long as three kernels need to start on a busy machine.
  config = kernelConfig(folder, { ...people, nonce: { capacity: 2, ttlSeconds: 120 } })
  seeds = { authority: seed(), issuer: seed(), kernel: seed(), storage: seed() }
  await provisionKernel(config, systemClock)
})
afterEach(async () => {
  await end()
  rmSync(folder, { recursive: true, force: true })
})

async function serve(cutpoint = ''): Promise<KernelClient> {
  await end()
  const calls = { executor: executor.pin, targets: TARGETS }
  const { child, said } = await startKernelChild(config, seeds, cutpoint, calls)
  expect(said['sentence']).toBeUndefined()
  serving = { child, client: clientOf(config) }
  return serving.client
}

async function end(): Promise<void> {
  serving?.client.close()
  await serving?.child.kill()
  serving = undefined
}

async function reserve(client: KernelClient, request: ToolCallRequest): Promise<CallAnswer> {
  const { executionNonce } = await client.call('call_preflight', { context: contextAt(1), request })
  return client.call('call_reserve', { context: contextAt(2), executionNonce, request })
}

test.each(MOMENTS)('a kernel killed at %s holds the call once in the end', async moment => {
  const keys = { issuer: signingKey(seeds.issuer) }
  const token = tokenOf({ caller, keys }, { max_invocations: 1 })
  const request = callUnder(token)
  const doomed = await serve(`kernel.${moment}`)
  await expect(reserve(doomed, request)).rejects.toMatchObject({ code: 'kernel_unavailable' })
  expect((await serving?.child.ended())?.signal).toBe('SIGKILL')
  const client = await serve()
  const ready = await reserve(client, request)
  expect(ready).toMatchObject({ state: 'ready_to_dispatch', verdict: 'allow' })
  expect(await reserve(client, request)).toEqual(ready)
  const other = await client.call('call_preflight', { context: contextAt(1), request: callUnder(token) })
  expect(other).toMatchObject({ code: 'grant_exhausted', verdict: 'deny' })
  await client.call('cancel', { operationId: ready.operationId as string })
  expect(await reserve(client, callUnder(token))).toMatchObject({ state: 'ready_to_dispatch' })
})

/** Start and report, with the one report that its executor retained. */
async function deliver(client: KernelClient, request: ToolCallRequest, retained: CallerReport[]) {
  const { executionNonce } = await client.call('call_preflight', { context: contextAt(1), request })
  const nonce = executionNonce ?? nonces.get(request.id)
  if (nonce === undefined) throw new Error('expected the nonce of the call')
  nonces.set(request.id, nonce)
  const start = { arguments: request.params, context: null, credentials: {}, executionNonce: nonce }
  const { authorization, reason } = await client.call('call_start', start)
  if (authorization === null) throw new Error(`expected an authorization, got ${reason}`)
  const [report = executor.report(authorization)] = retained
  retained[0] = report
  return { authorization, reported: await client.call('call_reconcile', { authorization, report }) }
}
const nonces = new Map<string, SignedExecutionNonce>()

test.each(DELIVERY_MOMENTS)('a kernel killed at %s has delivered the call once in the end', async moment => {
  const keys = { issuer: signingKey(seeds.issuer) }
  const token = tokenOf({ caller, keys }, { max_invocations: 1 })
  const request = callUnder(token)
  const doomed = await serve(`kernel.${moment}`)
  await reserve(doomed, request)
  const retained: CallerReport[] = []
  await expect(deliver(doomed, request, retained)).rejects.toMatchObject({
    code: 'kernel_unavailable',
    outcome: 'unknown',
  })
  expect((await serving?.child.ended())?.signal).toBe('SIGKILL')
  const client = await serve()
  const first = await deliver(client, request, retained)
  expect(first.reported).toMatchObject({ output: { value: { written: true } }, state: 'completed' })
  expect(await deliver(client, request, retained)).toEqual(first)
  expect(await deliver(await serve(), request, retained)).toEqual(first)
  const other = await serving?.client.call('call_preflight', {
    context: contextAt(1),
    request: callUnder(token),
  })
  expect(other).toMatchObject({ code: 'grant_exhausted', verdict: 'deny' })
})
