// Owns which destinations are not asked for a while: those that hung again and again, one after the other. A circuit
// breaker; there is one slot, so whoever is let through after the pause is its only probe.
// Must never: end or repeat anything that was dispatched, or let the impatience of one caller decline another: what
// was waited in vain is evidence only for those who would wait no longer.
// Source: an unknown outcome is never retried; a hanging provider keeps the one slot for its whole timeout.
import type { Clock } from '../protocol/clock.js'
import type { BrokerDestination } from '../protocol/destination.js'
import {
  FIRST_PROVIDER_PAUSE_MS,
  PROVIDER_PAUSE_HANG_COUNT,
  MAXIMUM_PROVIDER_PAUSE_MS,
} from '../protocol/limits.js'
import type { DecliningProvider } from '../protocol/status.js'
import { bootNsAfter, leftMsUntil } from './deadline.js'
import { forgetOldest } from './grant-back-off.js'
import { Refused } from './refused.js'

interface Hanging {
  readonly destination: BrokerDestination
  hangs: number
  /** The longest waits in vain since it last answered, longest first; as many as make a pause. */
  longestMs: number[]
  pauses: number
  pausedUntilBootNs: bigint
}

export class ProviderBreaker {
  readonly #clock: Clock
  readonly #hanging = new Map<string, Hanging>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** @param patienceMs how long this one would wait. @throws Refused `provider_paused` with how long it lasts. */
  assertMayAsk(destination: BrokerDestination, patienceMs: number): void {
    const hanging = this.#hanging.get(nameOf(destination))
    if (hanging === undefined || patienceMs > provenMs(hanging)) return
    const retryAfterMs = leftMsUntil(this.#clock, hanging.pausedUntilBootNs)
    if (retryAfterMs === 0) return
    throw new Refused('provider_paused', `${hanging.hangs} hangs in a row; retry after ${retryAfterMs} ms`)
  }

  /** It did not answer within that time. */
  hung(destination: BrokerDestination, waitedMs: number): void {
    const name = nameOf(destination)
    const hanging = this.#hanging.get(name) ?? begun(destination)
    hanging.hangs += 1
    this.#hanging.delete(name)
    this.#hanging.set(name, hanging)
    forgetOldest(this.#hanging)
    const proven = provenMs(hanging)
    hanging.longestMs = [...hanging.longestMs, waitedMs]
      .sort((left, right) => right - left)
      .slice(0, PROVIDER_PAUSE_HANG_COUNT)
    if (hanging.longestMs.length < PROVIDER_PAUSE_HANG_COUNT || waitedMs < proven) return
    const pauseMs = Math.min(MAXIMUM_PROVIDER_PAUSE_MS, FIRST_PROVIDER_PAUSE_MS * 2 ** hanging.pauses)
    hanging.pauses += 1
    hanging.pausedUntilBootNs = bootNsAfter(this.#clock, pauseMs)
  }

  /** It answered, whatever it said. */
  answered(destination: BrokerDestination): void {
    this.#hanging.delete(nameOf(destination))
  }

  /** Those that were paused and have not answered since; without a rest of the pause the next one is the probe. */
  declining(): DecliningProvider[] {
    return [...this.#hanging.values()]
      .filter(({ pauses }) => pauses > 0)
      .map(({ destination: { explicitPort, method, normalizedHost }, hangs, pausedUntilBootNs }) => ({
        hangs,
        host: normalizedHost,
        method,
        port: explicitPort,
        retryAfterMs: leftMsUntil(this.#clock, pausedUntilBootNs),
      }))
  }
}

function begun(destination: BrokerDestination): Hanging {
  return { destination, hangs: 0, longestMs: [], pauses: 0, pausedUntilBootNs: 0n }
}

/** What so many hangs in a row have shown: nobody who waits this long gets an answer. */
function provenMs({ longestMs }: Hanging): number {
  return longestMs[PROVIDER_PAUSE_HANG_COUNT - 1] ?? 0
}

/** One method of one URL: a slow path of a host must not decline a quick one. */
function nameOf({ exactPathAndQuery, explicitPort, method, normalizedHost }: BrokerDestination): string {
  return `${method} ${normalizedHost}:${explicitPort} ${exactPathAndQuery}`
}
