// Owns: how one move of a tool call is judged inside its commit: whose operation it is, under which nonce and context, by
// all checks in their order; and what becomes of a denial.
// Must never: change an operation that it refuses, but for the reserve's own denial, which ends it.
// Source: the order of checks of the kernel's call surface; the operation-owned execution nonce.
import { isSameDocument } from '../../protocol/codec.js'
import { BrokerError } from '../../protocol/errors.js'
import {
  nonceRefusal,
  SignedExecutionNonce,
  verifyNonce,
  type VerifiedNonce,
} from '../../protocol/execution-nonce.js'
import { assertFollows, type InvocationContext } from '../../protocol/invocation-context.js'
import type { CallCredentials } from '../../protocol/tool-call-rpc.js'
import { assertSamePin } from '../delivery/caller-pin.js'
import { logRefusal } from '../log/receipt-log.js'
import { callSubject } from '../log/receipt-subject.js'
import * as rules from '../operation/move-rules.js'
import { type AdmissionOperation, isToolCall } from '../operation/operation.js'
import { stepsTo, walk } from '../operation/operation-walk.js'
import { endParticipants } from '../operation/participants.js'
import type { SqliteMove } from '../sqlite/move.js'
import { endedCode, judgeCallApprovals, KEPT_BY_APPROVAL } from './call-approvals.js'
import type { CallBudget } from './call-budget.js'
import { callRefusal, DURABLE_ADMISSION_FAILED } from './call-refusal.js'
import type { CallCommand, CallDecision } from './call-store.js'
import { judgeCarried, judgePresented } from './credentials.js'
import { type CallAuthority, type CallEvaluation, evaluateCall } from './evaluate-call.js'
import { type Possession, UNASKED } from './possession.js'
import { nonceBindingOf, type ToolCallTerms } from './tool-call-terms.js'

/** The operation of a request id, if it is this agent's, under the pin that it was admitted for. */
export function ownRequest(
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

export function evaluate(
  move: SqliteMove,
  { agentId, context, policy, request }: CallCommand,
  budget: CallBudget,
  { credentials = {}, operation, possession = UNASKED }: Known = {},
): CallEvaluation {
  const judgeOwn = () =>
    operation === undefined
      ? null
      : (judgePresented(move, operation, credentials) ?? judgeCallApprovals(move, operation, policy))
  const tool = policy.toolOf(request.server_id, request.tool)
  const authority: CallAuthority = {
    giveBudgetBack: () => budget.giveBack(),
    guards: [...(tool?.guards ?? []), ...policy.guards],
    isRevoked: id => move.grants.revocation([id]).revoked,
    isTarget: () => tool !== undefined,
    judgeApprovals: () => judgeCarried(request) ?? judgeOwn(),
    judgePossession: (call, token, covering) => possession.judge(call, token, covering),
    keptOtherwise: KEPT_BY_APPROVAL,
    pins: { issuers: policy.issuers },
    remember: token => move.capabilities.remember(token),
    snapshotOf: id => move.capabilities.find(id),
    takeBudget: (token, covering) => budget.take(token, covering),
  }
  return evaluateCall({ agentId, context, nowUnixSeconds: move.nowUnixSeconds, request }, authority)
}

/** The very nonce of the preflight. @throws BrokerError `execution_nonce_binding`. */
export function assertIssued({ executionNonce }: ToolCallTerms, presented: SignedExecutionNonce): void {
  if (isSameDocument(SignedExecutionNonce, executionNonce, presented)) return
  throw nonceRefusal('binding', 'the nonce that the preflight of this operation issued')
}

export function verifiedNonce(
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

export function assertContext(
  move: SqliteMove,
  { context }: Pick<CallCommand, 'context'>,
  { operationId }: AdmissionOperation,
): void {
  const earlier = move.contexts.last(operationId)
  if (earlier !== undefined) assertFollows(context, earlier)
}

/** The context under which an operation was judged last. */
export function contextOf(move: SqliteMove, { operationId }: AdmissionOperation): InvocationContext {
  return rules.assertFound(move.contexts.last(operationId))
}

interface Judged {
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
