// The judgement of a row: what a crash run must not let pass.
import { describe, expect, test } from 'vitest'
import type { CutpointRow } from '../../selftest/crash/cutpoint.js'
import type { OperationEntry, RequestLedger } from '../../selftest/crash/records.js'
import { judgeRow, type RowSeen } from '../../selftest/crash/row-result.js'
import type { Told } from '../../selftest/crash/told.js'

const row: CutpointRow = {
  name: 'broker.dispatch_committed.after',
  who: 'broker',
  story: 'run',
  phase: 'sent',
  what: 'after it',
}
const entry = (
  state: OperationEntry['state'],
  attempt: OperationEntry['attempt']['state'],
): OperationEntry => ({
  operationId: 'op',
  requestDigest: 'digest',
  state,
  isSettled: state !== 'dispatch_committed',
  attempt: { state: attempt, reason: null, isCommitted: attempt !== 'failed', held: false },
})
const LOST = entry('outcome_unknown_after_dispatch', 'unknown_outcome')
const UNKNOWN: Told = {
  exitCode: 75,
  outcome: 'unknown',
  code: 'outcome_undetermined',
  sentence: 'nobody knows',
}
const ledger = (hits: number, ...entries: OperationEntry[]): RequestLedger => ({ hits, entries })
const seen = (change: Partial<RowSeen> = {}): RowSeen => ({
  isReached: true,
  told: UNKNOWN,
  before: ledger(0, LOST),
  after: ledger(0, LOST),
  others: [],
  ...change,
})

describe('a row of the crash table', () => {
  test('holds when everything says what is known', () => {
    expect(judgeRow(row, seen())).toMatchObject({ ok: true, told: '75 unknown', operation: LOST.state })
    expect(judgeRow(row, seen({ told: undefined }))).toMatchObject({ ok: true, told: 'died' })
  })

  test.each<[string, Partial<RowSeen>, RegExp]>([
    ['a second hit', { before: ledger(2, LOST), after: ledger(2, LOST) }, /had the request 2 times/],
    ['a hit while it settles', { after: ledger(1, LOST) }, /0 hits became 1/],
    [
      'an end that is taken back',
      { after: ledger(0, entry('completed', 'completed')) },
      /attempt unknown_outcome became completed/,
    ],
    [
      'an operation that stays open',
      { after: ledger(0, entry('dispatch_committed', 'unknown_outcome')) },
      /stays dispatch_committed/,
    ],
    ['a slot that is held', { others: ['the slot is not free'] }, /not free/],
    [
      'a host that is told of certainty',
      { told: { ...UNKNOWN, exitCode: 1, outcome: 'not_started' } },
      /told that nothing started, and it did/,
    ],
    ['an undue exit code', { told: { ...UNKNOWN, exitCode: 1 } }, /exit 1 although the outcome is unknown/],
    [
      'another state than what was on disk permits',
      { before: ledger(0), after: ledger(0, entry('not_accepted_after_dispatch_commit', 'failed')) },
      /attempt: expected unknown_outcome, got failed/,
    ],
  ])('does not let pass %s', (_what, change, sentence) => {
    const { ok, violations } = judgeRow(row, seen(change))
    expect(ok).toBe(false)
    expect(violations.join('; ')).toMatch(sentence)
  })

  test('whose moment never came proves nothing', () => {
    expect(judgeRow(row, seen({ isReached: false }))).toMatchObject({ ok: false, isReached: false })
  })
})
