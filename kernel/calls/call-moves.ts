// Owns: the moves of a tool call up to its start: prepared with an issued nonce, then ready with a hold and a reserved one.
// Must never: let anything but the nonce change between preflight and reserve, reserve under an older context, or end a
// hold or a nonce that the operation does not own.
// Source: the sequence preflight -> refreshed context -> reserve with the nonce -> start with credentials.
import type { AdmissionState } from '../../protocol/admission-states.js'
import { encode } from '../../protocol/codec.js'
import { sha256Hex } from '../../protocol/digest.js'
import { BrokerError } from '../../protocol/errors.js'
import { SignedExecutionNonce } from '../../protocol/execution-nonce.js'
import { contextDigest } from '../../protocol/invocation-context.js'
import { valueHash } from '../../protocol/kernel-receipt.js'
import { MAXIMUM_OPEN_CALLS_OF_AGENT_COUNT } from '../../protocol/limits.js'
import { assertRecoverable, assertSamePin } from '../delivery/caller-pin.js'
import { captureCall, unpinned } from '../delivery/start-moves.js'
import * as rules from '../operation/move-rules.js'
import { type AdmissionOperation, toolCallOf } from '../operation/operation.js'
import { begin, preparedOf, type Step, walk } from '../operation/operation-walk.js'
import type { SqliteMove } from '../sqlite/move.js'
import { bootEndOf } from '../sqlite/nonce-tables.js'
import * as approvals from './call-approvals.js'
import { heldBudget, judgedBudget, takenBudget } from './call-budget.js'
import {
  assertContext,
  assertIssued,
  contextOf,
  denied,
  evaluate,
  ownRequest,
  standing,
  takenBack,
  verifiedNonce,
} from './call-judgement.js'
import {
  callRefusal,
  type CallRefusal,
  DURABLE_ADMISSION_FAILED,
  isRefusal,
  otherArguments,
} from './call-refusal.js'
import type { CallDecision, PreflightCommand, ReserveCallCommand, StartCallCommand } from './call-store.js'
import type { CallAllowed } from './evaluate-call.js'
import { presentedPossession } from './possession.js'

/** @throws BrokerError `request_binding_mismatch` for an id that another request has. */
export function preflightCall(move: SqliteMove, command: PreflightCommand): CallDecision {
  const { context, policy, request, sealed, terms } = command
  const { binding } = terms
  const known = ownRequest(move, command, binding)
  if (known !== undefined) return goOn(move, command, rules.sameOperation(known, binding.operation_id))
  rules.assertClock(move)
  assertRecoverable(policy)
  const evaluation = evaluate(move, command, judgedBudget(move, request.id))
  if (evaluation.verdict === 'deny') return denied(move, command, { evaluation, operation: null })
  // Behind the evaluation: nobody's room is filled by whoever only names them.
  const full = withoutRoom(move, command)
  if (full !== null) return denied(move, command, { evaluation: { ...full, evidence: [] }, operation: null })
  if (binding.request_binding.participant_requirements.approval) return announced(move, command, evaluation)
  const operation = preparedCall(move, command)
  begin(move, operation)
  move.operations.retain(operation.operationId, sealed)
  move.contexts.append(operation.operationId, context)
  return { operation, receipt: null, refusal: null }
}

/** Every agent has room of its own; what it asked for before was found already, and needs none. */
function withoutRoom(move: SqliteMove, { agentId }: PreflightCommand): CallRefusal | null {
  const open = move.index.openReservations(agentId)
  if (open < MAXIMUM_OPEN_CALLS_OF_AGENT_COUNT) return null
  return callRefusal(
    'admission',
    'reservation_capacity',
    `${DURABLE_ADMISSION_FAILED}call refused: expected fewer than ${MAXIMUM_OPEN_CALLS_OF_AGENT_COUNT} open reservations of this agent, got ${open}; start one, or wait until one expires`,
  )
}

/** A call that needs approvals holds from here on what it was judged to have: it is kept while people decide. */
function announced(move: SqliteMove, command: PreflightCommand, allowed: CallAllowed): CallDecision {
  const { policy, request } = command
  const refusal = approvals.unapprovable(policy, approvals.requiredApprovals(policy, request))
  if (refusal !== null) {
    return denied(move, command, { evaluation: { ...refusal, evidence: [] }, operation: null })
  }
  const budget = takenBudget(move, request.id)
  const grant = budget.take(allowed.token, [allowed.grant])
  if (isRefusal(grant)) {
    const expected = 'expected the hold that was judged to be there, got a refusal'
    throw new BrokerError('invariant', `tool call refused: ${expected}: ${grant.reason}`)
  }
  const holdId = budget.holdId as string
  return standing(move, approvals.announceCall(move, command, { grant, holdId }))
}

/** A call that is known: an approved one is issued its nonce, judged by what is true now; every other as it stands. */
function goOn(move: SqliteMove, command: PreflightCommand, operation: AdmissionOperation): CallDecision {
  const { call } = operation
  if (call.kind !== 'announced_call' || operation.state !== 'approval_reserved') {
    return standing(move, operation)
  }
  rules.assertClock(move)
  rules.assertOwned(operation, move)
  assertContext(move, command, operation)
  const budget = heldBudget(move, operation.attachments.budget_hold_id as string)
  const evaluation = evaluate(move, command, budget, { operation })
  if (evaluation.verdict === 'deny') return denied(move, command, { evaluation, operation })
  return standing(move, approvals.issueApproved(move, { ...operation, call }, command))
}

/** An issued nonce is noted with the operation; it is reserved by the reserve alone. */
function preparedCall(
  move: SqliteMove,
  { context, mintNonce, terms: asked }: PreflightCommand,
): AdmissionOperation {
  const terms = { ...asked, executionNonce: mintNonce(move.nowUnixSeconds) }
  const issuance = sha256Hex(encode(SignedExecutionNonce, terms.executionNonce))
  return preparedOf({ kind: 'tool_call', record: null, registration: null, terms }, move, {
    nonce_issuance_digest: issuance,
    nonce_preflight_digest: sha256Hex(Buffer.from(`${issuance}${contextDigest(context)}`, 'utf8')),
  })
}

/**
 * @throws BrokerError `operation_unknown` before a preflight, `request_binding_mismatch` where anything but the nonce
 * changed since, the nonce's own codes, `context_stale`. Nothing was changed then.
 */
export function reserveCall(move: SqliteMove, command: ReserveCallCommand): CallDecision {
  const { binding, context, nonce, policy, request } = command
  const known = rules.assertFound(ownRequest(move, command, binding))
  const operation = rules.sameOperation(known, binding.operation_id)
  const { terms } = toolCallOf(operation)
  assertIssued(terms, nonce)
  if (operation.state !== 'prepared' && operation.state !== 'approval_reserved') {
    return standing(move, operation)
  }
  rules.assertClock(move)
  assertRecoverable(policy)
  rules.assertOwned(operation, move)
  const verified = verifiedNonce(move, command, operation)
  assertContext(move, command, operation)
  const held = operation.attachments.budget_hold_id
  const budget = held === undefined ? takenBudget(move, request.id) : heldBudget(move, held)
  const evaluation = evaluate(move, command, budget, { operation })
  if (evaluation.verdict === 'deny') return takenBack(move, command, { evaluation, operation })
  const bootEnd = bootEndOf(move, verified)
  move.nonces.reserve(verified, { bootEnd, capacity: policy.nonceCapacity, issuer: policy.nonceIssuer })
  move.contexts.append(operation.operationId, context)
  const ready = { attach: { execution_nonce_id: nonce.nonce.nonce_id }, to: 'ready_to_dispatch' } as const
  const holdId = 'holdId' in budget ? (budget.holdId as string) : null
  const steps: Step[] =
    holdId === null
      ? [ready]
      : [
          ...approvals.attemptSteps(terms),
          { attach: { budget_hold_id: holdId }, to: 'budget_authorized' },
          ready,
        ]
  return standing(move, walk(move, operation, steps, { cause: 'reserved', evidence: evaluation.evidence }))
}

/**
 * Judges a start as the reserve was judged, against what lives now, and captures it for the pinned executor.
 * @throws BrokerError `operation_state` with the state found and the next step, `executor_changed`, the nonce's own
 * codes, `request_binding_mismatch` for other arguments, `context_stale`, `executor_unpinned`.
 */
export function startCall(move: SqliteMove, command: StartCallCommand): CallDecision {
  const { credentials, policy } = command
  const operation = rules.assertFound(move.operations.find(command.operationId))
  rules.assertState(operation, 'ready_to_dispatch', NEXT_OF_START[operation.state] ?? 'inspect it')
  assertSamePin(operation, policy)
  const reserved = move.nonces.reserved(verifiedNonce(move, command, operation), policy.nonceIssuer)
  if (valueHash(command.arguments) !== toolCallOf(operation).terms.parameterHash)
    throw otherArguments(operation.operationId)
  const judged = { ...command, context: command.context ?? contextOf(move, operation) }
  assertContext(move, judged, operation)
  rules.assertClock(move)
  assertRecoverable(policy)
  const budget = heldBudget(move, operation.attachments.budget_hold_id as string)
  const possession = presentedPossession(move, credentials.dpop_proof)
  const evaluation = evaluate(move, judged, budget, { credentials, operation, possession })
  if (evaluation.verdict === 'deny') return denied(move, judged, { evaluation, operation })
  if (policy.executor === null) throw unpinned(operation)
  possession.use(operation.operationId)
  return captureCall(move, judged, { evaluation, operation, reserved })
}

const NEXT_OF_START: Partial<Record<AdmissionState, string>> = {
  prepared: 'refresh the context and reserve with the nonce of its preflight',
  compensated_before_dispatch: 'nothing was started; changed or new work needs an id of its own',
  capture_pending: 'inspect and recover the original operation',
  dispatch_committed: 'inspect and recover the original operation',
  awaiting_caller_report: 'it was started: its executor reports the original operation',
}
