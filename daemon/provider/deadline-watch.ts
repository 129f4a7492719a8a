// Owns the tidying side of a deadline: calls back once it has passed. The deadline itself is the
// comparison `passed()`, made by whoever is about to act; Node's timers run on MONOTONIC (asleep during
// suspend) and fire early, so a timer alone decides nothing.
// Source: timers(7), clock_gettime(2).

import type { Clock } from '../../protocol/clock.js'

/** Longest sleep of the timer: after a suspend the watch notices within this. */
const MAXIMUM_NAP_MS = 1_000
const NS_PER_MS = 1_000_000n

export class DeadlineWatch {
  readonly #clock: Clock
  readonly #deadlineBootNs: bigint
  readonly #onPassed: () => void
  #timer: NodeJS.Timeout | undefined

  constructor(clock: Clock, deadlineBootNs: bigint, onPassed: () => void) {
    this.#clock = clock
    this.#deadlineBootNs = deadlineBootNs
    this.#onPassed = onPassed
    this.#nap()
  }

  passed(): boolean {
    return hasPassed(this.#clock, this.#deadlineBootNs)
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #nap(): void {
    const leftMs = Number((this.#deadlineBootNs - this.#clock.bootNs()) / NS_PER_MS) + 1
    this.#timer = setTimeout(() => this.#wake(), Math.max(1, Math.min(leftMs, MAXIMUM_NAP_MS)))
  }

  #wake(): void {
    if (!this.passed()) return this.#nap()
    this.stop()
    this.#onPassed()
  }
}

export function hasPassed(clock: Clock, deadlineBootNs: bigint): boolean {
  return clock.bootNs() >= deadlineBootNs
}
