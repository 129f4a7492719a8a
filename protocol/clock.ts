// Owns the shape of time for every owner. Must never read a clock itself: the one reader is
// native/clock.ts, handed in, so that a test can hold both hands still.
// Source: clock_gettime(2). BOOTTIME also runs while the machine sleeps; MONOTONIC does not.

/** How many of `bootNs` a millisecond has. */
export const NS_PER_MS = 1_000_000n

export interface Clock {
  /** Wall clock: milliseconds since 1970, for expiries that other machines wrote. May step. */
  unixMs(): number
  /** CLOCK_BOOTTIME in nanoseconds, for deadlines. Never steps, runs through suspend. */
  bootNs(): bigint
}

/** Whole seconds since 1970, the unit of every `...UnixSeconds` member on the wire. */
export function unixSeconds(clock: Clock): number {
  return Math.floor(clock.unixMs() / 1000)
}
