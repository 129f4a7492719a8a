// Absolute deadlines from budgets. A deadline is computed once and compared, never extended.
import type { Clock } from '../protocol/clock.js'

const NS_PER_MS = 1_000_000n

/** The moment `budgetMs` from now on CLOCK_BOOTTIME. */
export function deadlineAfter(clock: Clock, budgetMs: number): bigint {
  return clock.bootNs() + BigInt(Math.ceil(budgetMs)) * NS_PER_MS
}
