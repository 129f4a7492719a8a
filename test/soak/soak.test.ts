// A whole installation under load and faults for some seconds: the run that `npm run soak` makes. Its verdict is
// tried on evidence that was made wrong, so that a soak that finds nothing means something.
import { describe, expect, test, vi } from 'vitest'
import type { OperationEntry } from '../../selftest/crash/records.js'
import type { Told } from '../../selftest/crash/told.js'
import { PROCESS_FAULTS, SURROUNDING_FAULTS } from '../../selftest/soak/faults.js'
import type { LoadRun } from '../../selftest/soak/load.js'
import { runSoak } from '../../selftest/soak/soak-run.js'
import { judge } from '../../selftest/soak/soak-verdict.js'
import { isRoot } from '../support/cage.js'
import { fullCount } from '../support/counts.js'
import { SKIP_REASONS } from '../support/skips.js'
import { testWhen } from '../support/when.js'

const SOAK_MS = fullCount(10_000, 300_000)
const PATIENCE_MS = fullCount(420_000, 900_000)
/** Always the same faults in the same order, so that a run that fails can be looked at again. */
const SEED = 20_261_130

vi.setConfig({ testTimeout: PATIENCE_MS })

testWhen(
  isRoot,
  SKIP_REASONS.needsRoot,
  'every hit has its record, none comes twice, and all is settled, whatever was killed, filled or stepped',
  async () => {
    const report = await runSoak({ milliseconds: SOAK_MS, seed: SEED, clients: 3 })
    expect(report.violations).toEqual([])
    expect(Object.keys(report.faults)).not.toHaveLength(0)
    const known = [...PROCESS_FAULTS, ...SURROUNDING_FAULTS].map(({ name }) => name)
    expect(known).toEqual(expect.arrayContaining(Object.keys(report.faults)))
  },
)

const BODY = '{"one":1}'
const ANSWERED: Told = { exitCode: 0, outcome: 'response', code: null, sentence: 'HTTP 201' }
const NOT_STARTED: Told = { exitCode: 1, outcome: 'not_started', code: 'conflict', sentence: 'held' }

function entry(change: Partial<OperationEntry> = {}): OperationEntry {
  const attempt = { state: 'completed', reason: null, isCommitted: true, held: false } as const
  return { operationId: 'one', requestDigest: BODY, state: 'completed', isSettled: true, attempt, ...change }
}

interface Wrong {
  readonly hits?: number
  readonly entries?: readonly OperationEntry[]
  readonly strays?: readonly string[]
  readonly told?: Told
}

function violationsOf({ hits = 1, entries = [entry()], strays = [], told = ANSWERED }: Wrong): string[] {
  const run: LoadRun = { body: BODY, way: 'submitted', told }
  const evidence = { hits: new Map([[BODY, hits]]), records: { entries, strays }, runs: [run] }
  return [...judge(evidence, body => body).violations]
}

describe('the verdict', () => {
  test('finds nothing where one hit has one record and its host was told so', () => {
    expect(violationsOf({})).toEqual([])
  })

  test.each<[string, Wrong, RegExp]>([
    ['a second hit', { hits: 2 }, /had the request 2 times/],
    ['a hit without a record', { entries: [] }, /1 hits with 0 dispatches on record/],
    ['a record without a hit', { hits: 0 }, /1 answers on record with 0 hits/],
    ['an operation that is not settled', { entries: [entry({ isSettled: false })] }, /still completed/],
    ['an attempt that no kernel asked for', { strays: ['two'] }, /two: an attempt that no kernel asked for/],
    ['a host that was told that nothing started', { told: NOT_STARTED }, /nothing started, and it did/],
    [
      'two owners that disagree',
      { entries: [entry({ state: 'not_accepted_after_dispatch_commit' })] },
      /is not_accepted_after_dispatch_commit and its attempt completed/,
    ],
  ])('finds %s', (_what, wrong, sentence) => {
    expect(violationsOf(wrong).join('\n')).toMatch(sentence)
  })
})
