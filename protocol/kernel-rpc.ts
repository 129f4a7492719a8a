// The kernel's socket for hosts and administrators: canonical JSON in length-prefixed frames, several
// exchanges a connection, one at a time. The peer's uid names a caller key; operations that grant or
// revoke carry an administrator's authorization over the canonical bytes of their `request` member.
import {
  array,
  boolean,
  digest,
  type Infer,
  identifier,
  integer,
  literal,
  nullable,
  object,
  oneOf,
  publicKeyHex,
  tagged,
  text,
} from './codec.js'
import { AdmissionOperationDocument } from './admission-document.js'
import { AdminAuthorization } from './administration.js'
import { ApprovalCase, ApprovalList, ApprovalSubmission, ApprovalView } from './approval-rpc.js'
import { SignedBrokerCapability } from './capability.js'
import { BrokerExecuteRequest } from './execute-request.js'
import { SignedExecutionNonce } from './execution-nonce.js'
import { FailedPreparation } from './failed-preparation.js'
import { BrokerExecuteFailure } from './failure.js'
import { Grant } from './grant.js'
import { CapturedHold } from './hold.js'
import { KernelReceipt } from './kernel-receipt.js'
import {
  MAXIMUM_BODY_BYTES,
  MAXIMUM_NONCE_BYTES,
  MAXIMUM_RESPONSE_BYTES,
  MAXIMUM_TIMEOUT_MS,
  MINIMUM_NONCE_BYTES,
} from './limits.js'
import { SignedExecutionReceipt } from './receipt.js'
import {
  CheckpointPage,
  LogPage,
  LogPageRequest,
  ReceiptCase,
  ReceiptName,
  SealedLog,
} from './receipt-rpc.js'
import {
  AcceptClock,
  ClockView,
  MAXIMUM_SHARING,
  OperationExplanation,
  OperationName,
  Reconcile,
  startWarnings,
} from './operation-rpc.js'
import { AttemptRegistration, Quotas, SignedRegisterAttemptAuthorization } from './registration.js'
import {
  CallAnswer,
  PreflightCallRequest,
  ReportAnswer,
  ReportCallRequest,
  ReserveCallRequest,
  StartAnswer,
  StartCallRequest,
} from './tool-call-rpc.js'
import { Count, UnixMs, UnixSeconds } from './unix-time.js'

export const KERNEL_RPC_SCHEMA = 'chio.kernel-rpc.v1'
export const KERNEL_RPC_RESPONSE_SCHEMA = 'chio.kernel-rpc-response.v1'

const announced = {
  bodyBytes: integer({ min: 0, max: MAXIMUM_BODY_BYTES }),
  bodySha256: digest(),
  callerPublicKey: publicKeyHex(),
  grantId: identifier(128),
  invocationId: identifier(),
  proofNonce: text({ minBytes: MINIMUM_NONCE_BYTES, maxBytes: MAXIMUM_NONCE_BYTES }),
  requestDigest: digest(),
  responseLimitBytes: integer({ min: 1, max: MAXIMUM_RESPONSE_BYTES }),
  timeoutMs: integer({ min: 1, max: MAXIMUM_TIMEOUT_MS }),
}
/** What a request commits to for good. When its proof is signed may change while people decide. */
export const CommittedRequest = object(announced)
/** The proof that the host will sign, and the digests of the request, fixed before anything is minted. */
export const ReserveRequest = object({ ...announced, proofIssuedAtUnixSeconds: UnixSeconds })
export type ReserveRequest = Infer<typeof ReserveRequest>

const reserved = {
  authorityMetadataDigest: digest(),
  capability: SignedBrokerCapability,
  executionNonce: SignedExecutionNonce,
  operationId: digest(),
  quotas: Quotas,
  revocationAuthorityDomain: identifier(),
}
export const ReserveResult = object(reserved)
export type ReserveResult = Infer<typeof ReserveResult>
/** With the signed receipt of the decision; of the end, once there is one. */
const ReserveAnswer = object({ ...reserved, receipt: KernelReceipt })
export type ReserveAnswer = Infer<typeof ReserveAnswer>

export const AuthorizeRegistrationRequest = object({ execute: BrokerExecuteRequest, operationId: digest() })
export const AuthorizeRegistrationResult = object({
  prepareAuthorization: SignedRegisterAttemptAuthorization,
  registerAuthorization: SignedRegisterAttemptAuthorization,
  registration: AttemptRegistration,
})
export type AuthorizeRegistrationResult = Infer<typeof AuthorizeRegistrationResult>

export const StartRequest = object({ executionNonce: SignedExecutionNonce, operationId: digest() })
export const StartResult = object(
  { captured: CapturedHold, operationId: digest(), startedAtUnixMs: UnixMs },
  { optional: { warnings: startWarnings } },
)
export type StartResult = Infer<typeof StartResult>

/** The broker's signed record, in one of its two forms. */
export const BrokerRecord = tagged('kind', {
  failure: object({ failure: BrokerExecuteFailure }),
  receipt: object({ receipt: SignedExecutionReceipt }),
})
export type BrokerRecord = Infer<typeof BrokerRecord>

export const FinalizeRequest = object({ operationId: digest(), record: BrokerRecord })
export const OperationReference = object({ operationId: digest() })
export const ReleaseResult = object({
  registration: AttemptRegistration,
  releaseAuthorization: SignedRegisterAttemptAuthorization,
})
export type ReleaseResult = Infer<typeof ReleaseResult>

/** What the kernel says of one operation; never a body, a secret or a proof. */
const viewed = {
  attemptId: nullable(identifier()),
  createdAtUnixMs: UnixMs,
  grantId: identifier(),
  invocationId: identifier(),
  lastError: nullable(text({ minBytes: 1, maxBytes: 4_096 })),
  operationId: digest(),
  requestDigest: digest(),
  settlement: text({ minBytes: 1, maxBytes: 256 }),
  settlesAtUnixMs: nullable(UnixMs),
  /** Unresolved operations with the same arguments; empty where nobody looked. */
  sharesArgumentsWith: array(digest(), { max: MAXIMUM_SHARING }),
  state: text({ minBytes: 1, maxBytes: 64 }),
  updatedAtUnixMs: UnixMs,
  version: Count,
}
export const OperationView = object(viewed)
export type OperationView = Infer<typeof OperationView>
/** The view, and the wire's own document of the operation. */
const InspectedOperation = object({ ...viewed, document: AdmissionOperationDocument })
export type InspectedOperation = Infer<typeof InspectedOperation>
/** The view, and the signed receipt of the end. */
const FinalizedOperation = object({ ...viewed, receipt: KernelReceipt })
export type FinalizedOperation = Infer<typeof FinalizedOperation>

export const GrantView = object({
  executions: Count,
  grant: Grant,
  held: Count,
  revoked: boolean(),
})
export type GrantView = Infer<typeof GrantView>

export const GrantReference = object({ grantId: identifier(128) })
/** A capability token, by the id under which it is revoked. */
export const CapabilityReference = object({ capabilityId: identifier() })
export type CapabilityReference = Infer<typeof CapabilityReference>
export const ListRequest = object({ limit: integer({ min: 1, max: 1_000 }) })

export const KernelOperation = tagged('kind', {
  approval_list: object({ request: ListRequest }),
  approval_show: object({ request: OperationReference }),
  approval_submit: object({ request: ApprovalSubmission }),
  accept_clock: object({ request: AcceptClock }),
  authorize_registration: object({ request: AuthorizeRegistrationRequest }),
  authorize_release: object({ request: OperationReference }),
  call_preflight: object({ request: PreflightCallRequest }),
  call_reconcile: object({ request: ReportCallRequest }),
  call_reserve: object({ request: ReserveCallRequest }),
  call_start: object({ request: StartCallRequest }),
  cancel: object({ request: OperationReference }),
  explain: object({ request: OperationName }),
  finalize: object({ request: FinalizeRequest }),
  inspect: object({ request: OperationReference }),
  issue_grant: object({ request: Grant }),
  list: object({ request: ListRequest }),
  list_grants: object({ request: ListRequest }),
  preparation_failed: object({ request: FailedPreparation }),
  read_checkpoints: object({ request: LogPageRequest }),
  read_log: object({ request: LogPageRequest }),
  reconcile: object({ request: Reconcile }),
  reserve: object({ request: ReserveRequest }),
  revoke_capability: object({ request: CapabilityReference }),
  revoke_grant: object({ request: GrantReference }),
  seal_log: object({ request: object({}) }),
  show_clock: object({ request: object({}) }),
  show_grant: object({ request: GrantReference }),
  show_receipt: object({ request: ReceiptName }),
  start: object({ request: StartRequest }),
  status: object({ request: object({}) }),
})
export type KernelOperation = Infer<typeof KernelOperation>
export type KernelOperationKind = KernelOperation['kind']

/** Operations that carry an administrator's authorization. */
export const ADMINISTRATIVE_OPERATIONS: ReadonlySet<KernelOperationKind> = new Set([
  'accept_clock',
  'issue_grant',
  'reconcile',
  'revoke_capability',
  'revoke_grant',
])

export const KernelRequest = object({
  authorization: nullable(AdminAuthorization),
  operation: KernelOperation,
  requestId: digest(),
  schema: literal(KERNEL_RPC_SCHEMA),
  tenantScope: identifier(),
})
export type KernelRequest = Infer<typeof KernelRequest>

export const KernelStatus = object({
  brokerReachable: boolean(),
  /** What stops admission; null while the wall clock is believed. */
  clockFault: nullable(text({ minBytes: 1, maxBytes: 512 })),
  operations: array(object({ count: Count, state: text({ minBytes: 1, maxBytes: 64 }) }), { max: 32 }),
  ownerEpoch: Count,
  waiting: Count,
})
export type KernelStatus = Infer<typeof KernelStatus>

export const KernelResult = tagged('kind', {
  approval_list: object({ response: ApprovalList }),
  approval_show: object({ response: ApprovalCase }),
  approval_submit: object({ response: ApprovalView }),
  accept_clock: object({ response: object({ commitIndex: Count }) }),
  authorize_registration: object({ response: AuthorizeRegistrationResult }),
  authorize_release: object({ response: ReleaseResult }),
  call_preflight: object({ response: CallAnswer }),
  call_reconcile: object({ response: ReportAnswer }),
  call_reserve: object({ response: CallAnswer }),
  call_start: object({ response: StartAnswer }),
  cancel: object({ response: OperationView }),
  explain: object({ response: object({ explanation: OperationExplanation, operation: OperationView }) }),
  finalize: object({ response: FinalizedOperation }),
  inspect: object({ response: InspectedOperation }),
  issue_grant: object({ response: object({ commitIndex: Count, grantId: identifier(128) }) }),
  list: object({ response: object({ operations: array(OperationView, { max: 1_000 }) }) }),
  list_grants: object({ response: object({ grants: array(GrantView, { max: 1_000 }) }) }),
  preparation_failed: object({ response: OperationView }),
  read_checkpoints: object({ response: CheckpointPage }),
  read_log: object({ response: LogPage }),
  reconcile: object({ response: object({ commitIndex: Count, operationId: digest() }) }),
  reserve: object({ response: ReserveAnswer }),
  revoke_capability: object({
    response: object({ capabilityId: identifier(), commitIndex: Count, newlyRevoked: boolean() }),
  }),
  revoke_grant: object({
    response: object({ commitIndex: Count, grantId: identifier(128), newlyRevoked: boolean() }),
  }),
  seal_log: object({ response: SealedLog }),
  show_clock: object({ response: ClockView }),
  show_grant: object({ response: GrantView }),
  show_receipt: object({ response: ReceiptCase }),
  start: object({ response: StartResult }),
  status: object({ response: KernelStatus }),
})
export type KernelResult = Infer<typeof KernelResult>

/** A refusal: the stable code, and a sentence for the host or administrator that asked. */
export const KernelRefusal = object({
  code: text({ minBytes: 1, maxBytes: 64 }),
  /** The operation that is meant, where one is: the caller may have to come back to it. */
  operationId: nullable(digest()),
  outcome: oneOf('completed', 'not_started', 'unknown'),
  /** Of a refusal that is a decision; null where the request or the machine is what is wrong. */
  receipt: nullable(KernelReceipt),
  sentence: text({ minBytes: 1, maxBytes: 2_048 }),
})
export type KernelRefusal = Infer<typeof KernelRefusal>

/** Exactly one of `refusal` and `result` is set. */
export const KernelResponse = object({
  refusal: nullable(KernelRefusal),
  requestId: digest(),
  result: nullable(KernelResult),
  schema: literal(KERNEL_RPC_RESPONSE_SCHEMA),
})
export type KernelResponse = Infer<typeof KernelResponse>
