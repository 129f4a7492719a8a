// Owns the order of measuring: ours, theirs, ours, theirs, …, in one process and one run, so that whatever the
// machine does besides meets both sides alike.
// Must never: measure one side first and the other later, or keep what was measured before it was warm.

/** One side: does its work once and says what it measured. What it does untimed around it is its own affair. */
export type Side = () => Promise<number>

export interface Interleaved {
  readonly ours: number[]
  readonly theirs: number[]
}

/** Both sides and both daemons run compiled code by then. */
const WARM_UP_ROUNDS_MAXIMUM = 150

/** @param theirs null where there is nothing to compare with on this machine: ours is measured alone. */
export async function interleave(rounds: number, ours: Side, theirs: Side | null): Promise<Interleaved> {
  const warmUp = Math.min(WARM_UP_ROUNDS_MAXIMUM, Math.ceil(rounds / 2))
  const measured: Interleaved = { ours: [], theirs: [] }
  for (let round = -warmUp; round < rounds; round++) {
    const [mine, other] = [await ours(), theirs === null ? null : await theirs()]
    if (round < 0) continue
    measured.ours.push(mine)
    if (other !== null) measured.theirs.push(other)
  }
  return measured
}

/** Milliseconds that a step took, on the monotonic clock. */
export async function millisecondsOf(step: () => Promise<unknown>): Promise<number> {
  const started = process.hrtime.bigint()
  await step()
  return Number(process.hrtime.bigint() - started) / 1e6
}
