// How an operation ends. A broker's signed record goes to the kernel; an operation whose record is not
// known yet is released through the kernel's word and read again. Nothing is ever started, prepared or
// handed over a second time from here.
import { type RecordedOutcome, readOutcome } from '../client/outcome.js'
import { BrokerError, isBrokerError } from '../protocol/errors.js'
import type { BrokerRecord, OperationView } from '../protocol/kernel-rpc.js'
import { DEFAULT_IPC_DEADLINE_MS } from '../protocol/limits.js'
import type { AdmittedOperation } from './admission.js'
import type { HostSession } from './session.js'

/** An outcome that the broker signed. */
export type SignedOutcome = Exclude<RecordedOutcome, { kind: 'attempt_pending' | 'attempt_unknown' }>

/** Whether an outcome is a signed record (and not a word about a missing one). */
export function isSigned(outcome: RecordedOutcome): outcome is SignedOutcome {
  return outcome.kind === 'response' || outcome.kind === 'failure'
}

/** Step 8, last half: the kernel takes the broker's record and makes the operation terminal. */
export async function finalize(
  session: HostSession,
  operationId: string,
  outcome: SignedOutcome,
): Promise<OperationView> {
  return session.kernel.call('finalize', { operationId, record: recordOf(outcome) })
}

function recordOf(outcome: SignedOutcome): BrokerRecord {
  return outcome.kind === 'response'
    ? { kind: 'receipt', receipt: outcome.response.receipt }
    : { kind: 'failure', failure: outcome.failure }
}

/** Cancels an operation that never reached the broker: its hold is given back. */
export async function cancel(session: HostSession, operationId: string): Promise<OperationView> {
  return session.kernel.call('cancel', { operationId })
}

/**
 * Ends an operation that will not be executed any more: releases the attempt under the kernel's word and
 * gives the broker's signed record to the kernel. The caller has closed its stream.
 * @returns the record, when the broker had or made one.
 * @throws BrokerError when broker or kernel is away: the kernel settles the operation by itself.
 */
export async function abandon(
  session: HostSession,
  admitted: AdmittedOperation,
): Promise<SignedOutcome | undefined> {
  await release(session, admitted)
  const outcome = await readOutcome(session.broker, admitted.context, DEFAULT_IPC_DEADLINE_MS)
  if (!isSigned(outcome)) {
    await cancelQuietly(session, admitted.operationId)
    return undefined
  }
  await finalize(session, admitted.operationId, outcome)
  return outcome
}

async function release(session: HostSession, admitted: AdmittedOperation): Promise<void> {
  const { registration, releaseAuthorization } = await session.kernel.call('authorize_release', {
    operationId: admitted.operationId,
  })
  const attempt = { registration, request: admitted.context.request, authorization: releaseAuthorization }
  try {
    await session.broker.release(attempt)
  } catch (error) {
    // A conflict says that the attempt went further or never arrived: its record decides, not the release.
    if (!isBrokerError(error) || !['conflict', 'attempt_unknown'].includes(error.code)) throw error
  }
}

async function cancelQuietly(session: HostSession, operationId: string): Promise<void> {
  try {
    await cancel(session, operationId)
  } catch (error) {
    // Past the dispatch commit nothing can be cancelled; the kernel settles it from the broker's record.
    if (!isBrokerError(error)) throw error
  }
}

/**
 * The error of a run that failed, after its operation was settled as far as that is possible now. The
 * stream is closed already; nothing here starts, prepares or hands over again.
 * @param isStarted whether a start was sent: before it, nothing can have been dispatched.
 */
export async function settledError(
  session: HostSession,
  admitted: AdmittedOperation,
  cause: unknown,
  isStarted: boolean,
): Promise<BrokerError> {
  const { operationId } = admitted
  try {
    return settledBy(cause, operationId, await abandon(session, admitted))
  } catch (error) {
    if (!isBrokerError(error)) throw error
    if (!isStarted) return withEnding(cause, 'not_started', operationId, 'the kernel will give back its hold')
    return new BrokerError(
      'outcome_undetermined',
      `operation ${operationId} has no verified outcome yet, after: ${sentenceOf(cause)}; never run it again before its record is read`,
      { outcome: 'unknown', operationId, cause },
    )
  }
}

/** The error of a run whose record is known: what was dispatched is what the record says. */
export function settledBy(
  cause: unknown,
  operationId: string,
  outcome: SignedOutcome | undefined,
): BrokerError {
  if (outcome?.kind === 'response') {
    return withEnding(
      cause,
      'completed',
      operationId,
      'the provider answered and the broker keeps the record: never run it again',
    )
  }
  const knowledge = outcome?.failure.receipt.body.dispatchKnowledge ?? 'not_started'
  if (knowledge === 'unknown')
    return withEnding(cause, 'unknown', operationId, 'whether the provider acted is unknown')
  if (knowledge === 'committed')
    return withEnding(cause, 'completed', operationId, 'the dispatch was committed and failed')
  return withEnding(cause, 'not_started', operationId, 'the attempt was released and nothing was dispatched')
}

/** The error of a run whose attempt was never registered: it says which operation was given up. */
export function unregisteredError(cause: unknown, operationId: string): BrokerError {
  return withEnding(cause, 'not_started', operationId, 'nothing was prepared and its hold is given back')
}

function withEnding(
  cause: unknown,
  outcome: 'completed' | 'not_started' | 'unknown',
  operationId: string,
  ending: string,
): BrokerError {
  const code = isBrokerError(cause) ? cause.code : 'handoff_failed'
  return new BrokerError(code, `${sentenceOf(cause)}; operation ${operationId}: ${ending}`, {
    outcome,
    operationId,
    receiptId: isBrokerError(cause) ? cause.receiptId : undefined,
    cause,
  })
}

function sentenceOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : 'an unknown fault'
}
