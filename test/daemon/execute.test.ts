// The way of one request on a prepared stream, with a real authority socket, store and TLS provider.
import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { verifyOutcome } from '../../client/outcome.js'
import { readFrame, shutdownWrite } from '../../native/index.js'
import { decode } from '../../protocol/codec.js'
import { BrokerExecuteResponse } from '../../protocol/execute-response.js'
import { type BrokerWorld, SECRET, startWorld, type WorldOptions } from '../support/broker-world.js'
import { SteppedClock } from '../support/clock.js'
import { fullCount } from '../support/counts.js'
import { answer } from '../support/provider.js'
import { ask, seenOn, soonBootNs, wordOf, write } from '../support/raw-broker.js'
import { executeEnvelope } from '../../protocol/attempt-request.js'
import { TENANT } from '../support/test-attempt.js'

let world: BrokerWorld
afterEach(() => world.close())
const start = async (options: WorldOptions = {}): Promise<BrokerWorld> => (world = await startWorld(options))

describe('one request', () => {
  test('reaches the provider once, with the credential, and the tool gets the verified response', async () => {
    await start()
    const attempt = await world.prepared()
    expect(world.broker.slotStatus().state).toBe('waiting')
    const { response, frame } = await attempt.preparation.stream.submit(soonBootNs())
    expect(response.accepted).toBe(true)
    expect(world.provider.hits).toBe(1)
    expect(world.provider.requests[0]?.header('authorization')).toBe(`Bearer ${SECRET}`)
    expect(verifyOutcome(response, frame, attempt.context).kind).toBe('response')
    const replayed = await attempt.replay()
    expect(Buffer.compare(replayed.frame, frame)).toBe(0)
    expect(world.provider.hits).toBe(1)
    expect(await attempt.status()).toMatchObject({ state: 'completed', reason: null, held: false })
    expect(world.broker.slotStatus()).toMatchObject({ state: 'free', decryptions: 1 })
  })

  test('is answered on a half-closed stream, also when the provider takes two seconds', async () => {
    await start()
    world.provider.behave(async ({ socket }) => {
      await delay(2_000)
      answer(socket, 'slow')
    })
    const attempt = await world.prepared()
    const descriptor = attempt.preparation.stream.takeDescriptor()
    await write(descriptor, attempt.preparation.stream.frame)
    shutdownWrite(descriptor)
    expect(wordOf(await seenOn(descriptor))).toBe('accepted')
  })

  test('is answered on replay while it executes, with the same bytes', async () => {
    await start()
    world.provider.behave(async ({ socket }) => {
      await delay(300)
      answer(socket, 'late')
    })
    const attempt = await world.prepared()
    const replayed = attempt.replay()
    const { frame } = await attempt.preparation.stream.submit(soonBootNs())
    expect(Buffer.compare((await replayed).frame, frame)).toBe(0)
  })

  test('carries a body of 512 KiB there and 2 MiB less its head back', async () => {
    await start()
    const back = randomBytes(2_097_152 - 1_024)
    world.provider.behave(({ socket }) => answer(socket, back))
    const body = randomBytes(524_288)
    const attempt = await world.prepared({ body, responseLimitBytes: 2_097_152 })
    const { response } = await attempt.preparation.stream.submit(soonBootNs(20_000))
    expect(response.accepted).toBe(true)
    expect(Buffer.compare(world.provider.requests[0]?.body ?? Buffer.alloc(0), body)).toBe(0)
    const { body: returned } = decode(BrokerExecuteResponse, response.response, 'response')
    expect(Buffer.compare(Buffer.from(returned), back)).toBe(0)
  })
})

describe('a slow or absent tool', () => {
  test('that never reads holds no slot: the record stands, the stream ends after the write budget', async () => {
    await start({ config: { writeTimeoutMs: 300 } })
    world.provider.behave(({ socket }) => answer(socket, Buffer.alloc(300_000, 'x')))
    const attempt = await world.prepared({ responseLimitBytes: 400_000 })
    const descriptor = attempt.preparation.stream.takeDescriptor()
    await write(descriptor, attempt.preparation.stream.frame)
    while ((await attempt.status()).state !== 'completed') await delay(10)
    expect(world.broker.slotStatus().state).toBe('free')
    await delay(500)
    await expect(
      readFrame(descriptor, { maximumFrameBytes: 33_554_432, deadlineBootNs: soonBootNs(2_000) }),
    ).rejects.toThrow()
    expect((await attempt.replay()).response.accepted).toBe(true)
  })

  test('that left after the commit loses its answer and nothing else', async () => {
    await start()
    world.provider.behave(async ({ socket }) => {
      await delay(200)
      answer(socket, 'nobody there')
    })
    const attempt = await world.prepared()
    const descriptor = attempt.preparation.stream.takeDescriptor()
    await write(descriptor, attempt.preparation.stream.frame)
    while (world.provider.hits === 0) await delay(5)
    const { closeDescriptor } = await import('../../native/index.js')
    closeDescriptor(descriptor)
    const { response, frame } = await attempt.replay()
    expect(verifyOutcome(response, frame, attempt.context).kind).toBe('response')
    expect(world.provider.hits).toBe(1)
  })
})

describe('preparations that are never consumed', () => {
  const count = fullCount(50, 1_000)
  test(`cost ${count} times no provider request and no decryption`, { timeout: 600_000 }, async () => {
    await start()
    for (let round = 0; round < count; round += 1) {
      const attempt = await world.prepared()
      attempt.preparation.stream.close()
      while (world.broker.slotStatus().state !== 'free') await delay(1)
    }
    expect(world.provider.hits).toBe(0)
    expect(world.broker.slotStatus().decryptions).toBe(0)
  })
})

describe('a step of the wall clock after the preparation', () => {
  for (const [name, stepMs] of [
    ['an hour back', -3_600_000],
    ['an hour ahead', 3_600_000],
  ] as const) {
    test(`${name} neither extends the lifetime nor lets the frame through`, async () => {
      const clock = new SteppedClock()
      await start({ clock })
      const held = await world.prepared({ capabilityLifetimeSeconds: 2 })
      const before = world.broker.slotStatus().leftMs ?? 0
      clock.step(stepMs)
      expect(world.broker.slotStatus().leftMs ?? 0).toBeLessThanOrEqual(before)
      const descriptor = held.preparation.stream.takeDescriptor()
      await write(descriptor, held.preparation.stream.frame)
      expect(wordOf(await seenOn(descriptor))).toContain('signed failure')
      expect(await held.status()).toMatchObject({ state: 'failed', reason: 'authority_unreachable' })
      clock.step(-stepMs)
      const next = await world.prepared({ capabilityLifetimeSeconds: 2 })
      clock.step(stepMs)
      const startedMs = Date.now()
      expect(await seenOn(next.preparation.stream.takeDescriptor())).toBe('closed')
      expect(Date.now() - startedMs).toBeLessThan(2_500)
      expect(await next.status()).toMatchObject({ state: 'failed', reason: 'deadline_expired' })
      expect(world.provider.hits).toBe(0)
    })
  }
})

describe('an ordinary connection', () => {
  test('never dispatches an execute, whatever state its attempt is in', async () => {
    await start()
    const attempt = world.attempt()
    const envelope = executeEnvelope(attempt.request, TENANT)
    expect(wordOf(await ask(world, envelope))).toBe('`accepted: false`, `attempt_unknown`')
    await attempt.register()
    expect(wordOf(await ask(world, envelope))).toBe('`accepted: false`, `attempt_pending`')
    const { stream } = await attempt.prepare()
    const held = ask(world, envelope)
    await delay(100)
    expect(world.provider.hits).toBe(0)
    stream.close()
    expect(wordOf(await held)).toBe('signed failure `chio.broker.invalid_request`')
    expect(world.broker.slotStatus().decryptions).toBe(0)
  })
})
