// Owns the two sizes of a repeated test: the small count that `npm test` runs and the full one that
// `npm run test:full` (CHIO_FULL=1) runs. It must never decide what is tested, only how often.

/** Whether this run takes the full counts. */
export const isFullRun: boolean = process.env['CHIO_FULL'] === '1'

/**
 * Picks how often a test repeats.
 * @param small count that keeps `npm test` under its ten minutes; at least 1
 * @param full count that the promise itself states; at least `small`
 * @throws RangeError when the two do not stand in that order
 */
export function fullCount(small: number, full: number): number {
  if (!Number.isSafeInteger(small) || small < 1) {
    throw new RangeError(`"small" expected a whole number of at least 1, got ${small}`)
  }
  if (!Number.isSafeInteger(full) || full < small) {
    throw new RangeError(`"full" expected a whole number of at least ${small}, got ${full}`)
  }
  return isFullRun ? full : small
}

/** The longest that a repeated test may take, full counts on a busy machine: as long as every other test of its run. */
export const FULL_RUN_TIMEOUT_MS = isFullRun ? 600_000 : 120_000
