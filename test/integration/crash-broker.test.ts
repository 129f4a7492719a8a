// A broker that is back before its host notices, or that stands still: what the crash table does not show, since there
// the host is told before anything is started again.
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { isBrokerError } from '../../protocol/errors.js'
import { beforeStep } from '../support/host-steps.js'
import { answer } from '../support/provider.js'
import { TrialWorld } from '../support/trial-world.js'
import { standStill } from '../support/stop.js'

const TIMEOUT_MS = 3_000

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

async function attemptOf(operationId: string) {
  const { attemptId } = await world.operation(operationId)
  return world.attempt(attemptId ?? '')
}

describe('a broker killed', () => {
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
    beforeStep(async name => {
      if (name === 'prepare') await standStill(world.trial.broker.pid)
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
})
