// Owns which destinations are not asked for a while: those that hung again and again, one after the other. A circuit
// breaker; there is one slot, so whoever is let through after the pause is its only probe.
// Must never: end or repeat anything that was dispatched, let the impatience of one caller decline another, or let the
// hangs of one grant decline the others: what was waited in vain is evidence only for those who would wait no longer.
// Source: an unknown outcome is never retried; a hanging provider keeps the one slot for its whole timeout.
import type { Clock } from '../protocol/clock.js'
import type { BrokerDestination } from '../protocol/destination.js'
import { MAXIMUM_DECLINING_COUNT } from '../protocol/limits.js'
import type { DecliningProvider } from '../protocol/status.js'
import { forgetOldest } from './grant-back-off.js'
import { type Hang, HangStreak, type PausedFor } from './hang-streak.js'

/** Who asks, and for what. */
export type Asking = Pick<Hang, 'destination' | 'parentCapabilityId'>

export class ProviderBreaker {
  readonly #clock: Clock
  /** By destination: two grants at least are behind each pause. */
  readonly #ofAll = new Map<string, HangStreak>()
  /** By destination and grant. */
  readonly #ofGrants = new Map<string, HangStreak>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** @param patienceMs how long this one would wait. @throws Refused `provider_paused` with how long it lasts. */
  assertMayAsk(asking: Asking, patienceMs: number): void {
    this.#ofAll.get(nameOf(asking.destination))?.assertMayAsk(patienceMs)
    this.#ofGrants.get(nameForGrant(asking))?.assertMayAsk(patienceMs)
  }

  /** It did not answer within that time. */
  hung(hang: Hang): void {
    this.#streak(this.#ofAll, nameOf(hang.destination), 'everybody', hang).count(hang)
    this.#streak(this.#ofGrants, nameForGrant(hang), 'grant', hang).count(hang)
  }

  /** It answered, whatever it said. What another grant waited in vain stays that grant's: its input may be the cause. */
  answered(asking: Asking): void {
    this.#ofAll.delete(nameOf(asking.destination))
    this.#ofGrants.delete(nameForGrant(asking))
  }

  /** Those that were paused and have not answered since; without a rest of the pause the next one is the probe. */
  declining(): DecliningProvider[] {
    return [...this.#ofAll.values(), ...this.#ofGrants.values()]
      .filter(({ wasPaused }) => wasPaused)
      .slice(0, MAXIMUM_DECLINING_COUNT)
      .map(streak => streak.status())
  }

  /** The streak of that name, now the one that was counted last. */
  #streak(
    streaks: Map<string, HangStreak>,
    name: string,
    pausedFor: PausedFor,
    { destination }: Hang,
  ): HangStreak {
    const streak = streaks.get(name) ?? new HangStreak(this.#clock, pausedFor, destination)
    streaks.delete(name)
    streaks.set(name, streak)
    forgetOldest(streaks)
    return streak
  }
}

/** One method of one URL: a slow path of a host must not decline a quick one. */
function nameOf({ exactPathAndQuery, explicitPort, method, normalizedHost }: BrokerDestination): string {
  return `${method} ${normalizedHost}:${explicitPort} ${exactPathAndQuery}`
}

/** No part of a destination holds a space, so the grant's id may hold anything. */
function nameForGrant({ destination, parentCapabilityId }: Asking): string {
  return `${nameOf(destination)} ${parentCapabilityId}`
}
