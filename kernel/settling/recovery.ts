// Owns: what becomes of the operations that an earlier owner left open, decided and committed once, at the opening.
// Must never: take back what may have been dispatched, or leave hanging what can be taken back.
// Source: startup recovery of one operation; brokered operations are settled from the broker first.
import { type AdmissionState, isBeforeDispatch } from '../../protocol/admission-states.js'
import type { CallerExecutor } from '../../protocol/caller-authorization.js'
import { BrokerError } from '../../protocol/errors.js'
import { isSamePin } from '../delivery/caller-pin.js'
import { authorizeCall } from '../delivery/start-moves.js'
import type { Recovered } from '../admission-store.js'
import { assertLogWhole } from '../log/whole-log.js'
import { type AdmissionOperation, brokeredCall } from '../operation/operation.js'
import { note, stepsTo, walk } from '../operation/operation-walk.js'
import { endParticipants } from '../operation/participants.js'
import type { SqliteMove } from '../sqlite/move.js'
import type { ToolCallTerms } from '../calls/tool-call-terms.js'

/**
 * `adopt`: it lives on under the new owner. `compensate`: nothing of it can go on. `settle`: whoever may know what
 * happened is asked first, and until then it cannot be started. `authorize`: a captured call whose executor was never
 * told, and is pinned still. `abandon`: the same where another one is pinned, or none.
 */
export type Recovery = 'abandon' | 'adopt' | 'authorize' | 'compensate' | 'settle'

/** @param executor to whom the new owner delivers. */
export function recoveryOf(
  operation: AdmissionOperation,
  nowUnixMs: number,
  executor: CallerExecutor | null = null,
): Recovery {
  const { call, state } = operation
  if (state === 'dispatch_committed' && call.kind === 'tool_call') {
    const isPinned = executor !== null && isSamePin(call.terms.executor, executor)
    return isPinned ? 'authorize' : 'abandon'
  }
  if (!isBeforeDispatch(state)) return 'settle'
  if (call.kind === 'tool_call') return ofToolCall(call.terms, state, nowUnixMs)
  if (state === 'ready_to_dispatch') return ofReady(operation, nowUnixMs)
  // People may still decide until the deadline of what was proposed to them.
  if (state === 'approval_required' || state === 'approval_reserved') {
    const deadline = operation.attachments.threshold_proposal?.body.proposalDeadline ?? 0
    return nowUnixMs < deadline * 1_000 ? 'adopt' : 'compensate'
  }
  return 'compensate'
}

const WITH_NONCE: readonly AdmissionState[] = ['prepared', 'approval_reserved', 'ready_to_dispatch']

/** Prepared or approved with a live issuance, or ready with a live reservation, it goes on; nobody else can know of it. */
function ofToolCall(
  { executionNonce }: ToolCallTerms,
  state: AdmissionOperation['state'],
  nowUnixMs: number,
): Recovery {
  const isLive = nowUnixMs < executionNonce.nonce.expires_at * 1_000
  return isLive && WITH_NONCE.includes(state) ? 'adopt' : 'compensate'
}

function ofReady(operation: AdmissionOperation, nowUnixMs: number): Recovery {
  const { registration, reservation } = brokeredCall(operation)
  if (nowUnixMs < reservation.answer.executionNonce.nonce.expires_at * 1_000) return 'adopt'
  return registration === null ? 'compensate' : 'settle'
}

/** Decides every open operation, in one commit. @param executor to whom this owner delivers. */
export function recover(move: SqliteMove, executor: CallerExecutor | null): Recovered {
  const count = { abandon: 0, adopt: 0, authorize: 0, compensate: 0, settle: 0 }
  assertLogWhole(move)
  for (const operation of move.operations.open()) {
    assertHistory(move, operation)
    const recovery = recoveryOf(operation, move.nowUnixMs, executor)
    count[recovery] += 1
    if (recovery === 'adopt') adopt(move, operation)
    if (recovery === 'authorize')
      authorizeCall(move, { operationId: operation.operationId, policy: { executor } })
    if (recovery === 'abandon') abandon(move, operation)
    if (recovery === 'compensate') {
      const cause = 'its kernel ended before it was ready, or its nonce expired meanwhile'
      endParticipants(move, walk(move, operation, stepsTo('compensated_before_dispatch'), { cause }))
    }
  }
  return {
    adopted: count.adopt,
    authorized: count.authorize,
    compensated: count.compensate,
    left: count.settle,
    unknown: count.abandon,
  }
}

/** Nobody can report what nobody is pinned for. What was captured stays spent. */
function abandon(move: SqliteMove, operation: AdmissionOperation): void {
  const lastError = 'captured for an executor that is pinned no more, and never authorized'
  walk(move, operation, stepsTo('outcome_unknown_after_dispatch'), {
    cause: 'its executor is not pinned',
    lastError,
  })
}

/** An operation stands where its history ends, which nothing can change. @throws BrokerError `log_broken`. */
function assertHistory(
  { operations }: SqliteMove,
  { operationId, state, version }: AdmissionOperation,
): void {
  const last = operations.history(operationId).at(-1)
  if (last?.to === state && last.version === version) return
  const expected = `expected it as its history ends (${last?.to ?? 'nowhere'}), got ${state}`
  throw new BrokerError(
    'log_broken',
    `operation ${operationId} refused: ${expected}; its store was changed by another program: put the newest whole copy back`,
    { operationId },
  )
}

function adopt(move: SqliteMove, operation: AdmissionOperation): void {
  const { ownerEpoch } = move.owner
  if (operation.leaseEpoch === ownerEpoch) return
  if (operation.attachments.execution_nonce_id !== undefined) move.nonces.adopt(operation.operationId)
  note(move, operation, { cause: `adopted by owner epoch ${ownerEpoch}`, leaseEpoch: ownerEpoch })
}
