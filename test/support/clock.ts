// Owns the clocks of tests: one that runs, and one whose hands stand until a test moves them.
import { bootTimeNs } from '../../native/clock.js'
import type { Clock } from '../../protocol/clock.js'

/** Wall time and a monotonic boot time, as the machine gives them. */
export const runningClock: Clock = {
  unixMs: () => Date.now(),
  bootNs: () => process.hrtime.bigint(),
}

export class HeldClock implements Clock {
  #unixMs: number
  #bootNs: bigint

  constructor(unixMs = 1_700_000_000_000, bootNs = 1_000_000_000_000n) {
    this.#unixMs = unixMs
    this.#bootNs = bootNs
  }

  unixMs(): number {
    return this.#unixMs
  }

  bootNs(): bigint {
    return this.#bootNs
  }

  /** Lets time pass on both hands. */
  pass(milliseconds: number): void {
    this.#unixMs += milliseconds
    this.#bootNs += BigInt(Math.round(milliseconds * 1e6))
  }

  /** Steps the wall clock alone, as an operator or NTP would. */
  stepWall(milliseconds: number): void {
    this.#unixMs += milliseconds
  }
}

/** The machine's own time, until the next look at the wall clock is made to fail. */
export class FaultyClock implements Clock {
  failNext = false

  unixMs(): number {
    const fails = this.failNext
    this.failNext = false
    if (fails) throw new TypeError('a fault of our own')
    return Date.now()
  }

  bootNs(): bigint {
    return bootTimeNs()
  }
}

/** The machine's own time, with a wall clock that a test steps, and a boot clock that it lets run on. */
export class SteppedClock implements Clock {
  #stepMs = 0
  #ranOnMs = 0

  unixMs(): number {
    return Date.now() + this.#stepMs
  }

  bootNs(): bigint {
    return bootTimeNs() + BigInt(this.#ranOnMs) * 1_000_000n
  }

  /** Lets the boot clock alone run on: what waits for it has waited. */
  runOn(milliseconds: number): void {
    this.#ranOnMs += milliseconds
  }

  step(milliseconds: number): void {
    this.#stepMs += milliseconds
  }
}
