// Owns the one deadline of a prepared stream: computed once, before the acknowledgement, on the boot clock.
// Must never: move. No byte, no wall-clock step and no sleep of the machine changes it; it is a comparison.
// Source: the broker protocol's prepared connection slot, section 9; clock_gettime(2) CLOCK_BOOTTIME.
import { type Clock, NS_PER_MS } from '../protocol/clock.js'
import { MAXIMUM_PREPARED_LIFETIME_MS } from '../protocol/limits.js'
import type { DeadlineLimit } from '../protocol/status.js'
import { Refused } from './refused.js'

const ASKING_GRACE_NS = 1_000_000_000n

export interface PreparedDeadline {
  readonly bootNs: bigint
  /** Which of the three limits was the earliest. */
  readonly limit: DeadlineLimit
}

export interface Expiries {
  readonly capabilityExpiresAtUnixSeconds: number
  readonly nonceExpiresAtUnixSeconds: number
}

/** @throws Refused `lifetime_over` when nothing is left. */
export function fixDeadline(clock: Clock, expiries: Expiries): PreparedDeadline {
  const nowUnixMs = clock.unixMs()
  const nowBootNs = clock.bootNs()
  const limits: readonly (readonly [DeadlineLimit, number])[] = [
    ['lifetime', MAXIMUM_PREPARED_LIFETIME_MS],
    ['capability_expiry', expiries.capabilityExpiresAtUnixSeconds * 1000 - nowUnixMs],
    ['nonce_expiry', expiries.nonceExpiresAtUnixSeconds * 1000 - nowUnixMs],
  ]
  const [limit, leftMs] = limits.reduce((earliest, next) => (next[1] < earliest[1] ? next : earliest))
  if (leftMs <= 0) throw new Refused('lifetime_over', limit)
  return Object.freeze({ bootNs: nowBootNs + BigInt(Math.floor(leftMs)) * NS_PER_MS, limit })
}

/** A moment this far ahead on the boot clock. */
export function bootNsAfter(clock: Clock, milliseconds: number): bigint {
  return clock.bootNs() + BigInt(milliseconds) * NS_PER_MS
}

/** Whole milliseconds until the moment; never negative. */
export function leftMsUntil(clock: Clock, momentBootNs: bigint): number {
  const leftNs = momentBootNs - clock.bootNs()
  return leftNs <= 0n ? 0 : Number(leftNs / NS_PER_MS)
}

/**
 * Bound of a question to the authority: past the deadline that governs, so that a late answer is recorded as that
 * deadline and not as an authority that could not be reached.
 */
export function askingUntil(governingBootNs: bigint): bigint {
  return governingBootNs + ASKING_GRACE_NS
}

export function earlier(left: bigint, right: bigint): bigint {
  return left < right ? left : right
}
