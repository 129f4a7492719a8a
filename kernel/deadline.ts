// Owns: absolute deadlines from budgets, on the clock that no step of the wall clock moves.
// Must never: extend one: a deadline is computed once and compared.
// Source: clock_gettime(2) CLOCK_BOOTTIME.
import type { Clock } from '../protocol/clock.js'

export const NS_PER_MS = 1_000_000n

/** The moment `milliseconds` from now. */
export function deadlineAfter(clock: Clock, milliseconds: number): bigint {
  return clock.bootNs() + BigInt(Math.ceil(milliseconds)) * NS_PER_MS
}
