// Owns: approvals of a tool call: how many a call needs, the wait for them with its hold set aside, the nonce that an
// approved call is issued, and whether its approvals still count when it is reserved and started.
// Must never: issue a nonce before the last approval, or count a word that a host carries: approvers hand theirs in.
// Source: threshold approvals of the kernel's call surface; `require_approval_above` of a tool grant.
import { canonicalBytes } from '../../protocol/canonical.js'
import { isTokenSigned } from '../../protocol/capability-token.js'
import type { ErrorCode } from '../../protocol/error-codes.js'
import { BrokerError } from '../../protocol/errors.js'
import { type GovernedIntent, governedIntentHash, toolCallIntent } from '../../protocol/governed-intent.js'
import { APPROVAL_TIMEOUT_SECONDS } from '../../protocol/limits.js'
import { type ChosenGrant, coveringGrants, type ToolGrant } from '../../protocol/scope.js'
import { eligibleSetDigest, proposalHash, type ThresholdProposal } from '../../protocol/threshold-proposal.js'
import type { ToolCallRequest } from '../../protocol/tool-call.js'
import { assertApproved } from '../approval-moves.js'
import { callerAttemptOf } from '../delivery/dispatch-authorization.js'
import type { AdmissionOperation, AnnouncedToolCall, ToolCall } from '../operation/operation.js'
import { begin, note, preparedOf, type Step, walk } from '../operation/operation-walk.js'
import type { SqliteMove } from '../sqlite/move.js'
import { callRefusal, type CallRefusal, isRefusal, judged } from './call-refusal.js'
import type { CallPolicy, PreflightCommand } from './call-store.js'
import type { AnnouncedCallTerms, AskedTerms, ToolCallTerms } from './tool-call-terms.js'

/** What a grant may ask of people: kept by approvals, not by arguments. */
export const KEPT_BY_APPROVAL = ['require_approval_above'] as const

/**
 * How many approvals a call needs: as many as its tool asks for, and one where a grant that covers it asks. Of a token
 * that no trusted issuer signed nothing is read: its constraints could be made to cost any time, and it is denied anyway.
 */
export function requiredApprovals({ approvals, issuers }: CallPolicy, request: ToolCallRequest): number {
  const { capability_token: token, params: parameters, server_id: serverId, tool: toolName } = request
  const issuer = issuers.find(key => key === token.issuer)
  const isRead = issuer !== undefined && isTokenSigned(token, issuer)
  const call = { parameters, serverId, toolName }
  const covering = isRead ? coveringGrants(token.scope, call, KEPT_BY_APPROVAL) : []
  const byGrant = covering.some(({ grant }) => asksApproval(grant)) ? 1 : 0
  return Math.max(byGrant, approvals.requiredOf(serverId, toolName))
}

/** At its threshold already; a cost that nobody bounds may be any. */
function asksApproval({ constraints = [], max_cost_per_invocation: cost }: ToolGrant): boolean {
  return constraints.some(
    constraint =>
      constraint.type === 'require_approval_above' &&
      (cost === undefined || cost.units >= constraint.value.threshold_units),
  )
}

/** What would be done, as people approve it. */
export function callIntentOf({ approvable, ...asked }: AnnouncedCallTerms): GovernedIntent {
  const { binding } = asked
  return toolCallIntent({
    agent_public_key: asked.agentId,
    arguments_bytes: approvable.argumentsBytes,
    arguments_sha256: asked.parameterHash,
    capability_id: binding.capability_id,
    maximum_cost: approvable.maximumCost,
    operation_id: binding.operation_id,
    request_hash: binding.request_binding.immutable_request_hash,
    request_id: binding.request_id,
    server_id: asked.serverId,
    tenant_id: binding.authenticated_tenant_id,
    tool_name: asked.toolName,
  })
}

/** The intent of a call that needs approvals. @throws BrokerError `operation_state` for one that needs none. */
export function approvableIntentOf({ terms }: AnnouncedToolCall | ToolCall): GovernedIntent {
  const { approvable } = terms
  if (approvable !== undefined) return callIntentOf({ ...terms, approvable })
  const { operation_id: operationId } = terms.binding
  throw new BrokerError(
    'operation_state',
    `approval of ${operationId} refused: expected an operation that needs approvals, got one that needs none`,
    { operationId },
  )
}

/** @returns null where enough people may approve. */
export function unapprovable({ approvals }: CallPolicy, required: number): CallRefusal | null {
  const { approvers } = approvals.pins
  if (required <= approvers.length) return null
  const expected = `expected at least ${required} approvers in the kernel's configuration, got ${approvers.length}`
  return callRefusal('approval', 'approval_unavailable', `call refused: ${expected}`)
}

export interface Announced {
  readonly holdId: string
  readonly grant: ChosenGrant
}

/** Begins a call that was judged, with its hold, and asks the approvers, in one commit. */
export function announceCall(
  move: SqliteMove,
  command: PreflightCommand,
  { grant, holdId }: Announced,
): AdmissionOperation {
  const { context, request, sealed, terms: asked } = command
  const approvable = {
    argumentsBytes: canonicalBytes(request.params).length,
    maximumCost: grant.grant.max_cost_per_invocation ?? null,
  }
  const terms = { ...asked, approvable }
  const proposal = proposed(move, command, terms)
  const operation = preparedOf({ kind: 'announced_call', record: null, registration: null, terms }, move)
  begin(move, operation)
  move.operations.retain(operation.operationId, sealed)
  move.contexts.append(operation.operationId, context)
  const attach = {
    budget_hold_id: holdId,
    threshold_proposal: proposal,
    threshold_proposal_hash: proposalHash(proposal.body),
  }
  const steps: Step[] = [...attemptSteps(terms), { attach, to: 'approval_required' }]
  return walk(move, operation, steps, { cause: 'approvals asked for' })
}

/** An attempt is announced to a pinned executor alone. */
export function attemptSteps({ binding, executor, serverId }: AskedTerms): Step[] {
  if (executor === null) return []
  const broker_attempt = callerAttemptOf(binding.operation_id, { executor, serverId })
  return [{ attach: { broker_attempt }, to: 'broker_attempt_registered' }]
}

function proposed(
  { nowUnixSeconds }: SqliteMove,
  { policy, request }: PreflightCommand,
  terms: AnnouncedCallTerms,
): ThresholdProposal {
  const { pins, propose } = policy.approvals
  const { binding } = terms
  return propose({
    authorizationCapabilityHash: binding.authorization_capability_hash,
    eligibleSetDigest: eligibleSetDigest(pins.approvers),
    governedIntentHash: governedIntentHash(callIntentOf(terms)),
    policyHash: binding.policy_hash,
    proposalCreatedAt: nowUnixSeconds,
    proposalDeadline: Math.min(nowUnixSeconds + APPROVAL_TIMEOUT_SECONDS, terms.capabilityExpiresAt),
    proposalId: `proposal-${binding.operation_id}`,
    requestId: binding.request_id,
    required: requiredApprovals(policy, request),
    subject: terms.agentId,
  })
}

/** Issues the nonce of a call that was approved. It is reserved by nothing but the reserve. */
export function issueApproved(
  move: SqliteMove,
  operation: AdmissionOperation & { readonly call: AnnouncedToolCall },
  { context, mintNonce }: PreflightCommand,
): AdmissionOperation {
  const terms: ToolCallTerms = { ...operation.call.terms, executionNonce: mintNonce(move.nowUnixSeconds) }
  move.contexts.append(operation.operationId, context)
  return note(move, operation, { cause: 'nonce issued to the approved call', terms })
}

/** Whether the approvals of an operation count now; null where they do, or where it needs none. */
export function judgeCallApprovals(
  move: SqliteMove,
  operation: AdmissionOperation,
  { approvals }: CallPolicy,
): CallRefusal | null {
  if (operation.attachments.threshold_proposal === undefined) return null
  const found = judged('approval', () => assertApproved(move, operation, approvals.pins))
  return isRefusal(found) ? found : null
}

/** By which code a call is refused that was taken back: where people did not agree, that is what is said. */
export function endedCode({ attachments, lastError }: AdmissionOperation): ErrorCode {
  const isUnapproved =
    attachments.threshold_proposal !== undefined && attachments.approval_set_hash === undefined
  if (!isUnapproved) return 'operation_state'
  return lastError === null ? 'approval_expired' : 'approval_denied'
}

/** What a call is answered while people decide; null where it waits for none. */
export function pendingReason({ attachments, operationId, state }: AdmissionOperation): string | null {
  const body = attachments.threshold_proposal?.body
  if (state !== 'approval_required' || body === undefined) return null
  const until = new Date(body.proposalDeadline * 1_000).toISOString()
  return `operation ${operationId} waits for ${body.required} approvals until ${until}; approvers see it with chio approval show, and the same preflight goes on once they agreed`
}
