// A host that is killed at any moment at all: no request is ever sent twice, the two owners never disagree, and nothing
// stays open. Where the named steps of crash-host end, these are the moments inside them.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { nativePath } from '../../native/index.js'
import { issueTrialGrant } from '../../selftest/trial-grant.js'
import { fullCount, isFullRun } from '../support/counts.js'
import { startHost, untilItStands } from '../support/host-child.js'
import { startKernelOf } from '../support/kernel-of-trial.js'
import { SKIP_REASONS } from '../support/skips.js'
import { TrialWorld } from '../support/trial-world.js'
import { testWhen } from '../support/when.js'

const ROUNDS = fullCount(4, 150)
/** Past the end of a run: some rounds are killed when all is done. */
const LATEST_MS = 300
const TIMEOUT_MS = 1_000
const SETTLEMENT_MS = 30_000 + TIMEOUT_MS + 10_000 + 1_000

vi.setConfig({ testTimeout: isFullRun ? 600_000 : 60_000 })

let world: TrialWorld
let grantId: string
beforeAll(async () => {
  world = await TrialWorld.begin({ executionNonceSeconds: 8 })
  const wanted = { url: world.provider.url('/issues'), maximumExecutions: 1_000, lifetimeSeconds: 3_600 }
  grantId = (await issueTrialGrant(world.trial, { ...wanted, grantId: 'grant-long' })).grantId
})
afterAll(() => world?.end())

/** Kills a host so long after its reservation. @returns the operation. */
async function killedAfter(milliseconds: number): Promise<string> {
  const order = { grantId, tool: [nativePath('chio-exec')], timeoutMs: TIMEOUT_MS }
  const host = startHost(world.trial, [order])
  for (;;) {
    const { operationId } = await host.next()
    if (typeof operationId !== 'string') continue
    await sleep(milliseconds)
    await host.kill()
    return operationId
  }
}

async function records(operationId: string): Promise<{ operation: string; attempt: string }> {
  const { attemptId, state } = await world.operation(operationId)
  if (attemptId === null) return { operation: state, attempt: 'none' }
  const attempt = await world.attempt(attemptId).catch(() => ({ state: 'none' }))
  return { operation: state, attempt: attempt.state }
}

/** What the two owners may say together once all is settled. */
const AGREED = [
  { operation: 'compensated_before_dispatch', attempt: 'none' },
  { operation: 'compensated_before_dispatch', attempt: 'failed' },
  { operation: 'not_accepted_after_dispatch_commit', attempt: 'failed' },
  { operation: 'completed', attempt: 'completed' },
]

describe('a host killed at any moment', () => {
  const killed: string[] = []

  test('frees the slot at once, and no request is sent twice', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      killed.push(await killedAfter(Math.random() * LATEST_MS))
      await expect.poll(async () => (await world.slot()).state, { timeout: 5_000 }).toBe('free')
    }
    const attempts = await Promise.all(killed.map(records))
    const completed = attempts.filter(({ attempt }) => attempt === 'completed').length
    expect(world.provider.hits).toBe(completed)
  })

  test('leaves nothing open and no disagreement, without a person', async () => {
    // What was not started is over with its nonce, by the clock that the broker has too.
    for (const operationId of killed) {
      const { state } = await world.operation(operationId)
      if (state !== 'ready_to_dispatch') continue
      const stateNow = async (): Promise<string> => (await world.operation(operationId)).state
      await expect.poll(stateNow, { timeout: 15_000 }).toBe('compensated_before_dispatch')
    }
    await world.trial.kill('kernel')
    const later = await startKernelOf(world.trial, { aheadMs: SETTLEMENT_MS })
    try {
      for (const operationId of killed) {
        const patience = { timeout: isFullRun ? 60_000 : 15_000 }
        await expect.poll(() => records(operationId), patience).toBeOneOf(AGREED)
      }
    } finally {
      await later.kill()
      await world.trial.start('kernel')
    }
  })

  testWhen(isFullRun, SKIP_REASONS.needsFullRun, 'is settled as well by the clock of the wall', async () => {
    const { operationId, settlesAtUnixMs } = await startedAndKilled()
    expect(settlesAtUnixMs - Date.now()).toBeLessThanOrEqual(SETTLEMENT_MS)
    const state = async (): Promise<string> => (await world.operation(operationId)).state
    await expect
      .poll(state, { timeout: SETTLEMENT_MS + 5_000, interval: 500 })
      .toBe('not_accepted_after_dispatch_commit')
  })
})

async function startedAndKilled(): Promise<{ operationId: string; settlesAtUnixMs: number }> {
  const order = { grantId, tool: [nativePath('chio-exec')], timeoutMs: TIMEOUT_MS }
  const host = startHost(world.trial, [{ ...order, moment: 'after start' }])
  const operationId = (await untilItStands(host)) ?? ''
  await host.kill()
  const view = await world.operation(operationId)
  expect(view.state).toBe('dispatch_committed')
  return { operationId, settlesAtUnixMs: view.settlesAtUnixMs ?? 0 }
}
