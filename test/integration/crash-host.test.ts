// A host that is killed between any two of its steps: both owners have on record what is known, and the kernel settles
// it without a person. Nothing is done twice, and the slot is free at once.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { nativePath } from '../../native/index.js'
import type { CompiledChild } from '../support/compiled-child.js'
import { type HostMoment, startHost, untilItStands } from '../support/host-child.js'
import { startKernelOf } from '../support/kernel-of-trial.js'
import { answer } from '../support/provider.js'
import { TrialWorld } from '../support/trial-world.js'

/** Short enough to see the end of a reservation. */
const NONCE_SECONDS = 8
const TIMEOUT_MS = 2_000
/** Start + 30 s + timeout + 10 s, and a little. */
const SETTLEMENT_MS = 30_000 + TIMEOUT_MS + 10_000 + 1_000

vi.setConfig({ testTimeout: 60_000 })

let world: TrialWorld
beforeAll(async () => {
  world = await TrialWorld.begin({ executionNonceSeconds: NONCE_SECONDS })
})
afterAll(() => world?.end())

/** Runs a host to its moment and kills it there. */
async function killedAt(moment: HostMoment, tool = [nativePath('chio-exec')]): Promise<string> {
  const order = { grantId: world.grant.grantId, tool, timeoutMs: TIMEOUT_MS, moment }
  const host: CompiledChild = startHost(world.trial, [order])
  const operationId = await untilItStands(host)
  await host.kill()
  if (operationId === undefined) throw new Error('no operation was reserved')
  return operationId
}

async function stateOf(operationId: string): Promise<string> {
  return (await world.operation(operationId)).state
}

async function attemptOf(operationId: string): Promise<{ state: string; reason: string | null } | 'none'> {
  const { attemptId } = await world.operation(operationId)
  if (attemptId === null) return 'none'
  const { state, reason } = await world.attempt(attemptId)
  return { state, reason }
}

/** Every attempt that a dead host held has ended, and the next one may prepare. */
async function slotIsFree(): Promise<void> {
  await expect.poll(async () => (await world.slot()).state, { timeout: 2_000 }).toBe('free')
}

/** Killed before the start, with what the broker has on record of it once the kernel has given it up. */
const BEFORE_START: [HostMoment, string | null][] = [
  ['after reserve', null],
  ['after authorize', null],
  ['after register', 'released'],
  ['after prepare', 'stream_closed'],
  ['before start', 'stream_closed'],
]

describe('a host that is killed', () => {
  const unstarted = new Map<HostMoment, string>()
  let started: string
  let executing: string
  let recorded: string
  let retained: string

  test('between any two steps before its start leaves nothing started, and the slot free', async () => {
    const before = await world.touches()
    const moments = BEFORE_START.map(([moment]) => moment)
    const killed = await Promise.all(moments.map(async moment => [moment, await killedAt(moment)] as const))
    for (const [moment, operationId] of killed) unstarted.set(moment, operationId)
    await slotIsFree()
    expect(await world.touches()).toEqual(before)
  })

  test('after its start has its attempt failed by the broker at once when nothing was handed over', async () => {
    const before = await world.touches()
    started = await killedAt('after start')
    await slotIsFree()
    expect(await attemptOf(started)).toEqual({ state: 'failed', reason: 'stream_closed' })
    expect(await stateOf(started)).toBe('dispatch_committed')
    expect(await world.touches()).toEqual(before)
  })

  test('while the provider works leaves it to its one request, and the broker to its record', async () => {
    const hits = world.provider.hits
    world.provider.behave(async ({ socket }) => {
      await sleep(1_000)
      answer(socket, '{"late":true}')
    })
    const running = killedWhile('after handoff', () => world.provider.hits > hits)
    executing = await running.finally(() => world.provider.behave(({ socket }) => answer(socket, 'ok')))
    await slotIsFree()
    expect(await attemptOf(executing)).toEqual({ state: 'completed', reason: null })
    expect(await stateOf(executing)).toBe('dispatch_committed')
    expect(world.provider.hits).toBe(hits + 1)
  })

  test('before it retained or told the outcome leaves the record with the broker', async () => {
    ;[recorded, retained] = await Promise.all([killedAt('after outcome'), killedAt('before finalize')])
    for (const operationId of [recorded, retained]) {
      expect(await attemptOf(operationId)).toEqual({ state: 'completed', reason: null })
      expect(await stateOf(operationId)).toBe('dispatch_committed')
    }
  })

  test('after it told the kernel leaves nothing to settle', async () => {
    expect(await stateOf(await killedAt('after finalize'))).toBe('completed')
  })

  test.each(BEFORE_START)(
    '%s is compensated by the kernel when its nonce has expired',
    async (moment, reason) => {
      const operationId = unstarted.get(moment) ?? ''
      const patience = { timeout: (NONCE_SECONDS + 5) * 1_000, interval: 100 }
      await expect.poll(() => stateOf(operationId), patience).toBe('compensated_before_dispatch')
      if (reason !== null) expect(await attemptOf(operationId)).toEqual({ state: 'failed', reason })
    },
  )

  test('is settled by the kernel at the end of its time from the record, without a second request', async () => {
    const { hits } = world.provider
    await world.trial.kill('kernel')
    const later = await startKernelOf(world.trial, { aheadMs: SETTLEMENT_MS })
    try {
      for (const [operationId, state] of [
        [started, 'not_accepted_after_dispatch_commit'],
        [executing, 'completed'],
        [recorded, 'completed'],
        [retained, 'completed'],
      ] as const) {
        await expect.poll(() => stateOf(operationId), { timeout: 10_000 }).toBe(state)
      }
    } finally {
      await later.kill()
    }
    expect(world.provider.hits).toBe(hits)
  })
})

/** Kills a host that stands, as soon as the world has got so far. */
async function killedWhile(moment: HostMoment, isSoFar: () => boolean): Promise<string> {
  const order = {
    grantId: world.grant.grantId,
    tool: [nativePath('chio-exec')],
    timeoutMs: TIMEOUT_MS,
    moment,
  }
  const host = startHost(world.trial, [order])
  const operationId = await untilItStands(host)
  await expect.poll(isSoFar, { timeout: 5_000 }).toBe(true)
  await host.kill()
  return operationId ?? ''
}
