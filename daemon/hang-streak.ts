// Owns what hangs in a row of one destination have shown, and until when it is not asked because of them: those of
// all grants together, or those of one.
// Must never: let one grant alone make up the evidence against all, or renew their pause twice; what makes an endpoint
// slow may be that grant's own input.
// Source: an unknown outcome is never retried; a hanging provider keeps the one slot for its whole timeout.
import type { Clock } from '../protocol/clock.js'
import type { BrokerDestination } from '../protocol/destination.js'
import {
  FIRST_PROVIDER_PAUSE_MS,
  MAXIMUM_PROVIDER_PAUSE_MS,
  PROVIDER_PAUSE_HANG_COUNT,
} from '../protocol/limits.js'
import type { DecliningProvider } from '../protocol/status.js'
import { bootNsAfter, leftMsUntil } from './deadline.js'
import { Refused } from './refused.js'

export interface Hang {
  readonly destination: BrokerDestination
  readonly parentCapabilityId: string
  /** How long was waited in vain. */
  readonly waitedMs: number
}

/** Whom a streak pauses: everybody, or the one grant whose hangs it counts. */
export type PausedFor = 'everybody' | 'grant'

export class HangStreak {
  readonly #clock: Clock
  readonly #pausedFor: PausedFor
  readonly #destination: BrokerDestination
  /** The longest waits in vain since it last answered, longest first; as many as make a pause. */
  #longest: Hang[] = []
  #hangs = 0
  #pauses = 0
  #pausedUntilBootNs = 0n
  /** Whose hang began the last pause. */
  #pausedBy: string | undefined

  constructor(clock: Clock, pausedFor: PausedFor, destination: BrokerDestination) {
    this.#clock = clock
    this.#pausedFor = pausedFor
    this.#destination = destination
  }

  get wasPaused(): boolean {
    return this.#pauses > 0
  }

  /** @param patienceMs how long this one would wait. @throws Refused `provider_paused` with how long it lasts. */
  assertMayAsk(patienceMs: number): void {
    if (patienceMs > this.#provenMs) return
    const retryAfterMs = leftMsUntil(this.#clock, this.#pausedUntilBootNs)
    if (retryAfterMs === 0) return
    const whose = this.#pausedFor === 'grant' ? ' of this grant' : ''
    throw new Refused(
      'provider_paused',
      `${this.#hangs} hangs in a row${whose}; retry after ${retryAfterMs} ms`,
    )
  }

  count(hang: Hang): void {
    const proven = this.#provenMs
    this.#hangs += 1
    this.#longest = longestOf([...this.#longest, hang], this.#mostOfOneGrant)
    if (this.#longest.length < PROVIDER_PAUSE_HANG_COUNT || hang.waitedMs < proven) return
    if (this.#pausedFor === 'everybody' && hang.parentCapabilityId === this.#pausedBy) return
    const pauseMs = Math.min(MAXIMUM_PROVIDER_PAUSE_MS, FIRST_PROVIDER_PAUSE_MS * 2 ** this.#pauses)
    this.#pauses += 1
    this.#pausedBy = hang.parentCapabilityId
    this.#pausedUntilBootNs = bootNsAfter(this.#clock, pauseMs)
  }

  status(): DecliningProvider {
    const { explicitPort, method, normalizedHost } = this.#destination
    const parentCapabilityId = this.#pausedFor === 'grant' ? this.#pausedBy : undefined
    return {
      hangs: this.#hangs,
      host: normalizedHost,
      method,
      ...(parentCapabilityId !== undefined && { parentCapabilityId }),
      port: explicitPort,
      retryAfterMs: leftMsUntil(this.#clock, this.#pausedUntilBootNs),
    }
  }

  /** What so many hangs in a row have shown: nobody who waits this long gets an answer. */
  get #provenMs(): number {
    return this.#longest[PROVIDER_PAUSE_HANG_COUNT - 1]?.waitedMs ?? 0
  }

  /** One fewer than make a pause, so that a pause of everybody has another grant's hang behind it. */
  get #mostOfOneGrant(): number {
    return this.#pausedFor === 'everybody' ? PROVIDER_PAUSE_HANG_COUNT - 1 : PROVIDER_PAUSE_HANG_COUNT
  }
}

function longestOf(hangs: readonly Hang[], mostOfOneGrant: number): Hang[] {
  const counted = new Map<string, number>()
  return hangs
    .toSorted((left, right) => right.waitedMs - left.waitedMs)
    .filter(({ parentCapabilityId }) => {
      const ofGrant = (counted.get(parentCapabilityId) ?? 0) + 1
      counted.set(parentCapabilityId, ofGrant)
      return ofGrant <= mostOfOneGrant
    })
    .slice(0, PROVIDER_PAUSE_HANG_COUNT)
}
