// Milliseconds: a provider that never ends by itself is left at the deadline, not later. Alone on the machine, since a
// busy neighbour would be measured instead.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type BrokerWorld, startWorld } from '../../support/broker-world.js'
import { STALLS } from '../../support/hostile-answers.js'
import { endingOf } from '../../support/hostile-execution.js'

const TIMEOUT_MS = 300
const PROMISED_LATENESS_MS = 100
/** What a stalling disk adds to one of them is not what is measured here. */
const ROUNDS = 3

let world: BrokerWorld
let executions = 0
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

/** Milliseconds from the dispatch commit to the recorded end. */
async function takenMs(behaviour: (typeof STALLS)[number]['behaviour'], body: Uint8Array): Promise<number> {
  world.provider.behave(behaviour)
  const url = world.provider.url(`/stall/${executions++}`)
  const attempt = await world.prepared({ url, body, timeoutMs: TIMEOUT_MS })
  const { ending, status } = await endingOf(world, attempt)
  expect(ending).toBe('provider_timeout')
  return (status.endedAtUnixMs ?? 0) - (status.dispatchCommittedAtUnixMs ?? 0)
}

async function lateness(take: () => Promise<number>): Promise<number> {
  const taken: number[] = []
  for (let round = 0; round < ROUNDS; round += 1) taken.push(await take())
  // Both times are cut to whole milliseconds.
  expect(Math.min(...taken)).toBeGreaterThanOrEqual(TIMEOUT_MS - 1)
  return Math.min(...taken) - TIMEOUT_MS
}

describe('the deadline is kept within 100 ms with a provider that', () => {
  test.each(STALLS.map(row => [row.name, row] as const))('%s', async (_name, { behaviour }) => {
    expect(await lateness(() => takenMs(behaviour, Buffer.from('{}')))).toBeLessThan(PROMISED_LATENESS_MS)
  })

  test('never reads a request of half a megabyte', async () => {
    const stop = (): void => {
      for (const socket of world.provider.sockets) socket.pause()
    }
    const timer = setInterval(stop, 1)
    try {
      const body = Buffer.alloc(524_288, 'b')
      expect(await lateness(() => takenMs(() => undefined, body))).toBeLessThan(PROMISED_LATENESS_MS)
    } finally {
      clearInterval(timer)
    }
  })
})
