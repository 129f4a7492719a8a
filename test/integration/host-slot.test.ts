// A slot that another operation holds: a conflict at once, or a wait within the caller's budget, each try a
// preparation of its own; the reservation is given back, and nothing runs twice.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { prepareDispatchConnection } from '../../client/prepare.js'
import { authorize, buildRequest, reserve } from '../../host/admission.js'
import { type BrokeredRun, runBrokered } from '../../host/brokered-run.js'
import { beforeStep } from '../support/host-steps.js'
import { refusalOf, TrialWorld } from '../support/trial-world.js'

/** Short, so that a wait can outlast it; long enough for a run on a busy machine. */
const NONCE_SECONDS = 6
const HELD_MS = 7_000

let world: TrialWorld

beforeAll(async () => {
  world = await TrialWorld.begin({ executionNonceSeconds: NONCE_SECONDS })
})
afterAll(() => world?.end())
afterEach(async () => {
  vi.restoreAllMocks()
  await expect.poll(async () => (await world.slot()).state).toBe('free')
})

function waitingRun(waitForSlotMs: number): Promise<BrokeredRun> {
  return runBrokered(world.session, { ...world.requested(), cage: world.cage(), waitForSlotMs })
}

async function executions(): Promise<number> {
  const { grantId } = world.grant
  return (await world.session.kernel.call('show_grant', { grantId })).executions
}

describe('a slot that another holds', () => {
  test('is a conflict at once without a wait, and the operation is compensated', async () => {
    const before = await world.touches()
    const holder = await holdSlot()
    const error = await refusalOf(() => waitingRun(0))
    holder.release()
    expect(error).toMatchObject({ code: 'conflict', outcome: 'not_started' })
    const operation = await world.operation(error.operationId ?? '')
    expect(operation.state).toBe('compensated_before_dispatch')
    expect(await world.attempt(operation.attemptId ?? '')).toMatchObject({
      state: 'failed',
      reason: 'released',
    })
    expect(await world.causes(operation.operationId)).toContain(
      'preparation failed: tool_server_error: authority_unavailable',
    )
    expect(await world.touches()).toEqual(before)
  })

  test('is a conflict as well when it is held longer than the wait', async () => {
    const holder = await holdSlot()
    const startedMs = performance.now()
    expect(await refusalOf(() => waitingRun(500))).toMatchObject({ code: 'conflict', outcome: 'not_started' })
    expect(performance.now() - startedMs).toBeGreaterThan(500)
    holder.release()
  })

  test('is waited for, and the run is served when it is free', async () => {
    const holder = await holdSlot()
    beforeStep(name => {
      if (name === 'prepare') setTimeout(() => holder.release(), 400)
    })
    const waited = await waitingRun(10_000)
    expect(waited.operation?.state).toBe('completed')
    expect(waited.timeline.find(({ name }) => name === 'prepare')?.durationMs).toBeGreaterThan(300)
  })

  test('is waited for longer than a reservation lives, under reservations of its own', async () => {
    const before = await executions()
    const holder = await holdSlot()
    const freed = sleep(HELD_MS).then(() => holder.release())
    const waited = await waitingRun(30_000)
    await freed
    expect(waited.operation?.state).toBe('completed')
    expect(waited.timeline.filter(({ name }) => name === 'reserve').length).toBeGreaterThan(1)
    expect(await executions()).toBe(before + 1)
  })

  test('goes to each of several that wait, one after the other', async () => {
    const before = await world.touches()
    const runs = await Promise.all([1, 2, 3].map(() => waitingRun(30_000)))
    expect(runs.map(({ operation }) => operation?.state)).toEqual(['completed', 'completed', 'completed'])
    expect(new Set(runs.map(({ operationId }) => operationId)).size).toBe(3)
    expect((await world.touches()).requests).toBe(before.requests + 3)
  })
})

/** Prepares another operation and keeps its stream. */
async function holdSlot(): Promise<{ release(): void }> {
  const { session, grant } = world
  const request = buildRequest(grant, world.requested())
  const admitted = await authorize(session, await reserve(session, request, grant.grantId))
  await session.broker.register(admitted.register)
  const { stream } = await prepareDispatchConnection(session.pins.broker, admitted.prepare, session.clock)
  return { release: () => stream.close() }
}
