// Owns the verdict of a whole run: the static checks count as one test each, vitest's own exit code is honoured,
// no executed test is a failure, and so is a skip without a reason of test/support/skips.ts.

/**
 * @typedef {object} Outcome
 * @property {number} passed
 * @property {number} failed
 * @property {number} skipped
 * @property {string[]} failures one sentence each, for the end of the output
 */

/** @typedef {{ name: string, ok: boolean }} StaticCheck */

/**
 * @typedef {object} VitestSummary what test/support/summary-reporter.ts writes
 * @property {number} passed
 * @property {number} failed
 * @property {number} skipped
 * @property {string[]} unexplainedSkips
 * @property {number} unhandledErrors
 */

/**
 * @typedef {object} VitestRun
 * @property {string | undefined} ending how it failed, undefined for exit code 0
 * @property {VitestSummary | undefined} summary undefined when it wrote none
 */

/**
 * Judges one run.
 * @param {readonly StaticCheck[]} checks
 * @param {VitestRun} run
 * @returns {Outcome}
 */
export function judge(checks, run) {
  const failedChecks = checks.filter(check => !check.ok).map(check => `${check.name} (see above)`)
  const judged = run.summary === undefined ? judgeSilentRun(run) : judgeSummary(run.summary, run.ending)
  return {
    passed: checks.length - failedChecks.length + judged.passed,
    failed: failedChecks.length + judged.failed,
    skipped: judged.skipped,
    failures: [...failedChecks, ...judged.failures],
  }
}

/**
 * @param {VitestRun} run
 * @returns {Outcome}
 */
function judgeSilentRun(run) {
  const failures = [`vitest ended without its counts (${run.ending ?? 'exit code 0'})`]
  return { passed: 0, failed: 1, skipped: 0, failures }
}

/**
 * @param {VitestSummary} summary
 * @param {string | undefined} ending
 * @returns {Outcome}
 */
function judgeSummary(summary, ending) {
  const failures = summary.unexplainedSkips.map(name => `skipped without an allowed reason: ${name}`)
  if (summary.passed + summary.failed === 0) failures.push('no test was executed')
  if (summary.unhandledErrors > 0) failures.push(`${summary.unhandledErrors} error(s) outside any test`)
  const unexplained = failures.length === 0 && summary.failed === 0 && ending !== undefined
  if (unexplained) failures.push(`vitest failed although no test did (${ending})`)
  const ownFailures = failures.length
  if (summary.failed > 0) failures.unshift(`${summary.failed} test(s), named above`)
  return {
    passed: summary.passed,
    failed: summary.failed + ownFailures,
    skipped: summary.skipped - summary.unexplainedSkips.length,
    failures,
  }
}
