// Owns: how an operation goes through states: each step judged by the table, each attachment by its rule, each
// document set once, each version in the history.
// Must never: leave a step unjudged because the code above is believed to be right.
// Source: the admission state table; attachments are added with the move that they belong to.
import {
  type AttachmentName,
  type AdmissionAttachments,
  assertAddable,
} from '../../protocol/admission-attachments.js'
import { holderOf } from '../../protocol/admission-document.js'
import type { AdmissionState } from '../../protocol/admission-states.js'
import { BrokerError } from '../../protocol/errors.js'
import type { BrokerRecord } from '../../protocol/kernel-rpc.js'
import type { AttemptRegistration } from '../../protocol/registration.js'
import { callerAttemptId, type ToolCallTerms } from '../calls/tool-call-terms.js'
import * as rules from './move-rules.js'
import type { DecisionReason } from '../log/decision-receipt.js'
import {
  type AdmissionOperation,
  type DispatchCommit,
  isToolCall,
  type OperationCall,
  type Reservation,
} from './operation.js'
import { assertConsistent } from './operation-document.js'
import { logDecision } from '../log/receipt-log.js'
import type { SqliteMove } from '../sqlite/move.js'

/** One step: where to, and what is attached on the way. */
export interface Step {
  readonly to: AdmissionState
  readonly attach?: AdmissionAttachments
  readonly commit?: DispatchCommit
}

/** What a whole move brings; each member is set once and never changed. */
export interface Milestone extends DecisionReason {
  readonly lastError?: string | null
  readonly record?: BrokerRecord
  readonly registration?: AttemptRegistration
  /** The answer of a call that waited for its approvals. */
  readonly reservation?: Reservation
  /** The same of a tool call: its terms with the nonce that was issued. */
  readonly terms?: ToolCallTerms
}

export const stepsTo = (...states: readonly AdmissionState[]): Step[] => states.map(to => ({ to }))

/** An operation as `begin` takes it. */
export function preparedOf(
  call: OperationCall,
  move: SqliteMove,
  attachments: AdmissionAttachments = {},
): AdmissionOperation {
  const { binding, callerPublicKey } = askedIn(call)
  return {
    operationId: binding.operation_id,
    attachments,
    binding,
    call,
    callerPublicKey,
    commit: null,
    createdAtUnixMs: move.nowUnixMs,
    lastError: null,
    leaseEpoch: move.owner.ownerEpoch,
    state: 'prepared',
    updatedAtUnixMs: move.nowUnixMs,
    version: 1,
  }
}

function askedIn(call: OperationCall): Pick<AdmissionOperation, 'binding' | 'callerPublicKey'> {
  if (isToolCall(call)) return { binding: call.terms.binding, callerPublicKey: call.terms.agentId }
  const { binding, request } = call.reservation
  return { binding, callerPublicKey: request.callerPublicKey }
}

/** Inserts a prepared operation with the first line of its history, and with all that it is found by. */
export function begin(move: SqliteMove, operation: AdmissionOperation): void {
  assertConsistent(operation)
  move.operations.insert(operation)
  move.index.insert(operation, attemptIdOf(operation))
  const { operationId, state: to, version } = operation
  move.operations.recordHistory({ cause: 'asked', from: null, operationId, to, version })
}

/** Under which name its attempt is looked for; none where nobody carries it out. */
function attemptIdOf({ call, operationId }: AdmissionOperation): string | null {
  if (!isToolCall(call)) return call.reservation.ids.attemptId
  return call.terms.executor === null ? null : callerAttemptId(operationId)
}

/**
 * Goes through the steps in order, in this transaction, and writes the operation as it is then.
 * @throws BrokerError `illegal_transition`, `attachment_forbidden`, `attachment_missing`, `stale_version`.
 */
export function walk(
  move: SqliteMove,
  operation: AdmissionOperation,
  steps: readonly Step[],
  milestone: Milestone,
): AdmissionOperation {
  let current = withMilestone(operation, milestone)
  for (const step of steps) {
    const next = stepped(current, step)
    record(move, current, next, milestone.cause)
    current = next
  }
  const moved = move.operations.replace(operation, { ...current, updatedAtUnixMs: move.nowUnixMs })
  logDecision(move, moved, milestone)
  return moved
}

/** Adds to an operation without moving it. Its version counts on: whoever judged it before has to reread it. */
export function note(
  move: SqliteMove,
  operation: AdmissionOperation,
  { cause, leaseEpoch, ...milestone }: Milestone & { readonly leaseEpoch?: number },
): AdmissionOperation {
  const next = withMilestone(operation, { cause, ...milestone })
  const noted = { ...next, leaseEpoch: leaseEpoch ?? next.leaseEpoch, version: next.version + 1 }
  assertConsistent(noted)
  record(move, operation, noted, cause)
  return move.operations.replace(operation, { ...noted, updatedAtUnixMs: move.nowUnixMs })
}

function stepped(operation: AdmissionOperation, { attach = {}, commit, to }: Step): AdmissionOperation {
  rules.assertLegalMove(operation.binding, operation.state, to)
  const names = Object.keys(attach) as AttachmentName[]
  const again = names.find(name => operation.attachments[name] !== undefined)
  if (again !== undefined) refuseAgain(`attachment ${again}`)
  assertAddable(names, holderOf(operation))
  if (commit !== undefined && operation.commit !== null) refuseAgain('dispatch commit')
  const next = {
    ...operation,
    attachments: { ...operation.attachments, ...attach },
    commit: commit ?? operation.commit,
    state: to,
    version: operation.version + 1,
  }
  assertConsistent(next)
  return next
}

function withMilestone(operation: AdmissionOperation, milestone: Milestone): AdmissionOperation {
  const { lastError, record: given, registration } = milestone
  const call = answeredCall(operation.call, milestone)
  if (registration !== undefined && call.registration !== null) refuseAgain('registration')
  if (given !== undefined && call.record !== null) refuseAgain('record')
  return {
    ...operation,
    call: { ...call, registration: registration ?? call.registration, record: given ?? call.record },
    lastError: lastError ?? operation.lastError,
  }
}

function answeredCall(call: OperationCall, { reservation, terms }: Milestone): OperationCall {
  if (terms !== undefined) {
    if (call.kind !== 'announced_call') refuseAgain('answer')
    return { ...call, kind: 'tool_call', terms }
  }
  if (reservation === undefined) return call
  if (call.kind !== 'announced') refuseAgain('answer')
  return { ...call, kind: 'brokered', reservation }
}

function record(
  move: SqliteMove,
  { state: from }: AdmissionOperation,
  { operationId, state: to, version }: AdmissionOperation,
  cause: string,
): void {
  move.operations.recordHistory({ cause, from, operationId, to, version })
}

function refuseAgain(what: string): never {
  throw new BrokerError(
    'invariant',
    `${what} refused: expected one that was not set before, got a second one`,
  )
}
