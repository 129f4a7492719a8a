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
import { MAXIMUM_OPEN_RESERVATIONS_PER_AGENT } from '../../protocol/limits.js'
import { type CallBudget, heldBudget, judgedBudget, takenBudget } from './call-budget.js'
import * as approvals from './call-approvals.js'
import {
  callRefusal,
  type CallRefusal,
  DURABLE_ADMISSION_FAILED,
  isRefusal,
  otherArguments,
} from './call-refusal.js'
import { denied, standing, takenBack } from './call-decisions.js'
import type {
  CallCommand,
  CallDecision,
  PreflightCommand,
  ReserveCallCommand,
  StartCallCommand,
} from './call-store.js'
import { judgeCarried, judgePresented } from './credentials.js'
import { type CallAllowed, type CallAuthority, type CallEvaluation, evaluateCall } from './evaluate-call.js'
import { type Possession, presentedPossession, UNASKED } from './possession.js'
import type { CallCredentials } from '../../protocol/tool-call-rpc.js'
import { assertRecoverable, assertSamePin } from '../delivery/caller-pin.js'
import { attemptSteps } from '../delivery/dispatch-authorization.js'
import { captureCall, unpinned } from '../delivery/start-moves.js'
import * as rules from '../operation/move-rules.js'
import { type AdmissionOperation, isToolCall, toolCallOf } from '../operation/operation.js'
import { begin, preparedOf, type Step, walk } from '../operation/operation-walk.js'
import type { SqliteMove } from '../sqlite/move.js'
import { bootEndOf } from '../sqlite/nonce-tables.js'
import { nonceBindingOf, type ToolCallTerms } from './tool-call-terms.js'

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

/** A call that needs approvals holds from here on what it was judged to have: it is kept while people decide. */
function announced(move: SqliteMove, command: PreflightCommand, allowed: CallAllowed): CallDecision {
  const { policy, request } = command
  const refusal = approvals.unapprovable(policy, approvals.requiredApprovals(policy, request))
  if (refusal !== null) {
    return denied(move, command, { evaluation: { ...refusal, evidence: [] }, operation: null })
  }
  const budget = takenBudget(move, request.id)
  const grant = budget.take(allowed.token, [allowed.grant])
  if (isRefusal(grant))
    throw new BrokerError('invariant', `hold refused: expected the one judged: ${grant.reason}`)
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

/** Every agent has room of its own; what it asked for before was found already, and needs none. */
function withoutRoom(move: SqliteMove, { agentId }: CallCommand): CallRefusal | null {
  const open = move.index.openReservations(agentId)
  if (open < MAXIMUM_OPEN_RESERVATIONS_PER_AGENT) return null
  return callRefusal(
    'admission',
    'reservation_capacity',
    `${DURABLE_ADMISSION_FAILED}call refused: expected fewer than ${MAXIMUM_OPEN_RESERVATIONS_PER_AGENT} open reservations of this agent, got ${open}; start one, or wait until one expires`,
  )
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
      : [...attemptSteps(operation), { attach: { budget_hold_id: holdId }, to: 'budget_authorized' }, ready]
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
  possession.use(operation.operationId)
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
    if (isToolCall(known.call)) assertSamePin(known, policy)
    return known
  }
  throw new BrokerError(
    'request_binding_mismatch',
    'request_binding_mismatch: call refused: expected an id that is not used yet, got that of another request',
  )
}

/** What is known of a call beside its request: the operation once there is one, and what its start presents. */
interface Known {
  readonly operation?: AdmissionOperation
  readonly credentials?: CallCredentials
  readonly possession?: Possession
}

function evaluate(
  move: SqliteMove,
  { agentId, context, policy, request }: CallCommand,
  budget: CallBudget,
  { credentials = {}, operation, possession = UNASKED }: Known = {},
): CallEvaluation {
  const judgeOwn = () =>
    operation === undefined
      ? null
      : (judgePresented(move, operation, credentials) ??
        approvals.judgeCallApprovals(move, operation, policy))
  const authority: CallAuthority = {
    giveBudgetBack: () => budget.giveBack(),
    guards: policy.guards,
    isRevoked: id => move.grants.revocation([id]).revoked,
    isTarget: policy.isTarget,
    judgeApprovals: () => judgeCarried(request) ?? judgeOwn(),
    judgePossession: (call, token, covering) => possession.judge(call, token, covering),
    keptOtherwise: approvals.KEPT_BY_APPROVAL,
    pins: { issuers: policy.issuers },
    remember: token => move.capabilities.remember(token),
    snapshotOf: id => move.capabilities.find(id),
    takeBudget: (token, covering) => budget.take(token, covering),
  }
  return evaluateCall({ agentId, context, nowUnixSeconds: move.nowUnixSeconds, request }, authority)
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
