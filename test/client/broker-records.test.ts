// What a kernel learns of its broker: the verified record of an attempt, or honestly nothing. A broker that is away,
// said nothing at all; one whose word is not accepted, or that does not accept ours, was reached and is told apart.
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { BrokerRecordsClient } from '../../client/broker-records.js'
import { systemClock } from '../../native/clock.js'
import { signingKey } from '../../protocol/keys.js'
import { type BrokerWorld, startWorld } from '../support/broker-world.js'
import { deadlineIn } from '../support/descriptors.js'
import type { TestAttempt } from '../support/test-attempt.js'

let world: BrokerWorld
let records: BrokerRecordsClient
beforeAll(async () => {
  world = await startWorld()
  records = new BrokerRecordsClient(world.pins, systemClock)
})
afterAll(() => world.close())

async function completed(): Promise<TestAttempt> {
  const attempt = await world.prepared()
  await attempt.preparation.stream.submit(deadlineIn(5_000))
  return attempt
}

async function registered(): Promise<TestAttempt> {
  const attempt = world.attempt()
  await attempt.register()
  return attempt
}

const released = (attempt: TestAttempt) =>
  records.release(attempt, attempt.authorized('release').authorization, deadlineIn(5_000))

describe('the records of a broker', () => {
  test('hold the receipt of what was executed', async () => {
    const attempt = await completed()
    const record = await records.replay(attempt, deadlineIn(5_000))
    expect(record).toMatchObject({ kind: 'receipt', receipt: { body: { outcome: 'completed' } } })
    expect(await records.attemptStatus(attempt.attemptId, deadlineIn(5_000))).toMatchObject({
      state: 'completed',
    })
    expect(await released(attempt)).toBe('conflict')
  })

  test('hold the signed failure of what was released, and say so', async () => {
    const attempt = await registered()
    expect(await records.replay(attempt, deadlineIn(5_000))).toBe('pending')
    expect(await released(attempt)).toBe('released')
    expect(await records.replay(attempt, deadlineIn(5_000))).toMatchObject({
      kind: 'failure',
      failure: { receipt: { body: { dispatchKnowledge: 'not_started' } } },
    })
  })

  test('know nothing of an attempt that never arrived', async () => {
    const attempt = world.attempt()
    expect(await records.replay(attempt, deadlineIn(5_000))).toBe('unknown')
    expect(await records.attemptStatus(attempt.attemptId, deadlineIn(5_000))).toBe('unknown')
    expect(await released(attempt)).toBe('unknown')
  })

  test('are refused when another key signed them', async () => {
    const attempt = await completed()
    const receiptKey = signingKey(randomBytes(32)).publicKey
    const misled = new BrokerRecordsClient({ ...world.pins, receiptKey }, systemClock)
    expect(await misled.replay(attempt, deadlineIn(5_000))).toBe('refused')
  })

  test('are refused when they are of another attempt', async () => {
    const [one, other] = [await completed(), await completed()]
    const mixed = { registration: other.registration, request: one.request }
    expect(await records.replay(mixed, deadlineIn(5_000))).toBe('refused')
  })

  test('are not ended by a release that another authority signed: the broker refuses it and says so', async () => {
    const attempt = await registered()
    const authorization = world.attempt().authorized('release').authorization
    expect(await records.release(attempt, authorization, deadlineIn(5_000))).toBe('refused')
    expect(await records.replay(attempt, deadlineIn(5_000))).toBe('pending')
  })

  test('say nothing while a held attempt outlasts the time to ask', async () => {
    const attempt = await world.prepared()
    expect(await records.replay(attempt, deadlineIn(200))).toBe('unreachable')
    attempt.preparation.stream.close()
  })

  test('say nothing when the broker is away', async () => {
    const attempt = await registered()
    await world.stopBroker()
    expect(await records.replay(attempt, deadlineIn(1_000))).toBe('unreachable')
    expect(await records.attemptStatus(attempt.attemptId, deadlineIn(5_000))).toBe('unreachable')
    expect(await released(attempt)).toBe('unreachable')
  })
})
