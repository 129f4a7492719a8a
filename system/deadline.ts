// Owns: noticing that an absolute deadline has passed. The deadline itself is a comparison with the boot clock;
// the timer here only tidies when nothing else happens.
// Must never: trust a timer. Node's run on MONOTONIC, stand still while the machine sleeps, and fire early.
// Source: timer_create(2), clock_gettime(2).
import { type Clock, NS_PER_MS } from '../protocol/clock.js'

/** Upper bound of one timer, so that a sleep of the machine is noticed within a second. */
const LONGEST_TIMER_MS = 1_000n

/** The moment `budgetMs` from now on CLOCK_BOOTTIME: computed once and compared, never extended. */
export function deadlineAfter(clock: Clock, budgetMs: number): bigint {
  return clock.bootNs() + BigInt(Math.ceil(budgetMs)) * NS_PER_MS
}

export function hasPassed(clock: Clock, deadlineBootNs: bigint): boolean {
  return clock.bootNs() >= deadlineBootNs
}

/** Calls back once, not before the deadline. @returns the function that cancels it. */
export function whenPassed(clock: Clock, deadlineBootNs: bigint, onPassed: () => void): () => void {
  let timer: NodeJS.Timeout | undefined
  const look = (): void => {
    const leftNs = deadlineBootNs - clock.bootNs()
    if (leftNs <= 0n) return onPassed()
    const leftMs = (leftNs + NS_PER_MS - 1n) / NS_PER_MS
    timer = setTimeout(look, Number(leftMs < LONGEST_TIMER_MS ? leftMs : LONGEST_TIMER_MS))
  }
  look()
  return () => clearTimeout(timer)
}
