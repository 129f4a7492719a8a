// What ends of real preparations count for, on a running broker: which grant waits, which destination is paused, and
// what forgives.
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import {
  BACK_OFF_ABANDONED_COUNT,
  BACK_OFF_ABANDONED_MS,
  FIRST_BACK_OFF_MS,
  FIRST_PROVIDER_PAUSE_MS,
  PROVIDER_PAUSE_HANG_COUNT,
} from '../../protocol/limits.js'
import { type BrokerWorld, startWorld } from '../support/broker-world.js'
import { SteppedClock } from '../support/clock.js'
import { answer } from '../support/provider.js'
import { seenOn, soonBootNs, write } from '../support/raw-broker.js'
import type { AttemptOptions } from '../support/test-attempt.js'

let clock: SteppedClock
let world: BrokerWorld
const start = async (): Promise<void> => {
  clock = new SteppedClock()
  world = await startWorld({ clock })
}
afterEach(() => world.close())

const free = async (): Promise<void> => {
  while (world.broker.slotStatus().state !== 'free') await delay(5)
}
const submitted = async (options: AttemptOptions = {}) => {
  const attempt = await world.prepared(options)
  await attempt.preparation.stream.submit(soonBootNs())
  return attempt
}

/** Holds the slot for long and leaves it, in one of the ways that there are. */
async function abandon(options: AttemptOptions, way: 'close' | 'release' | 'other frame' = 'close') {
  const attempt = await world.prepared(options)
  clock.runOn(BACK_OFF_ABANDONED_MS / 2)
  const { stream } = attempt.preparation
  if (way === 'release') await attempt.release()
  if (way === 'other frame') {
    const frame = Uint8Array.from(stream.frame)
    frame[200] = (frame[200] ?? 0) ^ 1
    const descriptor = stream.takeDescriptor()
    await write(descriptor, frame)
    expect(await seenOn(descriptor)).toBe('closed')
  } else stream.close()
  await free()
}

/** On a busy machine a short timeout may pass before the request was written; that is no hang. */
async function untilPaused(): Promise<void> {
  while (world.broker.slotStatus().declining.providers.length === 0) {
    const attempt = await submitted({ timeoutMs: 200 })
    expect((await attempt.status()).state).not.toBe('completed')
  }
}

async function untilBackedOff(options: AttemptOptions): Promise<void> {
  for (let count = 0; count < BACK_OFF_ABANDONED_COUNT; count += 1) await abandon(options)
}

describe('a grant whose preparations are abandoned', () => {
  test('is declined before the slot, with the attempt as it was, and may go on after its wait', async () => {
    await start()
    const options = { grantId: 'grant-abused' }
    await abandon(options)
    await abandon(options, 'release')
    await abandon(options, 'other frame')
    const attempt = world.attempt(options)
    await attempt.register()
    await expect(attempt.prepare()).rejects.toMatchObject({ code: 'conflict' })
    expect(await attempt.status()).toMatchObject({ state: 'registered', reason: null })
    expect(await world.client.slotStatus()).toMatchObject({
      state: 'free',
      declining: { grants: [{ abandoned: 3, parentCapabilityId: 'grant-abused' }], providers: [] },
    })
    expect((await submitted({ grantId: 'grant-of-another' })).attemptId).toBeDefined()
    clock.runOn(FIRST_BACK_OFF_MS)
    const { stream } = await attempt.prepare()
    await stream.submit(soonBootNs())
    expect(world.broker.slotStatus().declining.grants).toEqual([])
  })

  test('is forgiven by a completed execution alone', async () => {
    await start()
    const options = { grantId: 'grant-abused' }
    await untilBackedOff(options)
    clock.runOn(FIRST_BACK_OFF_MS)
    world.provider.behave(({ socket }) => void socket.destroy())
    await submitted(options)
    expect(world.broker.slotStatus().declining.grants).toHaveLength(1)
    world.provider.behave(({ socket }) => answer(socket, 'well'))
    await submitted(options)
    expect(world.broker.slotStatus().declining.grants).toEqual([])
  })

  test('does not wait because of a provider that cannot be reached', async () => {
    await start()
    await world.provider.close()
    for (let count = 0; count < BACK_OFF_ABANDONED_COUNT + 1; count += 1) {
      const attempt = await world.prepared()
      clock.runOn(BACK_OFF_ABANDONED_MS / 2)
      const descriptor = attempt.preparation.stream.takeDescriptor()
      await write(descriptor, attempt.preparation.stream.frame)
      await seenOn(descriptor)
      expect(await attempt.status()).toMatchObject({ reason: 'provider_unreachable' })
    }
    expect(world.broker.slotStatus().declining.grants).toEqual([])
  })
})

describe('a provider that hangs', () => {
  test('is paused before anything is claimed, probed once after it, and forgiven when it answers', async () => {
    await start()
    world.provider.behave(() => undefined)
    await untilPaused()
    const { hits } = world.provider
    const attempt = world.attempt({ timeoutMs: 200 })
    await attempt.register()
    await expect(attempt.prepare()).rejects.toMatchObject({ code: 'upstream' })
    expect(await attempt.status()).toMatchObject({ state: 'registered', reason: null })
    expect(world.broker.slotStatus().declining.providers).toMatchObject([
      { hangs: PROVIDER_PAUSE_HANG_COUNT, method: 'POST' },
    ])
    expect(world.provider.hits).toBe(hits)
    world.provider.behave(({ socket }) => answer(socket, 'well'))
    clock.runOn(FIRST_PROVIDER_PAUSE_MS)
    const { stream } = await attempt.prepare()
    await stream.submit(soonBootNs())
    expect(world.broker.slotStatus().declining.providers).toEqual([])
    expect(world.provider.hits).toBe(hits + 1)
  })

  test('is not paused for whoever waits longer', async () => {
    await start()
    world.provider.behave(() => undefined)
    await untilPaused()
    world.provider.behave(({ socket }) => answer(socket, 'late'))
    const patient = await submitted({ timeoutMs: 5_000 })
    expect(await patient.status()).toMatchObject({ state: 'completed' })
  })
})
