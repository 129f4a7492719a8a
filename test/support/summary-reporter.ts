// Owns the counts of one vitest run: what passed, what failed, what was skipped without an allowed reason.
// Writes them to the file named by CHIO_TEST_SUMMARY, for scripts/test.mjs to judge; without that variable it
// only names the unexplained skips. It must never turn a failure into anything else.
import { writeFileSync } from 'node:fs'
import type { Reporter, TestCase, TestModule, TestSuite } from 'vitest/node'
import { hasAllowedSkipReason } from './skips.js'

export interface TestRunSummary {
  passed: number
  failed: number
  skipped: number
  /** Skipped tests that give none of the allowed reasons. */
  unexplainedSkips: string[]
  /** Errors outside any test: a rejected promise nobody awaited, a worker that died. */
  unhandledErrors: number
}

/** Counts a finished run. A file or group that failed outside its tests counts as one failure. */
export function summarize(modules: readonly TestModule[], unhandledErrors: number): TestRunSummary {
  const summary: TestRunSummary = { passed: 0, failed: 0, skipped: 0, unexplainedSkips: [], unhandledErrors }
  for (const module of modules) {
    countOwnErrors(module, summary)
    for (const suite of module.children.allSuites()) countOwnErrors(suite, summary)
    for (const testCase of module.children.allTests()) countTest(testCase, summary)
  }
  return summary
}

function countOwnErrors(owner: TestModule | TestSuite, summary: TestRunSummary): void {
  if (owner.errors().length > 0) summary.failed += 1
}

function countTest(testCase: TestCase, summary: TestRunSummary): void {
  const result = testCase.result()
  if (result.state === 'passed') summary.passed += 1
  else if (result.state === 'failed') summary.failed += 1
  else if (result.state === 'skipped') countSkip(testCase, result.note, summary)
  else summary.failed += 1 // still pending at the end: it never ran to a verdict
}

function countSkip(testCase: TestCase, note: string | undefined, summary: TestRunSummary): void {
  summary.skipped += 1
  if (hasAllowedSkipReason([testCase.fullName, note])) return
  summary.unexplainedSkips.push(`${testCase.module.moduleId}: ${testCase.fullName}`)
}

export class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const summary = summarize(modules, unhandledErrors.length)
    for (const name of summary.unexplainedSkips) {
      console.error(`skipped without a reason of test/support/skips.ts: ${name}`)
    }
    const path = process.env['CHIO_TEST_SUMMARY']
    if (path !== undefined) writeFileSync(path, JSON.stringify(summary))
  }
}
