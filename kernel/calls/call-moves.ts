// Owns: the moves of a tool call up to its start: prepared with an issued nonce, then ready with a hold and a reserved one.
// Must never: let anything but the nonce change between preflight and reserve, reserve under an older context, or end a
// hold or a nonce that the operation does not own.
// Source: the sequence preflight -> refreshed context -> reserve with the nonce -> start with credentials.
import type { AdmissionState } from '../../protocol/admission-states.js'
import { encode, isSameDocument } from '../../protocol/codec.js'
import { sha256Hex } from '../../protocol/digest.js'
import { BrokerError } from '../../protocol/errors.js'
import {
  nonceRefusal,
  SignedExecutionNonce,
  verifyNonce,
  type VerifiedNonce,
} from '../../protocol/execution-nonce.js'
import { assertFollows, contextDigest, type InvocationContext } from '../../protocol/invocation-context.js'
import { valueHash } from '../../protocol/kernel-receipt.js'
import { type CallBudget, heldBudget, judgedBudget, takenBudget } from './call-budget.js'
import { callRefusal, type CallRefusal, DURABLE_ADMISSION_FAILED, otherArguments } from './call-refusal.js'
import type {
  CallCommand,
  CallDecision,
  PreflightCommand,
  ReserveCallCommand,
  StartCallCommand,
} from './call-store.js'
import { type CallAuthority, type CallEvaluation, evaluateCall } from './evaluate-call.js'
import { assertRecoverable, assertSamePin } from '../delivery/caller-pin.js'
import { callerAttemptOf } from '../delivery/dispatch-authorization.js'
import { captureCall, unpinned } from '../delivery/start-moves.js'
import * as rules from '../operation/move-rules.js'
import { type AdmissionOperation, toolCallOf } from '../operation/operation.js'
import { begin, preparedOf, type Step, stepsTo, walk } from '../operation/operation-walk.js'
import { endParticipants } from '../operation/participants.js'
import { logRefusal } from '../log/receipt-log.js'
import { callSubject } from '../log/receipt-subject.js'
import type { SqliteMove } from '../sqlite/move.js'
import { bootEndOf } from '../sqlite/nonce-tables.js'
import { nonceBindingOf, type ToolCallTerms } from './tool-call-terms.js'

/** @throws BrokerError `request_binding_mismatch` for an id that another request has. */
export function preflightCall(move: SqliteMove, command: PreflightCommand): CallDecision {
  const { context, policy, request, sealed, terms } = command
  const known = ownRequest(move, command, terms.binding)
  if (known !== undefined) return standing(move, rules.sameOperation(known, terms.binding.operation_id))
  rules.assertClock(move)
  assertRecoverable(policy)
  const evaluation = evaluate(move, command, judgedBudget(move, request.id))
  if (evaluation.verdict === 'deny') return denied(move, command, { evaluation, operation: null })
  const operation = preparedCall(move, command)
  begin(move, operation)
  move.operations.retain(operation.operationId, sealed)
  move.contexts.append(operation.operationId, context)
  return { operation, receipt: null, refusal: null }
}

/** An issued nonce is noted with the operation; it is reserved by the reserve alone. */
function preparedCall(move: SqliteMove, { context, terms }: PreflightCommand): AdmissionOperation {
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
  if (operation.state !== 'prepared') return standing(move, operation)
  rules.assertClock(move)
  assertRecoverable(policy)
  rules.assertOwned(operation, move)
  const verified = verifiedNonce(move, command, operation)
  assertContext(move, command, operation)
  const budget = takenBudget(move, request.id)
  const evaluation = evaluate(move, command, budget)
  if (evaluation.verdict === 'deny') return takenBack(move, command, { evaluation, operation })
  const bootEnd = bootEndOf(move, verified)
  move.nonces.reserve(verified, { bootEnd, capacity: policy.nonceCapacity, issuer: policy.nonceIssuer })
  move.contexts.append(operation.operationId, context)
  const steps: Step[] = [
    ...attemptSteps(operation),
    { attach: { budget_hold_id: budget.holdId as string }, to: 'budget_authorized' },
    { attach: { execution_nonce_id: nonce.nonce.nonce_id }, to: 'ready_to_dispatch' },
  ]
  return standing(move, walk(move, operation, steps, { cause: 'reserved', evidence: evaluation.evidence }))
}

/** An attempt is announced to a pinned executor alone. */
function attemptSteps(operation: AdmissionOperation): Step[] {
  const { executor, serverId } = toolCallOf(operation).terms
  if (executor === null) return []
  const broker_attempt = callerAttemptOf(operation.operationId, { executor, serverId })
  return [{ attach: { broker_attempt }, to: 'broker_attempt_registered' }]
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
  const evaluation = evaluate(move, judged, budget, Object.keys(credentials))
  if (evaluation.verdict === 'deny') return denied(move, judged, { evaluation, operation })
  if (policy.executor === null) throw unpinned(operation)
  return captureCall(move, judged, { evaluation, operation, reserved })
}

const NEXT_OF_START: Partial<Record<AdmissionState, string>> = {
  prepared: 'refresh the context and reserve with the nonce of its preflight',
  compensated_before_dispatch: 'nothing was started; changed or new work needs an id of its own',
  capture_pending: 'inspect and recover the original operation',
  dispatch_committed: 'inspect and recover the original operation',
  awaiting_caller_report: 'it was started: its executor reports the original operation',
}

/** The operation of a request id, if it is this agent's, under the pin that it was admitted for. */
function ownRequest(
  move: SqliteMove,
  { agentId, policy }: CallCommand,
  { request_id, request_namespace_digest }: ToolCallTerms['binding'],
): AdmissionOperation | undefined {
  const known = move.operations.ofRequest(request_namespace_digest, request_id)
  if (known === undefined) return undefined
  if (known.callerPublicKey === agentId) {
    if (known.call.kind === 'tool_call') assertSamePin(known, policy)
    return known
  }
  throw new BrokerError(
    'request_binding_mismatch',
    'request_binding_mismatch: call refused: expected an id that is not used yet, got that of another request',
  )
}

function evaluate(
  move: SqliteMove,
  { agentId, context, policy, request }: CallCommand,
  budget: CallBudget,
  presented: readonly string[] = [],
): CallEvaluation {
  const tool = policy.toolOf(request.server_id, request.tool)
  const authority: CallAuthority = {
    giveBudgetBack: () => budget.giveBack(),
    guards: [...(tool?.guards ?? []), ...policy.guards],
    isRevoked: id => move.grants.revocation([id]).revoked,
    isTarget: () => tool !== undefined,
    judgeApprovals: () => unjudgedCredentials([...presented, ...carriedBy(request)]),
    pins: { issuers: policy.issuers },
    remember: token => move.capabilities.remember(token),
    snapshotOf: id => move.capabilities.find(id),
    takeBudget: (token, covering) => budget.take(token, covering),
  }
  return evaluateCall({ agentId, context, nowUnixSeconds: move.nowUnixSeconds, request }, authority)
}

const CREDENTIALS = [
  'approval_token',
  'approval_tokens',
  'supplemental_authorization',
  'threshold_approval_proposal',
] as const

function carriedBy(request: CallCommand['request']): readonly string[] {
  return CREDENTIALS.filter(name => request[name] !== undefined)
}

/** No grant of a tool call asks for one: what is presented all the same is not passed over in silence. */
function unjudgedCredentials(names: readonly string[]): CallRefusal | null {
  if (names.length === 0) return null
  return callRefusal(
    'approval',
    'authorization_denied',
    `caller execution requires authenticated start and operation-owned credential custody: expected none, got ${names.join(', ')}`,
  )
}

/** The very nonce of the preflight. @throws BrokerError `execution_nonce_binding`. */
function assertIssued({ executionNonce }: ToolCallTerms, presented: SignedExecutionNonce): void {
  if (isSameDocument(SignedExecutionNonce, executionNonce, presented)) return
  throw nonceRefusal('binding', 'the nonce that the preflight of this operation issued')
}

function verifiedNonce(
  move: SqliteMove,
  { nonce, policy, request }: Omit<CallCommand, 'context'> & { readonly nonce: SignedExecutionNonce },
  { operationId }: AdmissionOperation,
): VerifiedNonce {
  const boundTo = nonceBindingOf(request)
  return verifyNonce(nonce, {
    boundTo,
    issuer: policy.nonceIssuer,
    nowUnixSeconds: move.nowUnixSeconds,
    operationId,
  })
}

function assertContext(
  move: SqliteMove,
  { context }: Pick<CallCommand, 'context'>,
  { operationId }: AdmissionOperation,
): void {
  const earlier = move.contexts.last(operationId)
  if (earlier !== undefined) assertFollows(context, earlier)
}

/** The context under which an operation was judged last. */
function contextOf(move: SqliteMove, { operationId }: AdmissionOperation): InvocationContext {
  return rules.assertFound(move.contexts.last(operationId))
}

interface Judged {
  readonly evaluation: CallEvaluation & { readonly verdict: 'deny' }
  readonly operation: AdmissionOperation | null
}

/** A denial with its receipt; it changes nothing else. */
function denied(move: SqliteMove, command: CallCommand, { evaluation, operation }: Judged): CallDecision {
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
function takenBack(
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
function standing(move: SqliteMove, operation: AdmissionOperation): CallDecision {
  const { operationId } = operation
  const logged = move.receipts.answerOf(operationId)
  const receipt = logged?.receipt ?? null
  if (operation.state !== 'compensated_before_dispatch') return { operation, receipt, refusal: null }
  const why = operation.lastError ?? 'it was taken back before its start'
  const sentence = `${DURABLE_ADMISSION_FAILED}operation ${operationId} has ended as ${operation.state}: ${why}`
  return { operation, receipt, refusal: callRefusal('admission', 'operation_state', sentence) }
}
