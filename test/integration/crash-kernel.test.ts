// A kernel that is killed around its commits while a host runs: the host never starts again and says what is known,
// the store of the successor says what was committed, and what is open is settled without a person.
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import type { CompiledChild } from '../support/compiled-child.js'
import { beforeStep } from '../support/host-steps.js'
import { startKernelOf } from '../support/kernel-of-trial.js'
import { TrialWorld } from '../support/trial-world.js'

const NONCE_SECONDS = 5
const TIMEOUT_MS = 1_000
const SETTLEMENT_MS = 30_000 + TIMEOUT_MS + 10_000 + 1_000

vi.setConfig({ testTimeout: 60_000 })

let world: TrialWorld
beforeAll(async () => {
  world = await TrialWorld.begin({ executionNonceSeconds: NONCE_SECONDS })
})
afterAll(() => world?.end())
afterEach(() => vi.restoreAllMocks())

const timed = { timeoutMs: TIMEOUT_MS }

async function stateOf(operationId: string): Promise<string> {
  return (await world.operation(operationId)).state
}

async function attemptOf(operationId: string) {
  const { attemptId } = await world.operation(operationId)
  return world.attempt(attemptId ?? '')
}

/** Runs with a kernel that ends itself at a cutpoint of the start. @returns the operation, with the kernel dead. */
async function killedAtStart(cutpoint: string): Promise<string> {
  await world.trial.kill('kernel')
  const dying = await startKernelOf(world.trial, { cutpoint })
  const error = await world.refusedRun(undefined, timed)
  expect((await dying.ended()).signal).toBe('SIGKILL')
  expect(error).toMatchObject({ code: 'outcome_undetermined', outcome: 'unknown' })
  expect((await world.slot()).state).toBe('free')
  return error.operationId ?? ''
}

/** A kernel whose clock is past every deadline takes the store over for one look. */
async function lookedAtLater(look: () => Promise<void>): Promise<void> {
  await world.trial.kill('kernel')
  const later: CompiledChild = await startKernelOf(world.trial, { aheadMs: SETTLEMENT_MS })
  try {
    await look()
  } finally {
    await later.kill()
    await world.trial.start('kernel')
  }
}

describe('a kernel killed', () => {
  test('between the commit of a start and its answer has started, and settles it as not accepted', async () => {
    const before = await world.touches()
    const operationId = await killedAtStart('kernel.dispatch_committed.after')
    await world.trial.start('kernel')
    expect(await stateOf(operationId)).toBe('dispatch_committed')
    expect(await attemptOf(operationId)).toMatchObject({ state: 'failed', reason: 'stream_closed' })
    await lookedAtLater(async () => {
      const patience = { timeout: 10_000 }
      await expect.poll(() => stateOf(operationId), patience).toBe('not_accepted_after_dispatch_commit')
    })
    expect(await world.touches()).toEqual(before)
  })

  test('before the commit of a start has started nothing, and gives the hold back', async () => {
    const before = await world.touches()
    const operationId = await killedAtStart('kernel.dispatch_committed.before')
    await world.trial.start('kernel')
    expect(['ready_to_dispatch', 'compensated_before_dispatch']).toContain(await stateOf(operationId))
    const patience = { timeout: (NONCE_SECONDS + 5) * 1_000 }
    await expect.poll(() => stateOf(operationId), patience).toBe('compensated_before_dispatch')
    expect(await attemptOf(operationId)).toMatchObject({ state: 'failed' })
    expect(await world.touches()).toEqual(before)
  })

  test('before anything was reserved says that it is away, and that nothing was started', async () => {
    await world.trial.kill('kernel')
    const error = await world.refusedRun(undefined, timed)
    expect(error).toMatchObject({ code: 'kernel_unavailable', outcome: 'not_started' })
    await world.trial.start('kernel')
  })

  test('between reservation and registration says so, and its successor compensates', async () => {
    const listed = () => world.session.kernel.call('list', { limit: 1_000 })
    const known = new Set((await listed()).operations.map(({ operationId }) => operationId))
    beforeStep(async name => {
      if (name === 'authorize') await world.trial.kill('kernel')
    })
    const error = await world.refusedRun(undefined, timed)
    expect(error).toMatchObject({ code: 'kernel_unavailable', outcome: 'not_started' })
    await world.trial.start('kernel')
    const { operations } = await listed()
    const open = operations.find(({ operationId }) => !known.has(operationId))
    const patience = { timeout: (NONCE_SECONDS + 5) * 1_000 }
    await expect.poll(() => stateOf(open?.operationId ?? ''), patience).toBe('compensated_before_dispatch')
  })

  test('after the provider answered leaves the host its verified response, and settles when it is back', async () => {
    beforeStep(async name => {
      if (name === 'finalize') await world.trial.kill('kernel')
    })
    const run = await world.run(undefined, timed)
    expect(run.outcome).toMatchObject({ kind: 'response', response: { status: 200 } })
    expect(run.operation).toBeNull()
    await world.trial.start('kernel')
    expect(await stateOf(run.operationId)).toBe('dispatch_committed')
    await lookedAtLater(async () => {
      await expect.poll(() => stateOf(run.operationId), { timeout: 10_000 }).toBe('completed')
    })
  })
})
