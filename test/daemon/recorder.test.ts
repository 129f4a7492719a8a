// An end whose commit the disk refuses, made by another process that holds the file: the slot is free all the same,
// the attempt is ended in memory, and the record follows once the file is free.
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { verifyOutcome } from '../../client/outcome.js'
import { brokerStorePath } from '../../daemon/broker-store.js'
import { type BrokerWorld, startWorld } from '../support/broker-world.js'
import { answer } from '../support/provider.js'
import { seenOn, write } from '../support/raw-broker.js'
import { holdStore } from '../support/test-store.js'

let world: BrokerWorld
beforeEach(async () => {
  world = await startWorld()
})
afterEach(() => world.close())

describe('an end that is not on disk yet', () => {
  test('frees the slot at once and is refused from memory; later it is recorded', async () => {
    const attempt = await world.prepared()
    const holder = await holdStore(brokerStorePath(world.stateDirectory))
    attempt.preparation.stream.close()
    while (world.broker.slotStatus().state !== 'free') await delay(1)
    expect(await attempt.status()).toMatchObject({ state: 'registered' })
    await expect(attempt.register()).rejects.toMatchObject({ code: 'authorization_denied' })
    await expect(attempt.prepare()).rejects.toMatchObject({ code: 'conflict' })
    expect(world.broker.slotStatus().state).toBe('free')
    await holder.letGo()
    while ((await attempt.status()).state !== 'failed') await delay(10)
    expect(await attempt.status()).toMatchObject({ reason: 'stream_closed' })
  })

  test('of an executed request gives the tool nothing, and the response once it is recorded', async () => {
    let reached = (): void => {}
    const hit = new Promise<void>(resolve => {
      reached = resolve
    })
    let open = (): void => {}
    const opened = new Promise<void>(resolve => {
      open = resolve
    })
    world.provider.behave(async ({ socket }) => {
      reached()
      await opened
      answer(socket, 'done')
    })
    const attempt = await world.prepared()
    const descriptor = attempt.preparation.stream.takeDescriptor()
    await write(descriptor, attempt.preparation.stream.frame)
    await hit
    const holder = await holdStore(brokerStorePath(world.stateDirectory))
    open()
    // One try waits five seconds for the file.
    expect(await seenOn(descriptor)).toBe('closed')
    expect(world.broker.slotStatus().state).toBe('free')
    expect(await attempt.status()).toMatchObject({ state: 'dispatch_committed' })
    await holder.letGo()
    while ((await attempt.status()).state !== 'completed') await delay(20)
    const { response, frame } = await attempt.replay()
    expect(verifyOutcome(response, frame, attempt.context).kind).toBe('response')
    expect(world.provider.hits).toBe(1)
  })
})
