// A kernel that is killed at a durable boundary of an operation: the same request again, to its successor, has the same
// answer. What is on record then, the crash table shows.
import { rmSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { KernelClient } from '../../client/kernel-client.js'
import type { KernelConfig } from '../../kernel/config.js'
import { provisionKernel } from '../../kernel/start-kernel.js'
import { systemClock } from '../../native/clock.js'
import { encode } from '../../protocol/codec.js'
import { Grant } from '../../protocol/grant.js'
import { MAXIMUM_CLOCK_SKEW_SECONDS } from '../../protocol/limits.js'
import { signingKey } from '../../protocol/keys.js'
import {
  announce,
  executeOf,
  failureOf,
  NOT_COMMITTED,
  receiptOf,
  requestUnder,
} from '../support/brokered-operation.js'
import type { CompiledChild } from '../support/compiled-child.js'
import { isFullRun } from '../support/counts.js'
import { approve, clientOf, grantFor, kernelConfig, makeKernelFolder, seed } from '../support/kernel.js'
import { startKernelChild } from '../support/kernel-child.js'

/** Several processes are started one after the other. */
const people = { administrator: signingKey(seed()), broker: signingKey(seed()), caller: signingKey(seed()) }

/** A commit that was not reached is the lesser case: the request then simply comes for the first time. */
const MOMENTS = isFullRun ? ['before', 'after'] : ['after']

let folder: string
let config: KernelConfig
let seeds: Parameters<typeof startKernelChild>[1]
let serving: { child: CompiledChild; client: KernelClient } | undefined
beforeEach(async () => {
  folder = makeKernelFolder()
  // An exact retry keeps its proof: its time has to last as long as three kernels need to start on a busy machine.
  config = { ...kernelConfig(folder, people), clockSkewSeconds: MAXIMUM_CLOCK_SKEW_SECONDS }
  seeds = { authority: seed(), issuer: seed(), kernel: seed(), storage: seed() }
  await provisionKernel(config, systemClock)
})
afterEach(async () => {
  await end()
  rmSync(folder, { recursive: true, force: true })
})

async function serve(cutpoint = ''): Promise<KernelClient> {
  await end()
  const { child, said } = await startKernelChild(config, seeds, cutpoint)
  expect(said['sentence']).toBeUndefined()
  serving = { child, client: clientOf(config) }
  return serving.client
}

async function end(): Promise<void> {
  serving?.client.close()
  await serving?.child.kill()
  serving = undefined
}

/** One operation, step by step; each step can be asked again with the very same bytes. */
function operation(grant: Grant) {
  const request = requestUnder(grant)
  const announced = announce(people, grant, request)
  const authorization = approve(people, 'issue_grant', encode(Grant, grant))
  const issue = (client: KernelClient) => client.call('issue_grant', grant, authorization)
  const reserve = (client: KernelClient) => client.call('reserve', announced)
  const register = async (client: KernelClient) => {
    const answer = await reserve(client)
    const execute = executeOf(people, announced, answer, request)
    const { operationId } = answer
    const { registration } = await client.call('authorize_registration', { execute, operationId })
    return { announced, answer, execute, operationId, registration }
  }
  const start = async (client: KernelClient) => {
    const { executionNonce, operationId } = await reserve(client)
    return client.call('start', { executionNonce, operationId })
  }
  return { issue, register, reserve, start }
}

async function killedAt(cutpoint: string, step: (client: KernelClient) => Promise<unknown>): Promise<void> {
  const client = await serve(cutpoint)
  await expect(step(client)).rejects.toMatchObject({ code: 'kernel_unavailable' })
  expect((await serving?.child.ended())?.signal).toBe('SIGKILL')
}

describe('a kernel killed', () => {
  test.each(MOMENTS)('at the reservation, %s, holds one execution in the end', async moment => {
    const grant = grantFor(people)
    const { issue, reserve } = operation(grant)
    await issue(await serve())
    await killedAt(`kernel.reserved.${moment}`, reserve)
    const client = await serve()
    const before = await client.call('show_grant', { grantId: grant.grantId })
    expect(before.held).toBe(moment === 'after' ? 1 : 0)
    const answer = await reserve(client)
    expect(await reserve(client)).toEqual(answer)
    expect((await client.call('show_grant', { grantId: grant.grantId })).held).toBe(1)
  })

  test.each(MOMENTS)('at the registration, %s, signs over the same one', async moment => {
    const { issue, register, reserve } = operation(grantFor(people))
    await issue(await serve())
    await reserve(await serve())
    await killedAt(`kernel.registration_retained.${moment}`, register)
    const client = await serve()
    const { registration } = await register(client)
    expect((await register(client)).registration).toEqual(registration)
  })

  test('between start and its answer gives the same start again and has captured once', async () => {
    const grant = grantFor(people)
    const steps = operation(grant)
    const first = await serve()
    await steps.issue(first)
    await steps.register(first)
    await killedAt('kernel.dispatch_committed.after', steps.start)
    const client = await serve()
    const view = await client.call('show_grant', { grantId: grant.grantId })
    expect(view).toMatchObject({ executions: 1, held: 0 })
    const started = await steps.start(client)
    expect(started.captured.leaderEpoch).toBe(2)
    await end()
    expect(await steps.start(await serve())).toEqual(started)
  })

  test('just before the start is committed has captured nothing and starts then', async () => {
    const grant = grantFor(people)
    const steps = operation(grant)
    const first = await serve()
    await steps.issue(first)
    await steps.register(first)
    await killedAt('kernel.dispatch_committed.before', steps.start)
    const client = await serve()
    expect(await client.call('show_grant', { grantId: grant.grantId })).toMatchObject({
      executions: 0,
      held: 1,
    })
    expect((await steps.start(client)).captured.leaderEpoch).toBe(3)
  })

  test.each(MOMENTS)('at the end, %s, ends once and the same record is known', async moment => {
    const steps = operation(grantFor(people))
    const first = await serve()
    await steps.issue(first)
    const registered = await steps.register(first)
    const { captured } = await steps.start(first)
    const { operationId } = registered
    const record = receiptOf(people, { ...registered, captured })
    await killedAt(`kernel.finalized.${moment}`, client => client.call('finalize', { operationId, record }))
    const client = await serve()
    const found = await client.call('inspect', { operationId })
    expect(found.state).toBe(moment === 'after' ? 'completed' : 'dispatch_committed')
    expect((await client.call('finalize', { operationId, record })).state).toBe('completed')
    const other = failureOf(people, registered, NOT_COMMITTED)
    await expect(client.call('finalize', { operationId, record: other })).rejects.toMatchObject({
      code: 'conflict',
    })
  })

  test.each(MOMENTS)('at a cancellation, %s, gives the execution back once', async moment => {
    const grant = grantFor(people)
    const steps = operation(grant)
    const first = await serve()
    await steps.issue(first)
    const { operationId } = await steps.reserve(first)
    await killedAt(`kernel.compensated.${moment}`, client => client.call('cancel', { operationId }))
    const client = await serve()
    expect((await client.call('cancel', { operationId })).state).toBe('compensated_before_dispatch')
    expect(await client.call('show_grant', { grantId: grant.grantId })).toMatchObject({
      executions: 0,
      held: 0,
    })
  })

  test.each(MOMENTS)('at the issue of a grant, %s, has issued it once', async moment => {
    const grant = grantFor(people)
    const { issue } = operation(grant)
    await killedAt(`kernel.grant_issued.${moment}`, issue)
    const client = await serve()
    const issued = await issue(client)
    expect(await issue(client)).toEqual(issued)
    expect((await client.call('list_grants', { limit: 10 })).grants).toHaveLength(1)
  })
})

describe('two kernels', () => {
  test('started on one store: exactly one serves, the other names it', async () => {
    await serve()
    const second = await startKernelChild(config, seeds)
    expect(second.said).toMatchObject({ code: 'another_instance' })
    expect(second.said['sentence']).toContain(String(serving?.child.process.pid))
    await second.child.ended()
    expect((await serving?.client.call('status', {}))?.ownerEpoch).toBe(1)
  })
})
