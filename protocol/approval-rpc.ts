// Owns what the kernel's host socket says of approvals: which operations wait, what exactly each would do, who spoke;
// and how an approver's word is handed in. The word's own signature is its authority, whoever hands it in.
// Must never: show a body, a header's value, a proof or a secret.
// Source: the kernel's host socket (`chio.kernel-rpc.v1`).
import { GovernedApprovalToken } from './approval-token.js'
import { array, digest, type Infer, identifier, object, oneOf, text } from './codec.js'
import { GovernedIntent } from './governed-intent.js'
import { MAXIMUM_APPROVALS } from './limits.js'
import { EligibleApprover, ThresholdProposal } from './threshold-proposal.js'
import { Count, UnixSeconds } from './unix-time.js'

/** One operation that waits for approvals or had all of them, in a line. */
export const ApprovalView = object({
  approved: Count,
  deadlineUnixSeconds: UnixSeconds,
  /** The grant of a brokered request, the capability token of a tool call. */
  grantId: identifier(),
  invocationId: identifier(),
  operationId: digest(),
  required: Count,
  state: text({ minBytes: 1, maxBytes: 64 }),
})
export type ApprovalView = Infer<typeof ApprovalView>

/** What an approver signs for: the intent, the proposal that names its digest, and whose word counts. */
export const ApprovalCase = object({
  approvers: array(EligibleApprover, { max: MAXIMUM_APPROVALS }),
  intent: GovernedIntent,
  proposal: ThresholdProposal,
  spoken: array(object({ approverId: identifier(256), decision: oneOf('approved', 'denied') }), {
    max: MAXIMUM_APPROVALS,
  }),
  view: ApprovalView,
})
export type ApprovalCase = Infer<typeof ApprovalCase>

export const ApprovalSubmission = object({ approval: GovernedApprovalToken, operationId: digest() })
export type ApprovalSubmission = Infer<typeof ApprovalSubmission>

export const ApprovalList = object({ approvals: array(ApprovalView, { max: 1_000 }) })
