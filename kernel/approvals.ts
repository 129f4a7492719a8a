// Owns: operations that wait for approvals, as approvers see them and as they answer.
// Must never: let a peer check approve anything: an approver's signature does, whoever hands it in. Nor tell a caller of
// another caller's operations.
// Source: threshold proposals and approval tokens of the kernel's wire.
import type { OperationBinding } from '../protocol/admission-operation.js'
import type { ApprovalCase, ApprovalSubmission, ApprovalView } from '../protocol/approval-rpc.js'
import { BrokerError } from '../protocol/errors.js'
import { brokeredIntent, type GovernedIntent, governedIntentHash } from '../protocol/governed-intent.js'
import type { Grant } from '../protocol/grant.js'
import type { ReserveRequest } from '../protocol/kernel-rpc.js'
import { APPROVAL_TIMEOUT_SECONDS } from '../protocol/limits.js'
import {
  approverName,
  eligibleSetDigest,
  type ProposalPins,
  signProposal,
  type ThresholdProposal,
} from '../protocol/threshold-proposal.js'
import { approvableIntentOf } from './calls/call-approvals.js'
import { readableOperation } from './operation/find-operation.js'
import type { Caller, KernelContext } from './kernel-context.js'
import { assertFound } from './operation/move-rules.js'
import {
  type AdmissionOperation,
  announcementOf,
  isToolCall,
  type StoredGrant,
} from './operation/operation.js'

/** Whose word counts here, and whose signature a proposal has to carry. */
export function proposalPins({ config, keys }: Pick<KernelContext, 'config' | 'keys'>): ProposalPins {
  return { approvers: config.approvers, policyAuthority: keys.kernel.publicKey }
}

/** @throws BrokerError `approval_unavailable` when fewer may approve than the grant asks for. */
export function assertApprovable({ config }: Pick<KernelContext, 'config'>, grant: Grant): void {
  const { requiredApprovals } = grant
  if (requiredApprovals <= config.approvers.length) return
  throw new BrokerError(
    'approval_unavailable',
    `grant ${grant.grantId} refused: expected at least ${requiredApprovals} approvers in the kernel's configuration, got ${config.approvers.length}`,
    { outcome: 'not_started' },
  )
}

/** What would be done, as people approve it. */
export function intentOf(grant: Grant, binding: OperationBinding, request: ReserveRequest): GovernedIntent {
  return brokeredIntent({
    action_parameter_hash: binding.request_binding.action_parameter_hash,
    body_bytes: request.bodyBytes,
    body_sha256: request.bodySha256,
    caller_public_key: request.callerPublicKey,
    credential: grant.credential,
    destination: grant.destination,
    grant_id: grant.grantId,
    operation_id: binding.operation_id,
    request_id: binding.request_id,
    response_limit_bytes: request.responseLimitBytes,
    tenant_id: binding.authenticated_tenant_id,
    timeout_ms: request.timeoutMs,
  })
}

/** Asks the approvers: until the grant ends, or for a quarter of an hour. */
export function proposeApproval(
  context: KernelContext,
  { digest, grant }: StoredGrant,
  { binding, request }: { readonly binding: OperationBinding; readonly request: ReserveRequest },
  nowUnixSeconds: number,
): ThresholdProposal {
  assertApprovable(context, grant)
  const terms = {
    authorizationCapabilityHash: digest,
    eligibleSetDigest: eligibleSetDigest(context.config.approvers),
    governedIntentHash: governedIntentHash(intentOf(grant, binding, request)),
    policyHash: binding.policy_hash,
    proposalCreatedAt: nowUnixSeconds,
    proposalDeadline: Math.min(nowUnixSeconds + APPROVAL_TIMEOUT_SECONDS, grant.expiresAtUnixSeconds),
    proposalId: `proposal-${binding.operation_id}`,
    requestId: binding.request_id,
    required: grant.requiredApprovals,
    subject: request.callerPublicKey,
  }
  return signProposal(terms, context.keys.kernel)
}

/** Why a request that was announced is not answered: it waits, or was not approved. */
export function unanswered(operation: AdmissionOperation): BrokerError {
  const { lastError, operationId, state } = operation
  if (state === 'approval_required') return approvalRequired(operation)
  const code = lastError === null ? 'approval_expired' : 'approval_denied'
  return new BrokerError(
    code,
    `operation ${operationId} refused: expected its approvals, got ${lastError ?? 'none in time'}; it was taken back and can never be started`,
    { operationId, outcome: 'not_started' },
  )
}

/** What a reserve is answered while people decide. Nothing was minted and nothing can be started. */
function approvalRequired({ attachments, operationId }: AdmissionOperation): BrokerError {
  const body = attachments.threshold_proposal?.body
  const until = new Date((body?.proposalDeadline ?? 0) * 1_000).toISOString()
  return new BrokerError(
    'approval_required',
    `operation ${operationId} waits for ${body?.required ?? 0} approvals until ${until}; approvers see it with chio approval show, and the same reserve goes on once they agreed`,
    { operationId, outcome: 'not_started' },
  )
}

/** Waiting operations, the first deadline first: a caller's own, or everybody's for a peer without a caller key. */
export async function listApprovals(
  context: KernelContext,
  { callerPublicKey }: Caller,
  limit: number,
): Promise<{ readonly approvals: readonly ApprovalView[] }> {
  const waiting = await context.store.waitingOperations(callerPublicKey)
  const byDeadline = [...waiting].sort((left, right) => deadlineOf(left) - deadlineOf(right))
  const approvals = byDeadline.slice(0, limit).map(operation => viewOf(context, operation))
  return { approvals: await Promise.all(approvals) }
}

function deadlineOf({ attachments }: AdmissionOperation): number {
  return attachments.threshold_proposal?.body.proposalDeadline ?? 0
}

/** What exactly an approver is asked, and who spoke. */
export async function showApproval(
  context: KernelContext,
  caller: Caller,
  operationId: string,
): Promise<ApprovalCase> {
  const operation = await readableOperation(context, caller, operationId)
  const proposal = operation.attachments.threshold_proposal
  if (proposal === undefined) {
    throw new BrokerError(
      'operation_state',
      `approval of ${operationId} refused: expected an operation that needs approvals, got one that needs none`,
      { operationId },
    )
  }
  const { approvers } = context.config
  const spoken = (await context.store.approvalsOf(operationId)).map(({ approver, decision }) => ({
    approverId: approverName(approvers, approver),
    decision,
  }))
  const intent = await shownIntent(context, operation)
  return { approvers, intent, proposal, spoken, view: await viewOf(context, operation) }
}

async function shownIntent(context: KernelContext, operation: AdmissionOperation): Promise<GovernedIntent> {
  const { binding, call } = operation
  if (isToolCall(call)) return approvableIntentOf(call)
  const { grant } = assertFound(await context.store.findGrant(binding.capability_id))
  return intentOf(grant, binding, announcementOf(operation).request)
}

/** Hands an approver's word in. @throws BrokerError with the code of what refuses it; nothing was changed then. */
export function submitApproval(
  context: KernelContext,
  { approval, operationId }: ApprovalSubmission,
): Promise<AdmissionOperation> {
  return context.store.submitApproval({ approval, operationId, pins: proposalPins(context) })
}

export async function viewOf(context: KernelContext, operation: AdmissionOperation): Promise<ApprovalView> {
  const { attachments, binding, operationId, state } = operation
  const body = attachments.threshold_proposal?.body
  const given = await context.store.approvalsOf(operationId)
  return {
    approved: given.filter(({ decision }) => decision === 'approved').length,
    deadlineUnixSeconds: deadlineOf(operation),
    grantId: binding.capability_id,
    invocationId: binding.request_id,
    operationId,
    required: body?.required ?? 0,
    state,
  }
}
