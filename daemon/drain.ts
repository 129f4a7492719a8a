// Owns the end of a serving broker: what waits ends at once, what was dispatched gets its own time to be recorded and
// answered, and a second word to stop cuts that time short.
// Must never: say more of a dispatch that was cut short than that its outcome is unknown, or leave without trying to
// record it. Source: the broker protocol, section 8.5; systemd.service(5) TimeoutStopSec.
import type { Clock } from '../protocol/clock.js'
import { whenPassed } from '../system/deadline.js'
import { bootNsAfter, leftMsUntil } from './deadline.js'
import { Refused } from './refused.js'
import type { BrokerParts } from './parts.js'
import type { Preparation } from './preparation.js'
import { within } from './within.js'

/** From the provider's deadline to the record of what that ended in. */
const RECORD_GRACE_MS = 1_000
/** For requests that were being answered when nothing was dispatched. */
const ANSWER_GRACE_MS = 500
/** What is left of everything after the second word. */
const HURRY_MS = 1_000

type DrainParts = Pick<BrokerParts, 'clock' | 'config' | 'desk'>

export class Drain {
  readonly #parts: DrainParts
  readonly #hurried: Promise<void>
  #tellHurried: () => void = () => {}
  #dispatched: Preparation | undefined
  isHurried = false

  constructor(parts: DrainParts) {
    this.#parts = parts
    this.#hurried = new Promise(resolve => {
      this.#tellHurried = resolve
    })
  }

  /** The longest that `run` may take from now on. */
  get atMostMs(): number {
    const { clock, config, desk } = this.#parts
    const holder = this.#dispatched ?? desk.holder
    const dispatchMs = holder?.isCommitted === true ? leftMsUntil(clock, holder.governingBootNs) : 0
    return dispatchMs + RECORD_GRACE_MS + config.writeTimeoutMs
  }

  /** Ends the holder of the slot, then waits for those who are being answered. Everything new is refused meanwhile. */
  async run(serving: ReadonlySet<Promise<void>>): Promise<void> {
    const { clock, config, desk } = this.#parts
    const { holder } = desk
    if (holder?.isCommitted === true) {
      this.#dispatched = holder
      await this.#atMost(clock, RECORD_GRACE_MS + leftMsUntil(clock, holder.governingBootNs), holder.settled)
    } else if (holder !== undefined) desk.end(holder, new Refused('broker_stopping'))
    const answerMs = holder === undefined ? ANSWER_GRACE_MS : config.writeTimeoutMs
    await this.#atMost(clock, answerMs, Promise.allSettled(serving))
  }

  /** Waits for the provider no longer: what it did is unknown, and recorded as that. Safe to repeat. */
  hurry(): void {
    if (this.isHurried) return
    this.isHurried = true
    this.#dispatched?.provider?.drop()
    const { clock } = this.#parts
    whenPassed(clock, bootNsAfter(clock, HURRY_MS), () => this.#tellHurried())
  }

  #atMost(clock: Clock, milliseconds: number, work: Promise<unknown>): Promise<unknown> {
    return Promise.race([within(work, clock, bootNsAfter(clock, milliseconds)), this.#hurried])
  }
}
