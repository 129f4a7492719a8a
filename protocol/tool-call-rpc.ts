// The tool calls of the kernel's socket: preflight, reserve with its nonce, start with credentials, reconcile. An answer is
// a value, refused or not; none of them lets anybody execute, only the start's signed authorization will.
// Source: the caller API of the kernel: preflight -> refreshed context -> reserve -> start.
import { GovernedApprovalToken, SoleApprovalToken } from './approval-token.js'
import { array, boolean, digest, type Infer, json, nullable, object, oneOf, text } from './codec.js'
import { SignedExecutionNonce } from './execution-nonce.js'
import { InvocationContext } from './invocation-context.js'
import { KernelReceipt } from './kernel-receipt.js'
import { MAXIMUM_APPROVALS, MAXIMUM_PARAMETERS_BYTES, MAXIMUM_RECEIPT_TEXT_BYTES } from './limits.js'
import { ThresholdProposal } from './threshold-proposal.js'
import { ToolCallRequest } from './tool-call.js'

export const PreflightCallRequest = object({ context: InvocationContext, request: ToolCallRequest })
export type PreflightCallRequest = Infer<typeof PreflightCallRequest>

/** The same request again; the nonce of its preflight is all that is added, and the context was read anew. */
export const ReserveCallRequest = object({
  context: InvocationContext,
  executionNonce: nullable(SignedExecutionNonce),
  request: ToolCallRequest,
})
export type ReserveCallRequest = Infer<typeof ReserveCallRequest>

/** What whoever starts presents beyond the nonce; each is judged or refused, none is ignored. */
export const CallCredentials = object(
  {},
  {
    optional: {
      approval_token: SoleApprovalToken,
      approval_tokens: array(GovernedApprovalToken, { min: 1, max: MAXIMUM_APPROVALS }),
      declassification_grant: json({ maxBytes: MAXIMUM_PARAMETERS_BYTES }),
      dpop_proof: json({ maxBytes: MAXIMUM_PARAMETERS_BYTES }),
      threshold_approval_proposal: ThresholdProposal,
    },
  },
)
export type CallCredentials = Infer<typeof CallCredentials>

export const StartCallRequest = object({
  arguments: json({ maxBytes: MAXIMUM_PARAMETERS_BYTES }),
  context: InvocationContext,
  credentials: CallCredentials,
  executionNonce: SignedExecutionNonce,
})
export type StartCallRequest = Infer<typeof StartCallRequest>

const word = text({ minBytes: 1, maxBytes: 64 })

/** What the kernel decided, and where the operation stands now. */
export const CallAnswer = object({
  /** The check that refused and its code; null where none did. */
  check: nullable(word),
  code: nullable(word),
  /** True in no answer of a preflight or a reserve: who holds one still has to start. */
  executionAuthorized: boolean(),
  executionNonce: nullable(SignedExecutionNonce),
  operationId: nullable(digest()),
  reason: nullable(text({ minBytes: 1, maxBytes: MAXIMUM_RECEIPT_TEXT_BYTES })),
  receipt: nullable(KernelReceipt),
  state: nullable(word),
  /** Pending: people were asked; the same preflight goes on once they agreed. */
  verdict: oneOf('allow', 'deny', 'pending_approval'),
})
export type CallAnswer = Infer<typeof CallAnswer>
