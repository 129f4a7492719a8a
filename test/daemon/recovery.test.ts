// What a broker settles before it serves: every attempt that a former life left open is ended with what is known of it,
// signed, once; what had ended stays.
import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type AttemptRecord, findAttempt, insertAttempt, newAttempt } from '../../daemon/attempts.js'
import { openBrokerStore } from '../../daemon/broker-store.js'
import { findReceipt } from '../../daemon/receipts.js'
import { settleOpenAttempts } from '../../daemon/recovery.js'
import { ResponseVault } from '../../daemon/stored-responses.js'
import type { AttemptState } from '../../protocol/attempt-states.js'
import type { Store } from '../../store/store.js'
import { BrokerWorld } from '../support/broker-world.js'
import { HeldClock } from '../support/clock.js'

const NOW_UNIX_MS = 1_700_000_000_000

let world: BrokerWorld
let store: Store
let clock: HeldClock
let commits: string[]
beforeEach(async () => {
  clock = new HeldClock(NOW_UNIX_MS)
  commits = []
  world = new BrokerWorld({ provider: false })
  await world.found()
  const atCutpoint = (name: string): void => void commits.push(name)
  store = await openBrokerStore(world.stateDirectory, { clock, atCutpoint })
})
afterEach(async () => {
  store.close()
  await world.close()
})

const settle = () =>
  settleOpenAttempts({
    store,
    clock,
    receiptKey: world.receiptKey,
    responses: new ResponseVault(randomBytes(32)),
    log: { info: () => {}, warn: () => {}, error: () => {} },
  })

/** Ways from registered to each open state, along the table. */
const WAYS = {
  registered: [],
  prepared: ['prepared'],
  held: ['prepared', 'held'],
  captured: ['prepared', 'captured'],
  dispatch_committed: ['prepared', 'captured', 'dispatch_committed'],
} as const satisfies Partial<Record<AttemptState, readonly AttemptState[]>>

const one = (): AttemptRecord => {
  const { registration, request } = world.attempt()
  return newAttempt(registration, request, NOW_UNIX_MS)
}

async function leftOpen(state: keyof typeof WAYS, attempt = one()): Promise<AttemptRecord> {
  const move = 'UPDATE attempts SET state = ?, version = version + 1 WHERE attempt_id = ?'
  await store.transaction('left', tx => {
    insertAttempt(tx, attempt)
    for (const step of WAYS[state]) tx.changeOne(move, step, attempt.attemptId)
  })
  return attempt
}

/** How it ended, and what its signed failure says. */
function ended({ attemptId }: AttemptRecord) {
  const { state, reason, receiptReference } = findAttempt(store, attemptId) as AttemptRecord
  const stored = findReceipt(store, receiptReference ?? '')
  if (stored?.kind !== 'failure') throw new Error('expected a failure receipt')
  const { dispatchKnowledge, stage } = stored.failure.receipt.body
  return { state, reason, dispatchKnowledge, stage }
}

describe('at its start a broker', () => {
  test.each([
    ['registered', 'failed', 'broker_restarted', 'not_started', 'admission'],
    ['prepared', 'failed', 'broker_restarted', 'not_started', 'admission'],
    ['held', 'failed', 'broker_restarted', 'not_committed', 'capture'],
    ['captured', 'failed', 'broker_restarted', 'not_committed', 'capture'],
    ['dispatch_committed', 'unknown_outcome', 'outcome_lost', 'unknown', 'dispatch'],
  ] as const)('ends what was left %s as %s', async (left, state, reason, dispatchKnowledge, stage) => {
    const attempt = await leftOpen(left)
    expect(await settle()).toBe(1)
    expect(ended(attempt)).toEqual({ state, reason, dispatchKnowledge, stage })
  })

  test('ends each once, and an unknown outcome never again', async () => {
    const lost = await leftOpen('dispatch_committed')
    await leftOpen('registered')
    expect(await settle()).toBe(2)
    const first = ended(lost)
    commits = []
    expect(await settle()).toBe(0)
    expect(commits).toEqual([])
    expect(ended(lost)).toEqual(first)
  })

  test('ends more than one commit holds, each commit a bounded number', async () => {
    const pattern = one()
    const hex = (index: number): string => index.toString(16).padStart(64, '0')
    for (let index = 0; index < 257; index++) {
      const attemptId = `broker-attempt-${index}`
      const ids = { attemptId, operationId: hex(index), proofNonce: `nonce-${index}` }
      await leftOpen('registered', { ...pattern, ...ids, requestCanonicalDigest: hex(index) })
    }
    commits = []
    expect(await settle()).toBe(257)
    expect(commits.filter(name => name.endsWith('after_commit'))).toHaveLength(2)
  })

  test('settles also by a wall clock that was set back behind the registration', async () => {
    const attempt = await leftOpen('dispatch_committed')
    clock.stepWall(-3_600_000)
    expect(await settle()).toBe(1)
    expect(ended(attempt).state).toBe('unknown_outcome')
  })
})
