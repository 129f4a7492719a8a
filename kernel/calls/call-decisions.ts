// Owns: what becomes of a judged tool call: a denial with its receipt, a reserve that is taken back, an operation as it
// stands already.
// Must never: deny without a receipt in the same commit, or let a hold outlive the reserve that was denied.
// Source: the caller API of the kernel; every denial is a signed receipt.
import { endedCode } from './call-approvals.js'
import { callRefusal, DURABLE_ADMISSION_FAILED } from './call-refusal.js'
import type { CallCommand, CallDecision } from './call-store.js'
import type { CallEvaluation } from './evaluate-call.js'
import { logRefusal } from '../log/receipt-log.js'
import { callSubject } from '../log/receipt-subject.js'
import type { AdmissionOperation } from '../operation/operation.js'
import { stepsTo, walk } from '../operation/operation-walk.js'
import { endParticipants } from '../operation/participants.js'
import type { SqliteMove } from '../sqlite/move.js'

export interface Judged {
  readonly evaluation: CallEvaluation & { readonly verdict: 'deny' }
  readonly operation: AdmissionOperation | null
}

/** A denial with its receipt; it changes nothing else. */
export function denied(
  move: SqliteMove,
  command: CallCommand,
  { evaluation, operation }: Judged,
): CallDecision {
  const { agentId, request } = command
  const receipt = logRefusal(move, {
    callerPublicKey: agentId,
    capabilityId: request.capability_token.id,
    code: evaluation.code,
    evidence: evaluation.evidence,
    guard: evaluation.guard,
    operation,
    sentence: evaluation.reason,
    ...callSubject(request),
  })
  return { operation, receipt, refusal: evaluation }
}

/** A denied reserve ends its operation: its hold was given back, and cannot be taken again under the same id. */
export function takenBack(
  move: SqliteMove,
  command: CallCommand,
  judgement: Judged & { readonly operation: AdmissionOperation },
): CallDecision {
  const { check, reason } = judgement.evaluation
  const decision = denied(move, command, judgement)
  const milestone = { cause: `refused by ${check}`, lastError: reason }
  const ended = walk(move, judgement.operation, stepsTo('compensated_before_dispatch'), milestone)
  return { ...decision, operation: endParticipants(move, ended) }
}

/** An operation as it is found; one that was taken back is a refusal, with the receipt of its end. */
export function standing(move: SqliteMove, operation: AdmissionOperation): CallDecision {
  const { operationId } = operation
  const logged = move.receipts.answerOf(operationId)
  const receipt = logged?.receipt ?? null
  if (operation.state !== 'compensated_before_dispatch') return { operation, receipt, refusal: null }
  const why = operation.lastError ?? 'it was taken back before its start'
  const sentence = `${DURABLE_ADMISSION_FAILED}operation ${operationId} has ended as ${operation.state}: ${why}`
  return { operation, receipt, refusal: callRefusal('admission', endedCode(operation), sentence) }
}
