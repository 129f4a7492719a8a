// Owns what sidecar and client say to each other over HTTP: paths, bodies, replies, the fixed refusals. A body comes in any
// spelling of JSON and is read strictly; the signed documents in it keep their own rules.
// Must never: let a refusal say more than its fixed text, or a reply carry the permission to execute but in the one
// signed authorization of a start.
// Source: `chio.caller-delivery.v1` of the sidecar; bearer tokens of RFC 6750 section 2.1.
import { GovernedApprovalToken, SoleApprovalToken } from './approval-token.js'
import { CallerAuthorization } from './caller-authorization.js'
import { CallerReport } from './caller-report.js'
import { canonicalBytes } from './canonical.js'
import { array, type Codec, decode, type Infer, json, literal, object, tagged } from './codec.js'
import { SignedExecutionNonce } from './execution-nonce.js'
import { InvocationContext } from './invocation-context.js'
import { parseStrictJson } from './json.js'
import { KernelReceipt } from './kernel-receipt.js'
import { MAXIMUM_APPROVALS, MAXIMUM_PARAMETERS_BYTES, MAXIMUM_TOOL_OUTPUT_BYTES } from './limits.js'
import { ThresholdProposal } from './threshold-proposal.js'
import { ToolCallRequest } from './tool-call.js'

export const CALLER_PROTOCOL = 'chio.caller-delivery.v1'

export const CALLER_PATHS = {
  evaluate: '/v1/evaluate',
  report: '/v1/caller/report',
  start: '/v1/caller/start',
} as const

/** Longest bearer token of the control gate, in characters; each is one byte. */
export const MAXIMUM_CONTROL_TOKEN_BYTES = 512
/** `b64token` of RFC 6750. */
export const CONTROL_TOKEN_FORM = /^(?=.{1,512}$)[A-Za-z0-9\-._~+/]+=*$/

const protocol = literal(CALLER_PROTOCOL)
const args = () => json({ maxBytes: MAXIMUM_PARAMETERS_BYTES })
const notAuthorized = literal(false)

/** The agent's request; the context where a session has one. */
export const EvaluateBody = object({ request: ToolCallRequest }, { optional: { context: InvocationContext } })
export type EvaluateBody = Infer<typeof EvaluateBody>

/** What whoever starts presents beyond the nonce; each is judged or refused, none is ignored. */
export const CallerCredentials = object(
  {},
  {
    optional: {
      approval_token: SoleApprovalToken,
      approval_tokens: array(GovernedApprovalToken, { min: 1, max: MAXIMUM_APPROVALS }),
      declassification_grant: args(),
      dpop_proof: args(),
      threshold_approval_proposal: ThresholdProposal,
    },
  },
)
export type CallerCredentials = Infer<typeof CallerCredentials>

export const StartBody = object(
  { arguments: args(), execution_nonce: SignedExecutionNonce, protocol },
  { optional: { credentials: CallerCredentials } },
)
export type StartBody = Infer<typeof StartBody>

export const ReportBody = object({ authorization: CallerAuthorization, protocol, report: CallerReport })
export type ReportBody = Infer<typeof ReportBody>

/** 200 `reserved`: nothing is authorized, a start is required. 403 `deny`. */
export const EvaluateReply = tagged('status', {
  deny: object({ execution_authorized: notAuthorized, receipt: KernelReceipt }),
  reserved: object({
    execution_authorized: notAuthorized,
    execution_nonce: SignedExecutionNonce,
    receipt: KernelReceipt,
    start_required: literal(true),
  }),
})
export type EvaluateReply = Infer<typeof EvaluateReply>

/** 200 `dispatch_committed` with the one document that lets the pinned executor begin. 403 `deny`. */
export const StartReply = tagged('status', {
  deny: object({ protocol, receipt: KernelReceipt }),
  dispatch_committed: object({ authorization: CallerAuthorization, protocol }),
})
export type StartReply = Infer<typeof StartReply>

const finalized = object({
  execution_authorized: notAuthorized,
  /** The guarded value; null where finalization withheld it. */
  output: json({ maxBytes: MAXIMUM_TOOL_OUTPUT_BYTES }),
  protocol,
  receipt: KernelReceipt,
})
/** 200 in both cases: the report was reconciled, or finalization denied its result. */
export const ReportReply = tagged('status', { deny: finalized, reconciled: finalized })
export type ReportReply = Infer<typeof ReportReply>

/** Status and body of every refusal of a caller route; the body never depends on the cause. */
export const CALLER_REFUSALS = {
  forbidden: fixed(
    403,
    'chio_control_forbidden',
    'sidecar control endpoints require a configured control token and valid bearer credentials',
  ),
  malformed: fixed(400, 'chio_bad_request', 'invalid caller delivery request'),
  rejected: fixed(
    409,
    'chio_caller_delivery_rejected',
    'original committed caller delivery could not be authenticated or finalized',
  ),
  tooLarge: fixed(400, 'chio_bad_request', 'caller delivery request exceeds its bound'),
  unsupported: fixed(400, 'chio_bad_request', 'unsupported caller delivery protocol'),
} as const

export interface FixedRefusal {
  readonly status: number
  readonly body: { readonly error: string; readonly message: string }
}

function fixed(status: number, error: string, message: string): FixedRefusal {
  return { status, body: { error, message } }
}

/**
 * Reads one body or reply, in any spelling of JSON.
 * @throws BrokerError `invalid_request` naming the member, never its value.
 */
export function readHttpJson<T>(codec: Codec<T>, bytes: Uint8Array, what: string): T {
  return decode(codec, canonicalBytes(parseStrictJson(bytes, what)), what)
}
