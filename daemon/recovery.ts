// Owns what a former life of the daemon left open: not dispatched is failed, for certain; dispatched and not
// recorded is unknown, for good. Settled before the socket is there.
// Must never: turn unknown into another attempt.
// Source: the broker protocol, section 8.5.
import { unixSeconds } from '../protocol/clock.js'
import type { Transaction } from '../store/transaction.js'
import { type AttemptRecord, endAttempt, openAttempts } from './attempts.js'
import { type Progress, signAttemptFailure } from './failures.js'
import type { RecorderParts } from './recorder.js'
import { insertFailureReceipt } from './receipts.js'
import type { RefusalReason } from './refusals.js'
import { OPEN_ATTEMPTS } from './schema.js'

/** Rows a commit: one fsync each, and no commit that grows without bound. */
const BATCH = 256

/** @returns how many were settled. */
export async function settleOpenAttempts(parts: RecorderParts): Promise<number> {
  let settled = 0
  for (;;) {
    if (parts.store.get(ANY_OPEN_SQL) === undefined) return settled
    settled += await parts.store.transaction('settled_at_start', tx => {
      const open = openAttempts(tx, BATCH)
      for (const attempt of open) settle(parts, tx, attempt)
      return open.length
    })
  }
}

const ANY_OPEN_SQL = `SELECT 1 FROM attempts WHERE ${OPEN_ATTEMPTS} LIMIT 1`

function settle(parts: RecorderParts, tx: Transaction, attempt: AttemptRecord): void {
  const { clock, log, receiptKey: key } = parts
  const { reason, progress, state } = verdictOf(attempt)
  const nowUnixSeconds = unixSeconds(clock)
  const failure = signAttemptFailure(attempt, reason, progress, { nowUnixSeconds, key })
  const endedAtUnixMs = clock.unixMs()
  const { receiptReference } = failure
  endAttempt(tx, attempt, { state, endedAtUnixMs, reason, receiptReference, frame: null })
  insertFailureReceipt(tx, attempt.attemptId, failure, endedAtUnixMs)
  const { attemptId, operationId } = attempt
  log.warn({ attemptId, operationId, reason, state }, 'attempt settled at start')
}

interface Verdict {
  readonly reason: RefusalReason
  readonly progress: Progress
  readonly state: 'failed' | 'unknown_outcome'
}

function verdictOf(attempt: AttemptRecord): Verdict {
  if (attempt.state === 'dispatch_committed') {
    return { reason: 'outcome_lost', progress: 'committed', state: 'unknown_outcome' }
  }
  // The authority had been asked for the hold by then; nothing was committed on its word.
  const wasAsked = attempt.state === 'held' || attempt.state === 'captured'
  const progress = wasAsked ? 'before_commit' : 'before_hold_query'
  return { reason: 'broker_restarted', progress, state: 'failed' }
}
