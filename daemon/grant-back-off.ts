// Owns which grants have to wait with their next preparation: those whose preparations held the slot in vain again
// and again. In memory; a restart forgives.
// Must never: count against one grant what another did, or what broker, authority or provider did. A host that
// crashes once, or a few times, waits for nothing.
// Source: one slot is shared by all; a fault class of public reports: a local client that holds the agent.
import type { Clock } from '../protocol/clock.js'
import {
  BACK_OFF_ABANDONED_COUNT,
  BACK_OFF_ABANDONED_MS,
  FIRST_BACK_OFF_MS,
  MAXIMUM_BACK_OFF_MS,
  MAXIMUM_DECLINING_COUNT,
} from '../protocol/limits.js'
import type { DecliningGrant } from '../protocol/status.js'
import { bootNsAfter, leftMsUntil } from './deadline.js'
import { Refused } from './refused.js'

interface Streak {
  abandoned: number
  /** How long they held the slot, together. */
  heldMs: number
  /** How often it was made to wait. */
  waits: number
  waitsUntilBootNs: bigint
}

export class GrantBackOff {
  readonly #clock: Clock
  /** By parent capability id, the one that was counted last at the end. */
  readonly #streaks = new Map<string, Streak>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** @throws Refused `grant_backed_off` with how long it has to wait. */
  assertMayPrepare(parentCapabilityId: string): void {
    const streak = this.#streaks.get(parentCapabilityId)
    if (streak === undefined) return
    const retryAfterMs = leftMsUntil(this.#clock, streak.waitsUntilBootNs)
    if (retryAfterMs === 0) return
    throw new Refused('grant_backed_off', `${streak.abandoned} left in a row; retry after ${retryAfterMs} ms`)
  }

  /** A preparation ended without its dispatch, by what its host or its tool did or left undone. */
  abandoned(parentCapabilityId: string, heldMs: number): void {
    const streak = this.#streaks.get(parentCapabilityId) ?? begun()
    streak.abandoned += 1
    streak.heldMs += heldMs
    this.#streaks.delete(parentCapabilityId)
    this.#streaks.set(parentCapabilityId, streak)
    forgetOldest(this.#streaks)
    if (streak.abandoned < BACK_OFF_ABANDONED_COUNT || streak.heldMs < BACK_OFF_ABANDONED_MS) return
    const waitMs = Math.min(MAXIMUM_BACK_OFF_MS, FIRST_BACK_OFF_MS * 2 ** streak.waits)
    streak.waits += 1
    streak.waitsUntilBootNs = bootNsAfter(this.#clock, waitMs)
  }

  /** An execution completed under it: what was before is forgotten. */
  completed(parentCapabilityId: string): void {
    this.#streaks.delete(parentCapabilityId)
  }

  /** Those that were made to wait and have not completed anything since. */
  declining(): DecliningGrant[] {
    return [...this.#streaks]
      .filter(([, { waits }]) => waits > 0)
      .map(([parentCapabilityId, { abandoned, waitsUntilBootNs }]) => ({
        abandoned,
        parentCapabilityId,
        retryAfterMs: leftMsUntil(this.#clock, waitsUntilBootNs),
      }))
  }
}

function begun(): Streak {
  return { abandoned: 0, heldMs: 0, waits: 0, waitsUntilBootNs: 0n }
}

/** Bounded, whatever comes: the one that was counted longest ago goes. */
export function forgetOldest<T>(streaks: Map<string, T>): void {
  if (streaks.size <= MAXIMUM_DECLINING_COUNT) return
  const [oldest] = streaks.keys()
  if (oldest !== undefined) streaks.delete(oldest)
}
