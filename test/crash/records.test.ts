// The comparison of the provider's count with the two records: each promise of a crash run can fail.
import { describe, expect, test } from 'vitest'
import { type AttemptEntry, type OperationEntry, violationsOf } from '../../selftest/crash/records.js'

const attempt = (state: AttemptEntry['state'], isCommitted: boolean): AttemptEntry => ({
  state,
  isCommitted,
  reason: null,
  held: false,
})
const entry = (state: OperationEntry['state'], of: AttemptEntry): OperationEntry => ({
  operationId: 'op',
  requestDigest: 'digest',
  state,
  isSettled: true,
  attempt: of,
})
const COMPLETED = entry('completed', attempt('completed', true))
const LOST = entry('outcome_unknown_after_dispatch', attempt('unknown_outcome', true))
const NOT_SENT = entry('compensated_before_dispatch', attempt('failed', false))

describe('the comparison of hits and records', () => {
  test.each([
    [1, [COMPLETED]],
    [0, [NOT_SENT]],
    [0, [LOST]],
    [1, [LOST]],
    [1, [NOT_SENT, COMPLETED]],
    [0, []],
    [0, [entry('not_accepted_after_dispatch_commit', attempt('none', false))]],
    [1, [entry('denied_after_delivery', attempt('failed', true))]],
    [0, [entry('dispatch_committed', attempt('registered', false))]],
  ])('finds nothing wrong with %i hits and what belongs to them', (hits, entries) => {
    expect(violationsOf({ hits, entries })).toEqual([])
  })

  test.each([
    ['a second hit', 2, [COMPLETED], /had the request 2 times/],
    ['a hit without a record', 1, [], /1 hits with 0 dispatches/],
    ['a hit whose record says that nothing was sent', 1, [NOT_SENT], /1 hits with 0 dispatches/],
    ['an answer that nobody gave', 0, [COMPLETED], /1 answers on record with 0 hits/],
    ['two dispatches of one request', 1, [COMPLETED, LOST], /2 attempts were dispatched/],
    [
      'two owners that disagree',
      1,
      [entry('not_accepted_after_dispatch_commit', attempt('unknown_outcome', true))],
      /is not_accepted_after_dispatch_commit and its attempt unknown_outcome, dispatched/,
    ],
  ])('finds %s', (_what, hits, entries, sentence) => {
    expect(violationsOf({ hits, entries }).join('; ')).toMatch(sentence)
  })
})
