// When each step of a run began and how long it took, on CLOCK_BOOTTIME. A record for people; nothing
// is decided by it.
import type { Clock } from '../protocol/clock.js'

/** One step: its name, start since the run began, and duration. */
export interface TimelineStep {
  readonly name: string
  readonly startMs: number
  readonly durationMs: number
}

export class Timeline {
  readonly steps: TimelineStep[] = []
  readonly #clock: Clock
  readonly #startedBootNs: bigint

  constructor(clock: Clock) {
    this.#clock = clock
    this.#startedBootNs = clock.bootNs()
  }

  /** Runs one step and records it, whether it succeeds or throws. */
  async step<T>(name: string, run: () => Promise<T>): Promise<T> {
    const startMs = this.elapsedMs()
    try {
      return await run()
    } finally {
      this.steps.push({ name, startMs, durationMs: Math.round((this.elapsedMs() - startMs) * 1_000) / 1_000 })
    }
  }

  /** Milliseconds since the run began, to the microsecond. */
  elapsedMs(): number {
    return Number((this.#clock.bootNs() - this.#startedBootNs) / 1_000n) / 1_000
  }
}
