// Owns the comparison of what the provider counted with what kernel and broker have on record: no request arrived
// twice, none without a record, and the two owners never disagree.
// Must never: judge by anything but the provider's count and the two records.
import type { HostSession } from '../../host/session.js'
import { type AdmissionState, isTerminalState } from '../../protocol/admission-states.js'
import type { AttemptState } from '../../protocol/attempt-states.js'
import { isBrokerError } from '../../protocol/errors.js'
import type { OperationView } from '../../protocol/kernel-rpc.js'
import type { AttemptStatus } from '../../protocol/status.js'

/** What the broker has on record; `none` when the attempt was never registered there. */
export interface AttemptEntry {
  readonly state: AttemptState | 'none'
  readonly reason: string | null
  /** Whether its dispatch commit is on disk: from then on the provider may have been asked. */
  readonly isCommitted: boolean
  readonly held: boolean
}

/** One operation in the eyes of both owners. */
export interface OperationEntry {
  readonly operationId: string
  /** Of the exact request: what relates an operation to the body that arrived. */
  readonly requestDigest: string
  readonly state: AdmissionState
  readonly isSettled: boolean
  readonly attempt: AttemptEntry
}

const NEVER_REGISTERED: AttemptEntry = { state: 'none', reason: null, isCommitted: false, held: false }

/** Reads both records of one operation. @throws BrokerError when one of the two cannot be reached. */
export async function readEntry(session: HostSession, operationId: string): Promise<OperationEntry> {
  return entryOf(session, await session.kernel.call('inspect', { operationId }))
}

/** Reads both records of the latest operations of this host. @param limit at most 1,000. */
export async function readEntries(session: HostSession, limit = 1_000): Promise<OperationEntry[]> {
  const { operations } = await session.kernel.call('list', { limit })
  const entries: OperationEntry[] = []
  for (const view of operations) entries.push(await entryOf(session, view))
  return entries
}

async function entryOf(session: HostSession, view: OperationView): Promise<OperationEntry> {
  const { attemptId, operationId, requestDigest } = view
  const state = view.state as AdmissionState
  const attempt = attemptId === null ? NEVER_REGISTERED : await readAttempt(session, attemptId)
  return { operationId, requestDigest, state, isSettled: isTerminalState(state), attempt }
}

/** Reads the broker's record of one attempt. */
export async function readAttempt(session: HostSession, attemptId: string): Promise<AttemptEntry> {
  try {
    return attemptEntry(await session.broker.attemptStatus(attemptId))
  } catch (error) {
    if (isBrokerError(error) && error.code === 'attempt_unknown') return NEVER_REGISTERED
    throw error
  }
}

function attemptEntry({ dispatchCommittedAtUnixMs, held, reason, state }: AttemptStatus): AttemptEntry {
  return { state, reason, isCommitted: dispatchCommittedAtUnixMs !== null, held }
}

/** One distinct request: how often it arrived, and every operation that was reserved for it. */
export interface RequestLedger {
  readonly hits: number
  readonly entries: readonly OperationEntry[]
}

/** @returns what does not hold, one sentence each; nothing when all holds. Settled or not, but with nobody at work. */
export function violationsOf({ hits, entries }: RequestLedger): string[] {
  const committed = entries.filter(({ attempt }) => attempt.isCommitted).length
  const answered = entries.filter(({ attempt }) => attempt.state === 'completed').length
  return [
    ...(hits > 1 ? [`the provider had the request ${hits} times`] : []),
    ...(committed > 1 ? [`${committed} attempts were dispatched for one request`] : []),
    ...(hits > committed ? [`${hits} hits with ${committed} dispatches on record`] : []),
    ...(answered > hits ? [`${answered} answers on record with ${hits} hits`] : []),
    ...entries.flatMap(disagreements),
  ]
}

/** Whether kernel and broker may say these two things of one operation. */
function disagreements({ operationId, state, attempt }: OperationEntry): string[] {
  if (mayStandTogether(state, attempt)) return []
  const committed = attempt.isCommitted ? 'dispatched' : 'not dispatched'
  return [`operation ${operationId} is ${state} and its attempt ${attempt.state}, ${committed}`]
}

/** By the ends of an operation; one that is open may stand beside anything its start permits. */
function mayStandTogether(state: AdmissionState, { isCommitted, state: attempt }: AttemptEntry): boolean {
  switch (state) {
    case 'compensated_before_dispatch':
    case 'not_accepted_after_dispatch_commit':
      return !isCommitted && (attempt === 'none' || attempt === 'failed')
    case 'completed':
      return isCommitted && attempt === 'completed'
    case 'denied_after_delivery':
      return isCommitted && attempt === 'failed'
    case 'outcome_unknown_after_dispatch':
      return isCommitted && attempt === 'unknown_outcome'
    case 'dispatch_committed':
      return true
    default:
      return !isCommitted
  }
}
