// Owns one capability token with everything a token can say, one that was delegated from it, and the documents of an
// approval, made from fixed seeds and times. They are frozen with the other own documents.
// Must never hold a real secret.
import { signFamilyBudget } from '../../protocol/aggregate-budget.js'
import {
  ApprovalCase,
  ApprovalList,
  ApprovalSubmission,
  type ApprovalView,
} from '../../protocol/approval-rpc.js'
import { GovernedApprovalToken, signApproval } from '../../protocol/approval-token.js'
import { CapabilityToken, capabilityTokenHash } from '../../protocol/capability-token.js'
import type { Codec } from '../../protocol/codec.js'
import type { Constraint } from '../../protocol/constraint.js'
import {
  brokeredIntent,
  GovernedIntent,
  governedIntentHash,
  toolCallIntent,
} from '../../protocol/governed-intent.js'
import { PossessionProof, signPossession } from '../../protocol/possession-proof.js'
import {
  type EligibleApprover,
  eligibleSetDigest,
  proposalHash,
  signProposal,
  ThresholdProposal,
} from '../../protocol/threshold-proposal.js'
import { type Scope, scopeHash } from '../../protocol/scope.js'
import type { KernelReceipt } from '../../protocol/kernel-receipt.js'
import { ToolCallRequest } from '../../protocol/tool-call.js'
import { ToolCallResponse, type ToolCallResult } from '../../protocol/tool-call-response.js'
import { receiptsOf } from './kernel-receipts.js'
import {
  child,
  delegated,
  issuer,
  linkFrom,
  root,
  token,
  tokenMembers,
  toolGrant,
} from './capability-tokens.js'
import { credential, NOW, OPERATION_ID, OWN_KEYS, request, TENANT } from './own-request.js'

const CONSTRAINTS: readonly Constraint[] = [
  { type: 'audience_allowlist', value: ['team'] },
  { type: 'content_review_tier', value: 'basic' },
  { type: 'custom', value: ['region', 'eu'] },
  { type: 'domain_exact', value: 'api.example.com' },
  { type: 'governed_intent_required' },
  { type: 'max_args_size', value: 4_096 },
  { type: 'model_constraint', value: { allowed_model_ids: [], min_safety_tier: null } },
  { type: 'require_dual_approval', value: true },
]
const READ = { server_id: 'files', tool_name: 'read' }
const CENTS = { currency: 'EUR', units: 500 }

const scope: Scope = {
  grants: [
    toolGrant({
      constraints: CONSTRAINTS,
      dpop_required: true,
      max_cost_per_invocation: CENTS,
      max_invocations: 5,
      max_total_cost: CENTS,
      operations: ['delegate', 'invoke'],
    }),
  ],
  prompt_grants: [{ operations: ['get'], prompt_name: 'review-*' }],
  resource_grants: [{ operations: ['read', 'subscribe'], uri_pattern: 'file:///workspace/*' }],
}
const members = tokenMembers({ scope })
const whole = token({ ...members, aggregate_invocation_budget: signFamilyBudget(members, 7, issuer) })
const narrow: Scope = { grants: [toolGrant({ ...scope.grants?.[0], max_invocations: 2 })] }
const parent = token({ scope })
const narrowed = delegated(parent, {
  attenuation_proof: {
    childScopeHash: scopeHash(narrow),
    normalizedSubsetProof: { normalizedChildScope: '{}', normalizedParentScope: '{}' },
    parentScopeHash: scopeHash(scope),
  },
  budget_share_bps: 2_500,
  delegation_chain: [
    linkFrom(parent, { attenuations: [{ type: 'reduce_budget', ...READ, max_invocations: 2 }] }),
  ],
  scope: narrow,
  scope_attenuations: [
    { type: 'reduce_budget', ...READ, max_invocations: 2 },
    { type: 'shorten_expiry', new_expires_at: 2_000 },
  ],
})

const approvers: readonly EligibleApprover[] = [
  { approverId: 'lead', publicKey: child.publicKey },
  { approverId: 'security', publicKey: root.publicKey },
]
const intent = brokeredIntent({
  action_parameter_hash: 'a'.repeat(64),
  body_bytes: request.body.length,
  body_sha256: 'b'.repeat(64),
  caller_public_key: OWN_KEYS.caller.publicKey,
  credential,
  destination: request.destination,
  grant_id: 'grant-own',
  operation_id: OPERATION_ID,
  request_id: 'invocation-own',
  response_limit_bytes: 65_536,
  tenant_id: TENANT,
  timeout_ms: 30_000,
})
const callIntent = toolCallIntent({
  agent_public_key: root.publicKey,
  arguments_bytes: 23,
  arguments_sha256: 'a'.repeat(64),
  capability_id: whole.id,
  maximum_cost: { currency: 'EUR', units: 7 },
  operation_id: OPERATION_ID,
  request_hash: 'b'.repeat(64),
  request_id: 'request-own',
  server_id: 'files',
  tenant_id: TENANT,
  tool_name: 'read',
})
const possession = signPossession(
  {
    action_hash: 'a'.repeat(64),
    agent_key: root.publicKey,
    capability_id: whole.id,
    issued_at: NOW,
    nonce: 'nonce-own',
    tool_name: 'read',
    tool_server: 'files',
  },
  root,
)
const proposal = signProposal(
  {
    authorizationCapabilityHash: capabilityTokenHash(whole),
    eligibleSetDigest: eligibleSetDigest(approvers),
    governedIntentHash: governedIntentHash(intent),
    policyHash: 'c'.repeat(64),
    proposalCreatedAt: NOW,
    proposalDeadline: NOW + 900,
    proposalId: 'proposal-own',
    requestId: 'invocation-own',
    required: 2,
    subject: OWN_KEYS.caller.publicKey,
  },
  OWN_KEYS.authority,
)
const approval = signApproval(
  {
    approver: root.publicKey,
    decision: 'approved',
    expires_at: NOW + 900,
    governed_intent_hash: proposal.body.governedIntentHash,
    id: 'approval-own',
    issued_at: NOW + 1,
    request_id: proposal.body.requestId,
    subject: proposal.body.subject,
    threshold_proposal_hash: proposalHash(proposal.body),
  },
  root,
)
/** One agent's call. */
export const call: ToolCallRequest = {
  approval_tokens: [approval],
  capability_token: whole,
  governed_intent: { id: 'intent' },
  id: 'request-own',
  params: { path: '/workspace/a' },
  server_id: 'files',
  supplemental_authorization: { artifact: Uint8Array.of(1, 2), reference: 'broker:attempt' },
  threshold_approval_proposal: proposal,
  tool: 'read',
  type: 'tool_call_request',
}

const view: ApprovalView = {
  approved: 1,
  deadlineUnixSeconds: NOW + 900,
  grantId: 'grant-own',
  invocationId: 'invocation-own',
  operationId: OPERATION_ID,
  required: 2,
  state: 'approval_required',
}
const waiting: ApprovalCase = {
  approvers,
  intent,
  proposal,
  spoken: [{ approverId: 'security', decision: 'approved' }],
  view,
}

const [receipt] = receiptsOf(1) as [KernelReceipt]
const answered = (result: ToolCallResult): ToolCallResponse => ({
  id: 'request-own',
  receipt,
  result,
  type: 'tool_call_response',
})
const RESULTS: Readonly<Record<string, ToolCallResult>> = {
  allowed: { status: 'ok', value: { text: 'read' } },
  denied: { error: { code: 'policy_denied', detail: { guard: 'size', reason: 'too large' } }, status: 'err' },
  pending: { proposal, status: 'pending_approval' },
}

/** Tokens and approvals, to be frozen. */
export function tokenDocuments(): readonly {
  readonly name: string
  readonly codec: Codec<unknown>
  readonly value: unknown
}[] {
  return [
    { name: 'capability-token', codec: CapabilityToken, value: whole },
    { name: 'delegated-token', codec: CapabilityToken, value: narrowed },
    { name: 'governed-intent', codec: GovernedIntent, value: intent },
    { name: 'tool-call-intent', codec: GovernedIntent, value: callIntent },
    { name: 'possession-proof', codec: PossessionProof, value: possession },
    { name: 'threshold-proposal', codec: ThresholdProposal, value: proposal },
    { name: 'approval-token', codec: GovernedApprovalToken, value: approval },
    { name: 'approval-case', codec: ApprovalCase, value: waiting },
    { name: 'approval-list', codec: ApprovalList, value: { approvals: [view] } },
    {
      name: 'approval-submission',
      codec: ApprovalSubmission,
      value: { approval, operationId: OPERATION_ID },
    },
    { name: 'tool-call-request', codec: ToolCallRequest, value: call },
    ...Object.entries(RESULTS).map(([name, result]) => ({
      name: `tool-call-response-${name}`,
      codec: ToolCallResponse,
      value: answered(result),
    })),
  ]
}
