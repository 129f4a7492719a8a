// Owns: the moves of a tool call up to its start: prepared with an issued nonce, then ready with a hold and a reserved one.
// Must never: let anything but the nonce change between preflight and reserve, reserve under an older context, or end a
// hold or a nonce that the operation does not own.
// Source: the sequence preflight -> refreshed context -> reserve with the nonce -> start with credentials.
import type { AdmissionState } from '../../protocol/admission-states.js'
import { encode } from '../../protocol/codec.js'
import { sha256Hex } from '../../protocol/digest.js'
import { BrokerError } from '../../protocol/errors.js'
import {
  nonceRefusal,
  SignedExecutionNonce,
  verifyNonce,
  type VerifiedNonce,
} from '../../protocol/execution-nonce.js'
import { assertFollows, contextDigest } from '../../protocol/invocation-context.js'
import { parameterHash } from '../../protocol/tool-call.js'
import { type CallBudget, heldBudget, judgedBudget, takenBudget } from './call-budget.js'
import * as approvals from './call-approvals.js'
import { callRefusal, DURABLE_ADMISSION_FAILED, isRefusal, otherArguments } from './call-refusal.js'
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
import * as rules from '../operation/move-rules.js'
import { type AdmissionOperation, toolCallOf } from '../operation/operation.js'
import { begin, preparedOf, stepsTo, walk } from '../operation/operation-walk.js'
import { endParticipants } from '../operation/participants.js'
import { logRefusal } from '../log/receipt-log.js'
import type { SqliteMove } from '../sqlite/move.js'
import { bootEndOf } from '../sqlite/nonce-tables.js'
import { nonceBindingOf, type ToolCallTerms } from './tool-call-terms.js'

/** @throws BrokerError `request_binding_mismatch` for an id that another request has. */
export function preflightCall(move: SqliteMove, command: PreflightCommand): CallDecision {
  const { context, request, sealed, terms } = command
  const { binding } = terms
  const known = ownRequest(move, command, binding)
  if (known !== undefined) return goOn(move, command, rules.sameOperation(known, binding.operation_id))
  rules.assertClock(move)
  const evaluation = evaluate(move, command, judgedBudget(move, request.id))
  if (evaluation.verdict === 'deny') return denied(move, command, { evaluation, operation: null })
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
  const steps =
    holdId === null
      ? [ready]
      : [{ attach: { budget_hold_id: holdId }, to: 'budget_authorized' } as const, ready]
  return standing(move, walk(move, operation, steps, { cause: 'reserved', evidence: evaluation.evidence }))
}

/**
 * Judges a start as the reserve was judged, against what lives now. It captures nothing yet: a call is delivered to a
 * pinned executor, and this kernel pins none.
 * @throws BrokerError `operation_state` with the state found and the next step, the nonce's own codes,
 * `request_binding_mismatch` for other arguments, `context_stale`, `executor_unpinned`.
 */
export function startCall(move: SqliteMove, command: StartCallCommand): CallDecision {
  const { credentials, policy } = command
  const operation = rules.assertFound(move.operations.find(command.operationId))
  rules.assertState(operation, 'ready_to_dispatch', NEXT_OF_START[operation.state] ?? 'inspect it')
  move.nonces.reserved(verifiedNonce(move, command, operation), policy.nonceIssuer)
  if (parameterHash(command.arguments) !== toolCallOf(operation).terms.parameterHash)
    throw otherArguments(operation.operationId)
  assertContext(move, command, operation)
  rules.assertClock(move)
  const budget = heldBudget(move, operation.attachments.budget_hold_id as string)
  const possession = presentedPossession(move, credentials.dpop_proof)
  const evaluation = evaluate(move, command, budget, { credentials, operation, possession })
  if (evaluation.verdict === 'deny') return denied(move, command, { evaluation, operation })
  possession.use(operation.operationId)
  throw new BrokerError(
    'executor_unpinned',
    `start of ${operation.operationId} refused: expected a pinned executor to deliver to, got none; the operation is unchanged`,
    { operationId: operation.operationId, outcome: 'not_started' },
  )
}

const NEXT_OF_START: Partial<Record<AdmissionState, string>> = {
  prepared: 'refresh the context and reserve with the nonce of its preflight',
  compensated_before_dispatch: 'nothing was started; changed or new work needs an id of its own',
  capture_pending: 'inspect and recover the original operation',
  dispatch_committed: 'inspect and recover the original operation',
  awaiting_caller_report: 'it was started: its executor reports the original operation',
}

/** The operation of a request id, if it is this agent's. */
function ownRequest(
  move: SqliteMove,
  { agentId }: CallCommand,
  { request_id, request_namespace_digest }: ToolCallTerms['binding'],
): AdmissionOperation | undefined {
  const known = move.operations.ofRequest(request_namespace_digest, request_id)
  if (known === undefined || known.callerPublicKey === agentId) return known
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
  const [issued, given] = [executionNonce, presented].map(nonce => encode(SignedExecutionNonce, nonce))
  if (Buffer.compare(issued as Uint8Array, given as Uint8Array) === 0) return
  throw nonceRefusal('binding', 'the nonce that the preflight of this operation issued')
}

function verifiedNonce(
  move: SqliteMove,
  { nonce, policy, request }: CallCommand & { readonly nonce: SignedExecutionNonce },
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
  { context }: CallCommand,
  { operationId }: AdmissionOperation,
): void {
  const earlier = move.contexts.last(operationId)
  if (earlier !== undefined) assertFollows(context, earlier)
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
    parameters: askedParameters(request),
    sentence: evaluation.reason,
    tool: { name: request.tool, server: request.server_id },
  })
  return { operation, receipt, refusal: evaluation }
}

/** What was asked, as receipts say it: by digest, since arguments are nobody's but the host's and the executor's. */
export function askedParameters({ id, params, server_id, tool }: CallCommand['request']) {
  return { arguments_sha256: parameterHash(params), request_id: id, server_id, tool }
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
  return { operation, receipt, refusal: callRefusal('admission', approvals.endedCode(operation), sentence) }
}
