// Owns: whether the wall clock may be believed, by the boot clock and by what the store saw before.
// Must never: let the high water run ahead of elapsed boot time plus skew, or let it go back by itself: a jump stops
// admission until an administrator accepts it. Elapsed boot time is compared inside one boot only.
// Source: clock_gettime(2) CLOCK_BOOTTIME; random(4) boot_id.

/** Both hands, read together, and in which boot. */
export interface ClockReading {
  readonly unixMs: number
  readonly bootMs: number
  readonly bootId: string
}

/** What the store remembers: the reading from which elapsed time counts, and the latest time of a commit. */
export interface ClockRow {
  readonly bootId: string
  readonly anchorUnixMs: number
  readonly anchorBootMs: number
  readonly highWaterUnixMs: number
}

export interface ClockJudgement {
  readonly row: ClockRow
  /** The time by which a commit is stamped; it never goes back. */
  readonly nowUnixMs: number
  /** What stops admission, as a sentence; null while the clock is believed. */
  readonly fault: string | null
}

/** Longest that a machine may have been switched off: beyond it a wall clock is rather wrong than right. */
const LONGEST_OFF_MS = 400 * 86_400_000
/** How far both hands may go on while an administrator looks at them and signs. */
export const LONGEST_DELIBERATION_MS = 600_000

export function judgeClock(
  known: ClockRow | undefined,
  reading: ClockReading,
  skewMs: number,
): ClockJudgement {
  if (known === undefined) return believed(anchoredAt(reading), reading.unixMs)
  return known.bootId === reading.bootId
    ? judgeInside(known, reading, skewMs)
    : judgeAfterBoot(known, reading)
}

/** An administrator accepted the wall clock as it is: everything counts from here, back too. */
export function anchoredAt({ bootId, bootMs, unixMs }: ClockReading): ClockRow {
  return { bootId, anchorUnixMs: unixMs, anchorBootMs: bootMs, highWaterUnixMs: unixMs }
}

function judgeInside(known: ClockRow, reading: ClockReading, skewMs: number): ClockJudgement {
  const elapsedMs = Math.max(0, reading.bootMs - known.anchorBootMs)
  const expectedUnixMs = known.anchorUnixMs + elapsedMs
  const aheadMs = reading.unixMs - expectedUnixMs - skewMs
  const behindMs = known.highWaterUnixMs - reading.unixMs - skewMs
  if (aheadMs <= 0 && behindMs <= 0) {
    return believed(known, Math.max(known.highWaterUnixMs, reading.unixMs))
  }
  const nowUnixMs = Math.max(known.highWaterUnixMs, expectedUnixMs)
  const way = aheadMs > 0 ? `${aheadMs} ms further ahead` : `${behindMs} ms further behind`
  return {
    row: { ...known, highWaterUnixMs: nowUnixMs },
    nowUnixMs,
    fault: sentence(`one that moves with the boot clock, within ${skewMs} ms`, `one ${way}`),
  }
}

function judgeAfterBoot(known: ClockRow, reading: ClockReading): ClockJudgement {
  const offMs = reading.unixMs - known.highWaterUnixMs
  if (offMs >= 0 && offMs <= LONGEST_OFF_MS) return believed(anchoredAt(reading), reading.unixMs)
  const got = offMs < 0 ? `one ${-offMs} ms behind it` : `one ${offMs} ms ahead of it`
  return {
    row: known,
    nowUnixMs: known.highWaterUnixMs,
    fault: sentence('one not behind the last commit and at most 400 days ahead of it after a boot', got),
  }
}

function believed(row: ClockRow, nowUnixMs: number): ClockJudgement {
  return { row: { ...row, highWaterUnixMs: nowUnixMs }, nowUnixMs, fault: null }
}

function sentence(expected: string, got: string): string {
  return `wall clock refused: expected ${expected}, got ${got}; correct it, or sign that it is right: chio clock accept`
}
