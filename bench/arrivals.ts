// Owns a Poisson stream of arrivals at one slot: each arrival prepares an operation that was admitted before, is
// declined when the slot is held, and otherwise starts, submits and holds the slot as long as the provider takes.
// Must never: let one arrival wait for another, or retry one that was declined.
import { setTimeout as sleep } from 'node:timers/promises'
import { isBrokerError } from '../protocol/errors.js'
import type { AdmittedOperation } from '../host/admission.js'
import { abandon, finalize } from '../host/settlement.js'
import type { Installation } from './installation.js'
import { admit, prepare, start, submit, verified } from './operation.js'
import { issueBody } from './request-body.js'
import type { SeededRandom } from './seeded-random.js'

export interface ArrivalPlan {
  readonly arrivals: number
  readonly perSecond: number
  readonly meanHoldMs: number
  readonly random: SeededRandom
}

export interface ArrivalCounts {
  readonly arrivals: number
  readonly declined: number
  /** From the preparation asked to the response read: how long the slot was held, its setting up included. */
  readonly holdsMs: readonly number[]
}

/** Admitted ahead, so that an arrival costs what a preparation costs; few, because an admission ages. */
const ADMITTED_AHEAD = 4

export async function runArrivals(installation: Installation, plan: ArrivalPlan): Promise<ArrivalCounts> {
  const { arrivals, meanHoldMs, perSecond, random } = plan
  const admitNext = (): Promise<AdmittedOperation> =>
    admit(installation, issueBody(random.exponential(meanHoldMs)))
  const admitted = await Promise.all(Array.from({ length: ADMITTED_AHEAD }, admitNext))
  const holdsMs: number[] = []
  let declined = 0
  const arrive = async (): Promise<void> => {
    const operation = admitted.shift() ?? (await admitNext())
    const heldMs = await holdSlot(installation, operation)
    if (heldMs === null) {
      declined += 1
      admitted.unshift(operation)
      return
    }
    holdsMs.push(heldMs)
    admitted.push(await admitNext())
  }
  await scheduled(arrivals, () => random.exponential(1_000 / perSecond), arrive)
  await Promise.all(admitted.map(operation => abandon(installation.session, operation)))
  return { arrivals, declined, holdsMs }
}

/** Begins each at its own moment of the plan, whatever became of those before. */
async function scheduled(count: number, gapMs: () => number, begin: () => Promise<void>): Promise<void> {
  const begun: Promise<void>[] = []
  let dueMs = performance.now()
  for (let arrival = 0; arrival < count; arrival++) {
    dueMs += gapMs()
    const leftMs = dueMs - performance.now()
    if (leftMs > 0) await sleep(leftMs)
    begun.push(begin())
  }
  await Promise.all(begun)
}

/** @returns milliseconds for which it held the slot; null when it was declined. */
async function holdSlot(installation: Installation, operation: AdmittedOperation): Promise<number | null> {
  const askedMs = performance.now()
  try {
    const stream = await prepare(installation, operation)
    await start(installation, operation)
    const answer = await submit(installation, stream)
    const heldMs = performance.now() - askedMs
    await finalize(installation.session, operation.operationId, verified(operation, answer))
    return heldMs
  } catch (error) {
    if (isBrokerError(error) && error.code === 'conflict') return null
    throw error
  }
}
