// When each step of a run began and how long it took, on CLOCK_BOOTTIME. A record for people; nothing
// is decided by it.
import type { Clock } from '../protocol/clock.js'

/** One step: its name, start since the run began, and duration. */
export interface TimelineStep {
  readonly name: string
  readonly startMs: number
  readonly durationMs: number
}

/** Called at `NAME.before` and, after a step that succeeded, at `NAME.after`: a crash test ends a process there. */
export type AtMoment = (moment: string) => Promise<void> | void

export class Timeline {
  readonly steps: TimelineStep[] = []
  readonly #clock: Clock
  readonly #atMoment: AtMoment | undefined
  readonly #startedBootNs: bigint

  constructor(clock: Clock, atMoment?: AtMoment) {
    this.#clock = clock
    this.#atMoment = atMoment
    this.#startedBootNs = clock.bootNs()
  }

  /** Runs one step and records it, whether it succeeds or throws. */
  async step<T>(name: string, run: () => Promise<T>): Promise<T> {
    await this.reach(`${name}.before`)
    const value = await this.#timed(name, run)
    await this.reach(`${name}.after`)
    return value
  }

  /** Names a moment that is no border of a step. */
  async reach(moment: string): Promise<void> {
    if (this.#atMoment !== undefined) await this.#atMoment(moment)
  }

  async #timed<T>(name: string, run: () => Promise<T>): Promise<T> {
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
