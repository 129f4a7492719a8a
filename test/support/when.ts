// Owns conditional tests: what cannot run on this machine becomes one skipped test that says why, by name.
// It must never skip without one of the reasons of skips.ts, and never runs the body of what it skips.
import { describe, test } from 'vitest'
import type { SkipReason } from './skips.js'

/** Declares a group of tests, or one skipped test with the reason in its name. */
export function describeWhen(condition: boolean, reason: SkipReason, name: string, body: () => void): void {
  if (condition) describe(name, body)
  else test.skip(`${name} (${reason})`, () => {})
}

/** Declares one test, or a skipped one with the reason in its name. */
export function testWhen(
  condition: boolean,
  reason: SkipReason,
  name: string,
  body: () => void | Promise<void>,
): void {
  if (condition) test(name, body)
  else test.skip(`${name} (${reason})`, () => {})
}
