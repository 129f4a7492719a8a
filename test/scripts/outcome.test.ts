import { describe, expect, test } from 'vitest'
import { judge } from '../../scripts/test/outcome.mjs'

const GOOD = { passed: 3, failed: 0, skipped: 0, unexplainedSkips: [], unhandledErrors: 0 }
const CHECKS = [
  { name: 'lint', ok: true },
  { name: 'types', ok: true },
]

describe('the verdict of a run', () => {
  test('counts each static check as one test', () => {
    expect(judge(CHECKS, { ending: undefined, summary: GOOD })).toEqual({
      passed: 5,
      failed: 0,
      skipped: 0,
      failures: [],
    })
  })

  test('fails with a failed check although every test passed', () => {
    const outcome = judge([{ name: 'lint', ok: false }], { ending: undefined, summary: GOOD })
    expect(outcome).toMatchObject({ passed: 3, failed: 1, failures: ['lint (see above)'] })
  })

  test('counts allowed skips apart and fails each unexplained one', () => {
    const summary = { ...GOOD, skipped: 3, unexplainedSkips: ['a', 'b'] }
    expect(judge([], { ending: undefined, summary })).toMatchObject({ passed: 3, failed: 2, skipped: 1 })
  })

  test.each([
    ['failed tests', { ...GOOD, failed: 2 }, 'exit code 1', 2, '2 test(s), named above'],
    ['no executed test', { ...GOOD, passed: 0 }, undefined, 1, 'no test was executed'],
    [
      'errors outside any test',
      { ...GOOD, unhandledErrors: 2 },
      'exit code 1',
      1,
      '2 error(s) outside any test',
    ],
    [
      'an exit code without a failed test',
      GOOD,
      'exit code 1',
      1,
      'vitest failed although no test did (exit code 1)',
    ],
    ['a run that was killed', undefined, 'SIGTERM', 1, 'vitest ended without its counts (SIGTERM)'],
    ['a run that wrote no counts', undefined, undefined, 1, 'vitest ended without its counts (exit code 0)'],
  ])('fails for %s', (_what, summary, ending, failed, sentence) => {
    const outcome = judge([], { ending, summary })
    expect(outcome.failed).toBe(failed)
    expect(outcome.failures).toEqual([sentence])
  })
})
