// What ends of real preparations count for, on a running broker: which grant waits, which destination is paused, and
// what forgives.
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import {
  BACK_OFF_ABANDONED_COUNT,
  BACK_OFF_ABANDONED_MS,
  FIRST_BACK_OFF_MS,
  FIRST_PROVIDER_PAUSE_MS,
  MAXIMUM_PREPARED_LIFETIME_MS,
  PROVIDER_PAUSE_HANG_COUNT,
} from '../../protocol/limits.js'
import { type BrokerWorld, startWorld } from '../support/broker-world.js'
import { SteppedClock } from '../support/clock.js'
import { answer, startProvider } from '../support/provider.js'
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

describe('a provider whose connection is not there at the deadline', () => {
  let silent: SilentServer | undefined
  afterEach(() => silent?.close())

  test('hangs for everybody when it was given its time, whoever waits', async () => {
    await start()
    const { port } = world.provider
    await world.provider.close()
    silent = await SilentServer.on(port)
    // One that comes to its frame too late on a busy machine counts for its own grant alone.
    for (let grant = 0; pausesOfEverybody().length === 0; grant += 1) {
      await submittedLate(await world.prepared({ grantId: `grant-${grant}` }))
    }
    const attempt = world.attempt({ grantId: 'grant-of-another', timeoutMs: 30_000 })
    await attempt.register()
    await expect(attempt.prepare()).rejects.toMatchObject({ code: 'upstream' })
  })

  test('hangs for nobody when the frame came at the last moment; the grant is the one that waits', async () => {
    await start()
    const options = { grantId: 'grant-of-an-abuser' }
    const { port } = world.provider
    await world.provider.close()
    for (let count = 0; count < BACK_OFF_ABANDONED_COUNT; count += 1) {
      const provider = await startProvider({ port })
      const attempt = await world.prepared(options)
      while (provider.sockets.length === 0) await delay(5)
      await provider.close()
      silent = await SilentServer.on(port)
      await submittedLate(attempt)
      await silent.close()
    }
    expect(world.broker.slotStatus().declining).toMatchObject({
      grants: [{ abandoned: BACK_OFF_ABANDONED_COUNT, parentCapabilityId: 'grant-of-an-abuser' }],
      providers: [],
    })
  })
})

const pausesOfEverybody = () =>
  world.broker
    .slotStatus()
    .declining.providers.filter(({ parentCapabilityId }) => parentCapabilityId === undefined)

/** Writes its frame when a second is left. */
async function submittedLate({ preparation: { stream } }: Awaited<ReturnType<BrokerWorld['prepared']>>) {
  clock.runOn(MAXIMUM_PREPARED_LIFETIME_MS - 1_000)
  const descriptor = stream.takeDescriptor()
  await write(descriptor, stream.frame)
  await seenOn(descriptor)
  await free()
}

/** Takes connections and never says a word of TLS. */
class SilentServer {
  readonly #sockets = new Set<Socket>()
  readonly #server: Server = createServer(socket => {
    this.#sockets.add(socket)
    socket.on('error', () => undefined)
  })

  static async on(port: number): Promise<SilentServer> {
    const silent = new SilentServer()
    silent.#server.listen(port, '127.0.0.1')
    await once(silent.#server, 'listening')
    return silent
  }

  /** Safe to repeat. */
  async close(): Promise<void> {
    if (!this.#server.listening) return
    const closed = once(this.#server, 'close')
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }
}
