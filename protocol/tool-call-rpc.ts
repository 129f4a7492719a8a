// The tool calls of the kernel's socket: preflight, reserve with its nonce, start with credentials, report. An answer is
// a value, refused or not; none of them lets anybody execute, only the signed authorization of a start does.
// Source: the caller API of the kernel: preflight -> refreshed context -> reserve -> start.
import { GovernedApprovalToken, SoleApprovalToken } from './approval-token.js'
import { CallerAuthorization } from './caller-authorization.js'
import { CallerReport } from './caller-report.js'
import { array, boolean, digest, type Infer, json, nullable, object, oneOf, text } from './codec.js'
import { SignedExecutionNonce } from './execution-nonce.js'
import { InvocationContext } from './invocation-context.js'
import { KernelReceipt } from './kernel-receipt.js'
import { MAXIMUM_APPROVALS, MAXIMUM_PARAMETERS_BYTES, MAXIMUM_RECEIPT_TEXT_BYTES } from './limits.js'
import { startWarnings } from './operation-rpc.js'
import { ThresholdProposal } from './threshold-proposal.js'
import { ToolOutput } from './tool-outcome.js'
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
  /** Null: as it was when the call was reserved. */
  context: nullable(InvocationContext),
  credentials: CallCredentials,
  executionNonce: SignedExecutionNonce,
})
export type StartCallRequest = Infer<typeof StartCallRequest>

/** What an executor reports, under the authorization that it answers. */
export const ReportCallRequest = object({ authorization: CallerAuthorization, report: CallerReport })
export type ReportCallRequest = Infer<typeof ReportCallRequest>

const word = text({ minBytes: 1, maxBytes: 64 })

/** What the kernel decided, and where the operation stands now. */
const answer = {
  /** The check that refused and its code; null where none did. */
  check: nullable(word),
  code: nullable(word),
  /** True where an authorization is in the answer that its executor may claim now; an answer alone permits nothing. */
  executionAuthorized: boolean(),
  executionNonce: nullable(SignedExecutionNonce),
  operationId: nullable(digest()),
  reason: nullable(text({ minBytes: 1, maxBytes: MAXIMUM_RECEIPT_TEXT_BYTES })),
  receipt: nullable(KernelReceipt),
  state: nullable(word),
  /** Pending: people were asked; the same preflight goes on once they agreed. */
  verdict: oneOf('allow', 'deny', 'pending_approval'),
}

export const CallAnswer = object(answer)
export type CallAnswer = Infer<typeof CallAnswer>

/** A start with what its executor may act on: the same bytes every time; null where nothing was committed. */
export const StartAnswer = object(
  { ...answer, authorization: nullable(CallerAuthorization) },
  { optional: { warnings: startWarnings } },
)
export type StartAnswer = Infer<typeof StartAnswer>

/** A report with what it delivered; null where guards withhold it, or nothing was taken. */
export const ReportAnswer = object({ ...answer, output: nullable(ToolOutput) })
export type ReportAnswer = Infer<typeof ReportAnswer>
