// Owns: what becomes of the operations that an earlier owner left open, decided and committed once, at the opening.
// Must never: take back what may have been dispatched, or leave hanging what can be taken back.
// Source: startup recovery of one operation; brokered operations are settled from the broker first.
import { isBeforeDispatch } from '../../protocol/admission-states.js'
import type { Recovered } from '../admission-store.js'
import { type AdmissionOperation, brokeredCall } from '../operation/operation.js'
import { note, stepsTo, walk } from '../operation/operation-walk.js'
import { endParticipants } from '../operation/participants.js'
import type { SqliteMove } from '../sqlite/move.js'
import type { ToolCallTerms } from '../calls/tool-call-terms.js'

/**
 * `adopt`: it lives on under the new owner. `compensate`: nothing of it can go on. `settle`: whoever may know what
 * happened is asked first, and until then it cannot be started.
 */
export type Recovery = 'adopt' | 'compensate' | 'settle'

export function recoveryOf(operation: AdmissionOperation, nowUnixMs: number): Recovery {
  const { state } = operation
  if (!isBeforeDispatch(state)) return 'settle'
  if (operation.call.kind === 'tool_call') return ofToolCall(operation.call.terms, state, nowUnixMs)
  if (state === 'ready_to_dispatch') return ofReady(operation, nowUnixMs)
  // People may still decide until the deadline of what was proposed to them.
  if (state === 'approval_required' || state === 'approval_reserved') {
    const deadline = operation.attachments.threshold_proposal?.body.proposalDeadline ?? 0
    return nowUnixMs < deadline * 1_000 ? 'adopt' : 'compensate'
  }
  return 'compensate'
}

/** Prepared with a live issuance, or ready with a live reservation, it goes on; nobody else can know of it. */
function ofToolCall(
  { executionNonce }: ToolCallTerms,
  state: AdmissionOperation['state'],
  nowUnixMs: number,
): Recovery {
  const isLive = nowUnixMs < executionNonce.nonce.expires_at * 1_000
  return isLive && (state === 'prepared' || state === 'ready_to_dispatch') ? 'adopt' : 'compensate'
}

function ofReady(operation: AdmissionOperation, nowUnixMs: number): Recovery {
  const { registration, reservation } = brokeredCall(operation)
  if (nowUnixMs < reservation.answer.executionNonce.nonce.expires_at * 1_000) return 'adopt'
  return registration === null ? 'compensate' : 'settle'
}

/** Adopts or compensates every open operation, in one commit. */
export function recover(move: SqliteMove): Recovered {
  const count = { adopt: 0, compensate: 0, settle: 0 }
  for (const operation of move.operations.open()) {
    const recovery = recoveryOf(operation, move.nowUnixMs)
    count[recovery] += 1
    if (recovery === 'adopt') adopt(move, operation)
    if (recovery === 'compensate') {
      const cause = 'its kernel ended before it was ready, or its nonce expired meanwhile'
      endParticipants(move, walk(move, operation, stepsTo('compensated_before_dispatch'), { cause }))
    }
  }
  return { adopted: count.adopt, compensated: count.compensate, left: count.settle }
}

function adopt(move: SqliteMove, operation: AdmissionOperation): void {
  const { ownerEpoch } = move.owner
  if (operation.leaseEpoch === ownerEpoch) return
  if (operation.attachments.execution_nonce_id !== undefined) move.nonces.adopt(operation.operationId)
  note(move, operation, { cause: `adopted by owner epoch ${ownerEpoch}`, leaseEpoch: ownerEpoch })
}
