// The whole way of one request on a prepared stream, with a real authority socket, store and TLS provider.
import { afterEach, describe, expect, test } from 'vitest'
import { verifyOutcome } from '../../client/outcome.js'
import { systemClock } from '../../native/clock.js'
import { type BrokerWorld, SECRET, startWorld } from '../support/broker-world.js'

let world: BrokerWorld
afterEach(() => world.close())
const soon = (): bigint => systemClock.bootNs() + 5_000_000_000n

describe('one request', () => {
  test('reaches the provider once, with the credential, and the tool gets the verified response', async () => {
    world = await startWorld()
    const attempt = await world.prepared()
    expect(world.broker.slotStatus().state).toBe('waiting')
    const { response, frame } = await attempt.preparation.stream.submit(soon())
    expect(response.accepted).toBe(true)
    expect(world.provider.hits).toBe(1)
    expect(world.provider.requests[0]?.header('authorization')).toBe(`Bearer ${SECRET}`)
    const context = { ...attempt, receiptSigner: world.receiptKey.publicKey }
    const outcome = verifyOutcome(response, frame, context)
    expect(outcome.kind).toBe('response')
    const replayed = await attempt.replay()
    expect(Buffer.compare(replayed.frame, frame)).toBe(0)
    expect(world.provider.hits).toBe(1)
    expect(await attempt.status()).toMatchObject({ state: 'completed', reason: null, held: false })
    expect(world.broker.slotStatus()).toMatchObject({ state: 'free', decryptions: 1 })
  })
})
