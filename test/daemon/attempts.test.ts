import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { findAttempt, insertAttempt, newAttempt } from '../../daemon/attempts.js'
import { openBrokerStore } from '../../daemon/broker-store.js'
import { systemClock } from '../../native/clock.js'
import { ATTEMPT_STATES, type AttemptState, mayMoveAttempt } from '../../protocol/attempt-states.js'
import type { Store } from '../../store/store.js'
import { BrokerWorld } from '../support/broker-world.js'

let world: BrokerWorld
let store: Store
beforeEach(async () => {
  world = new BrokerWorld({ provider: false })
  await world.found()
  store = await openBrokerStore(world.stateDirectory, { clock: systemClock })
})
afterEach(async () => {
  store.close()
  await world.close()
})

const record = () => {
  const { registration, request } = world.attempt()
  return newAttempt(registration, request, 1_700_000_000_000)
}

/** Ways from registered to each state, along the table. */
const WAYS: Record<AttemptState, AttemptState[]> = {
  registered: [],
  prepared: ['prepared'],
  held: ['prepared', 'held'],
  captured: ['prepared', 'captured'],
  dispatch_committed: ['prepared', 'captured', 'dispatch_committed'],
  unknown_outcome: ['prepared', 'unknown_outcome'],
  completed: ['prepared', 'captured', 'dispatch_committed', 'completed'],
  failed: ['failed'],
  reversed: ['prepared', 'reversed'],
}

describe('attempt rows', () => {
  test('are found as they were registered', async () => {
    const attempt = record()
    await store.transaction('registered', tx => insertAttempt(tx, attempt))
    expect(findAttempt(store, attempt.attemptId)).toEqual(attempt)
    expect(findAttempt(store, 'broker-attempt-none')).toBeUndefined()
  })

  test('refuse a second attempt with the same proof nonce or the same operation', async () => {
    const attempt = record()
    await store.transaction('registered', tx => insertAttempt(tx, attempt))
    const other = record()
    const sameNonce = { ...other, proofKeyId: attempt.proofKeyId, proofNonce: attempt.proofNonce }
    await expect(store.transaction('registered', tx => insertAttempt(tx, sameNonce))).rejects.toMatchObject({
      code: 'conflict',
    })
    const sameOperation = { ...other, operationId: attempt.operationId }
    await expect(
      store.transaction('registered', tx => insertAttempt(tx, sameOperation)),
    ).rejects.toMatchObject({
      code: 'conflict',
    })
  })

  test('move in the store itself along the state table and along no other edge: all 81 pairs', async () => {
    const move = 'UPDATE attempts SET state = ?, version = version + 1 WHERE attempt_id = ?'
    for (const from of ATTEMPT_STATES) {
      for (const to of ATTEMPT_STATES) {
        const attempt = record()
        await store.transaction('walk', tx => {
          insertAttempt(tx, attempt)
          for (const step of WAYS[from]) tx.changeOne(move, step, attempt.attemptId)
        })
        const moved = store.transaction('move', tx => tx.changeOne(move, to, attempt.attemptId))
        if (from !== to && mayMoveAttempt(from, to))
          await expect(moved, `${from} to ${to}`).resolves.toBeUndefined()
        else await expect(moved, `${from} to ${to}`).rejects.toMatchObject({ code: 'invariant' })
      }
    }
  })

  test('are never deleted, nor are receipts changed', async () => {
    const attempt = record()
    await store.transaction('registered', tx => insertAttempt(tx, attempt))
    await expect(store.transaction('x', tx => tx.run('DELETE FROM attempts'))).rejects.toMatchObject({
      code: 'invariant',
    })
    await store.transaction('receipt', tx =>
      tx.run("INSERT INTO receipts VALUES ('r', ?, 'failure', x'00', 1)", attempt.attemptId),
    )
    await expect(
      store.transaction('x', tx => tx.run("UPDATE receipts SET kind = 'execution'")),
    ).rejects.toMatchObject({ code: 'invariant' })
  })
})
