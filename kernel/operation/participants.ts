// Owns: what ends together with an operation that is taken back: its hold and its nonce, if it has them.
// Must never: be left out where an operation is compensated. Source: the participants of the admission operation.
import { reverseHold } from '../calls/call-budget.js'
import { type AdmissionOperation, isToolCall } from './operation.js'
import { operationBytes } from './operation-document.js'
import type { SqliteMove } from '../sqlite/move.js'

/** @param operation as it stands after its compensation. @returns it. */
export function endParticipants(move: SqliteMove, operation: AdmissionOperation): AdmissionOperation {
  const { attachments, operationId, version } = operation
  const holdId = attachments.budget_hold_id
  if (holdId !== undefined) {
    if (isToolCall(operation.call)) reverseHold(move, holdId)
    else move.holds.end(operation, 'reversed')
  }
  if (attachments.execution_nonce_id !== undefined) {
    move.nonces.cancel(operationId, { bytes: operationBytes(operation), version })
  }
  return operation
}
