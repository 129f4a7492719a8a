import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { verifyOutcome } from '../../client/outcome.js'
import { type BrokerWorld, startWorld } from '../support/broker-world.js'
import { soonBootNs } from '../support/raw-broker.js'

let world: BrokerWorld
beforeEach(async () => {
  world = await startWorld()
})
afterEach(() => world.close())

describe('release', () => {
  test('ends a registered attempt with a signed failure that says it was not started', async () => {
    const attempt = world.attempt()
    await attempt.register()
    await attempt.release()
    const { response, frame } = await attempt.replay()
    const outcome = verifyOutcome(response, frame, attempt.context)
    expect(outcome).toMatchObject({
      kind: 'failure',
      failure: {
        receipt: { body: { stage: 'admission', dispatchKnowledge: 'not_started', outcome: 'denied' } },
      },
    })
  })

  test('is answered the second time as the first', async () => {
    const attempt = world.attempt()
    await attempt.register()
    const first = await attempt.release()
    expect(await attempt.release()).toEqual(first)
  })

  test('twice, and late, leaves the slot to whoever holds it by then', async () => {
    const first = await world.prepared()
    await first.release()
    const second = await world.prepared()
    await first.release()
    first.preparation.stream.close()
    await delay(50)
    expect(world.broker.slotStatus()).toMatchObject({ state: 'waiting', attemptId: second.attemptId })
    expect((await second.preparation.stream.submit(soonBootNs())).response.accepted).toBe(true)
  })

  test('of an attempt that nobody registered makes no row', async () => {
    const attempt = world.attempt()
    await expect(attempt.release()).rejects.toMatchObject({ code: 'attempt_unknown' })
    await expect(attempt.status()).rejects.toMatchObject({ code: 'attempt_unknown' })
    await attempt.register()
  })

  test('of an executed attempt is a conflict: read the outcome', async () => {
    const attempt = await world.prepared()
    await attempt.preparation.stream.submit(soonBootNs())
    await expect(attempt.release()).rejects.toMatchObject({ code: 'conflict' })
    expect(await attempt.status()).toMatchObject({ state: 'completed' })
  })

  test('of an attempt that failed after its dispatch is a conflict too', async () => {
    world.provider.behave(({ request, socket }) => void socket.end(`HTTP/1.0 ${request.method}\r\n\r\n`))
    const attempt = await world.prepared()
    await attempt.preparation.stream.submit(soonBootNs())
    expect(await attempt.status()).toMatchObject({ state: 'failed', reason: 'response_rejected' })
    await expect(attempt.release()).rejects.toMatchObject({ code: 'conflict' })
  })
})

describe('register', () => {
  test('is answered exactly the first time for an exact retry', async () => {
    const attempt = world.attempt()
    const first = await attempt.register()
    expect(first.disposition).toBe('inserted')
    expect(await attempt.register()).toEqual({ ...first, disposition: 'exact_retry' })
  })
})

describe('control operations', () => {
  test('are answered while the slot is held and while it executes', async () => {
    let answered = (): void => {}
    const opened = new Promise<void>(resolve => {
      answered = resolve
    })
    world.provider.behave(async ({ socket }) => {
      await opened
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
    })
    const holder = await world.prepared()
    await everyControlOperation()
    const submitted = holder.preparation.stream.submit(soonBootNs())
    while (world.provider.hits === 0) await delay(5)
    await everyControlOperation()
    answered()
    expect((await submitted).response.accepted).toBe(true)

    async function everyControlOperation(): Promise<void> {
      const other = world.attempt()
      expect((await other.register()).disposition).toBe('inserted')
      await expect(other.prepare()).rejects.toMatchObject({ code: 'conflict' })
      expect(await other.status()).toMatchObject({ state: 'registered', held: false })
      await other.release()
      expect((await world.client.slotStatus()).attemptId).toBe(holder.attemptId)
      expect((await world.revoke('another-grant')).revoked).toBe(true)
    }
  })
})
