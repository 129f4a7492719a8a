// Owns: how many lines of one kind a log takes in a second, when a peer decides how often there is something to say.
// Must never: lose the number of what it held back; it is told with the next line of that kind.
// Source: a log line is a write that may wait for whoever reads it; a flood of refusals must not become one of writes.
import type { Clock } from '../protocol/clock.js'
import { MAXIMUM_LOG_LINES_PER_SECOND } from '../protocol/limits.js'

const SECOND_NS = 1_000_000_000n

interface Window {
  beganBootNs: bigint
  lines: number
  heldBack: number
}

export class LineBudget {
  readonly #clock: Clock
  readonly #windows = new Map<string, Window>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * Asks for one line. Kinds are words of ours: a peer must not be able to make new ones.
   * @returns how many of its kind were held back before it; undefined when this one is held back too.
   */
  take(kind: string): number | undefined {
    const nowBootNs = this.#clock.bootNs()
    const window = this.#windows.get(kind)
    if (window === undefined || nowBootNs - window.beganBootNs >= SECOND_NS) {
      this.#windows.set(kind, { beganBootNs: nowBootNs, lines: 1, heldBack: 0 })
      return window?.heldBack ?? 0
    }
    if (window.lines < MAXIMUM_LOG_LINES_PER_SECOND) {
      window.lines += 1
      return 0
    }
    window.heldBack += 1
    return undefined
  }
}
