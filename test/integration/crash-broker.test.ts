// A broker that is killed under a running host: before its dispatch commit nothing was sent and its successor says so;
// after it nobody knows, the host is told just that, and nothing is ever sent a second time.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { isBrokerError } from '../../protocol/errors.js'
import { beforeStep } from '../support/host-steps.js'
import { startKernelOf } from '../support/kernel-of-trial.js'
import { answer } from '../support/provider.js'
import { TrialWorld } from '../support/trial-world.js'

const TIMEOUT_MS = 3_000
const SETTLEMENT_MS = 30_000 + TIMEOUT_MS + 10_000 + 1_000

vi.setConfig({ testTimeout: 60_000 })

let world: TrialWorld
beforeAll(async () => {
  world = await TrialWorld.begin()
})
afterAll(() => world?.end())
afterEach(() => {
  vi.restoreAllMocks()
  world.trial.broker.signal('SIGCONT')
  world.provider.behave(({ socket }) => answer(socket, 'ok'))
})

const timed = { timeoutMs: TIMEOUT_MS }
const unsettled: [string, string][] = []

async function attemptOf(operationId: string) {
  const { attemptId } = await world.operation(operationId)
  return world.attempt(attemptId ?? '')
}

describe('a broker killed', () => {
  test('before a registration says that it is away, and the operation is compensated', async () => {
    beforeStep(async name => {
      if (name === 'register') await world.trial.kill('broker')
    })
    const error = await world.refusedRun(undefined, timed)
    expect(error).toMatchObject({ code: 'broker_unavailable', outcome: 'not_started' })
    const { operations } = await world.session.kernel.call('list', { limit: 1_000 })
    expect(operations.map(({ state }) => state)).toEqual(['compensated_before_dispatch'])
    await world.trial.start('broker')
  })

  test('while it holds the stream has dispatched nothing, and its successor has that signed', async () => {
    const before = world.provider.hits
    beforeStep(async name => {
      if (name === 'handoff') await world.trial.kill('broker')
    })
    const error = await world.refusedRun(undefined, timed)
    expect(error).toMatchObject({ code: 'outcome_undetermined', outcome: 'unknown' })
    await world.trial.start('broker')
    const operationId = error.operationId ?? ''
    expect(await attemptOf(operationId)).toMatchObject({ state: 'failed', reason: 'broker_restarted' })
    expect(world.provider.hits).toBe(before)
    unsettled.push([operationId, 'not_accepted_after_dispatch_commit'])
  })

  test('after its dispatch commit is unknown for good: host told, one request, a record', async () => {
    const before = world.provider.hits
    world.provider.behave(async ({ socket }) => {
      await world.trial.kill('broker')
      await sleep(200)
      answer(socket, '{"issue":1}')
    })
    const error = await world.refusedRun(undefined, timed)
    expect(error).toMatchObject({ code: 'outcome_undetermined', outcome: 'unknown' })
    await world.trial.start('broker')
    const operationId = error.operationId ?? ''
    expect(await attemptOf(operationId)).toMatchObject({ state: 'unknown_outcome', held: false })
    expect(world.provider.hits).toBe(before + 1)
    unsettled.push([operationId, 'outcome_unknown_after_dispatch'])
  })

  test('and back at once still leaves the host with what is known, and no second request', async () => {
    const before = world.provider.hits
    const back = new Promise<void>(resolve => {
      world.provider.behave(async () => {
        await world.trial.kill('broker')
        await world.trial.start('broker')
        resolve()
      })
    })
    const ending = await world.run(undefined, timed).then(
      run => run.outcome.kind === 'failure' && run.outcome.failure.receipt.body.dispatchKnowledge,
      (error: unknown) => isBrokerError(error) && error.outcome,
    )
    await back
    expect(ending).toBe('unknown')
    expect(world.provider.hits).toBe(before + 1)
  })

  test('or standing still does not keep its host, and holds nothing when it goes on', async () => {
    const before = await world.touches()
    beforeStep(name => {
      if (name === 'prepare') world.trial.broker.signal('SIGSTOP')
    })
    const startedMs = performance.now()
    const error = await world.refusedRun(undefined, timed)
    expect(performance.now() - startedMs).toBeLessThan(20_000)
    expect(error).toMatchObject({ code: 'authority_unavailable', outcome: 'not_started' })
    world.trial.broker.signal('SIGCONT')
    await expect.poll(async () => (await world.slot()).state, { timeout: 10_000 }).toBe('free')
    // What it reads of a host that left is refused before the claim, or ends the attempt after it.
    expect(['registered', 'failed']).toContain((await attemptOf(error.operationId ?? '')).state)
    expect(await world.touches()).toEqual(before)
  })

  test('leaves operations that the kernel settles from the records, without a person', async () => {
    const hits = world.provider.hits
    await world.trial.kill('kernel')
    const later = await startKernelOf(world.trial, { aheadMs: SETTLEMENT_MS })
    try {
      for (const [operationId, state] of unsettled) {
        const found = async (): Promise<string> => (await world.operation(operationId)).state
        await expect.poll(found, { timeout: 10_000 }).toBe(state)
      }
    } finally {
      await later.kill()
    }
    expect(unsettled).toHaveLength(2)
    expect(world.provider.hits).toBe(hits)
  })
})
