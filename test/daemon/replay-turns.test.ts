// The replays of one uid are answered one after the other, so that a peer which reads none of its answers makes the
// broker hold one of them and not as many as it has connections.
import type { Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ReplayTurns, type Replaying } from '../../daemon/replay-turns.js'
import { executeFrameBody } from '../../protocol/attempt-request.js'
import type { ConnectionEnding } from '../../system/connection-ended.js'
import { type BrokerWorld, startWorld } from '../support/broker-world.js'
import { TENANT, type TestAttempt } from '../support/test-attempt.js'
import { plainClient, prefixed } from '../support/test-listener.js'
import { systemClock } from '../../native/clock.js'

class Connection implements Replaying {
  ending: ConnectionEnding | undefined
  end: () => void = () => {}
  readonly ended = new Promise<ConnectionEnding>(resolve => {
    this.end = () => {
      this.ending = 'closed'
      resolve('closed')
    }
  })
}

describe('turns of replays', () => {
  async function taken(
    turns: ReplayTurns,
    uid: number,
    connection: Connection,
    order: string[],
    name: string,
  ) {
    await turns
      .take(uid, connection, async () => name)
      .then(
        () => order.push(name),
        () => order.push(`${name} gave up`),
      )
  }

  test('come in order within a uid, each when the connection before has ended; another uid does not wait', async () => {
    const turns = new ReplayTurns()
    const order: string[] = []
    const [first, second, third, other] = [
      new Connection(),
      new Connection(),
      new Connection(),
      new Connection(),
    ]
    const all = [
      taken(turns, 1, first, order, 'first'),
      taken(turns, 1, second, order, 'second'),
      taken(turns, 1, third, order, 'third'),
      taken(turns, 2, other, order, 'other'),
    ]
    await expect.poll(() => order).toEqual(['first', 'other'])
    first.end()
    await expect.poll(() => order).toEqual(['first', 'other', 'second'])
    second.end()
    await Promise.all(all)
    expect(order.at(-1)).toBe('third')
  })

  test('pass one whose connection ended while it waited, and only when the one before it has ended', async () => {
    const turns = new ReplayTurns()
    const order: string[] = []
    const [first, second, third] = [new Connection(), new Connection(), new Connection()]
    const all = [
      taken(turns, 1, first, order, 'first'),
      taken(turns, 1, second, order, 'second'),
      taken(turns, 1, third, order, 'third'),
    ]
    await expect.poll(() => order).toEqual(['first'])
    second.end()
    await expect.poll(() => order).toEqual(['first', 'second gave up'])
    first.end()
    await Promise.all(all)
    expect(order).toEqual(['first', 'second gave up', 'third'])
  })

  test('wait for the answer that is being made for a connection that has ended meanwhile', async () => {
    const turns = new ReplayTurns()
    const [first, second] = [new Connection(), new Connection()]
    let finish: () => void = () => {}
    const making = turns.take(1, first, () => new Promise<void>(resolve => (finish = resolve)))
    let begun = false
    const next = turns.take(1, second, async () => {
      begun = true
    })
    await setTimeout(5)
    first.end()
    await setTimeout(20)
    expect(begun).toBe(false)
    finish()
    await Promise.all([making, next])
    expect(begun).toBe(true)
  })
})

describe('a peer that asks for its answer on 40 connections and reads none', () => {
  let world: BrokerWorld
  let attempt: TestAttempt

  beforeAll(async () => {
    world = await startWorld({ config: { writeTimeoutMs: 1_000 } })
    const prepared = await world.prepared()
    await prepared.preparation.stream.submit(systemClock.bootNs() + 5_000_000_000n)
    attempt = prepared
  })
  afterAll(() => world.close())

  test('holds up nobody who asks for status, and its own last question is answered in the end', async () => {
    const frame = prefixed(executeFrameBody(attempt.request, TENANT))
    const silent: Socket[] = []
    for (let count = 0; count < 40; count += 1) {
      const client = await plainClient(world.socketPath)
      client.write(frame)
      silent.push(client)
    }
    expect((await world.client.slotStatus()).state).toBe('free')
    for (const client of silent) client.destroy()
    expect((await attempt.replay()).response.accepted).toBe(true)
  })
})
