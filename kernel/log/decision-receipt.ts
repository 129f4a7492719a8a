// Owns: what the kernel's receipts say: of an operation as it stands after a decision, and of a refusal that made none.
// Must never: hold content, a proof, a capability or a secret: ids, digests, bounds and sentences alone.
// Source: the members and metadata of the ChioReceipt; `chio.admission-receipt.v1`.
import { ADMISSION_RECEIPT_SCHEMA, type AdmissionReceiptMetadata } from '../../protocol/admission-metadata.js'
import { type AdmissionState, STATE_FACTS } from '../../protocol/admission-states.js'
import { failureReference } from '../../protocol/failure.js'
import type { JsonValue } from '../../protocol/json.js'
import {
  type GuardEvidence,
  KERNEL_GUARD,
  type KernelReceipt,
  type KernelReceiptBody,
  MEDIATED,
  NO_CONTENT_HASH,
  type ReceiptDecision,
  signKernelReceipt,
  valueHash,
} from '../../protocol/kernel-receipt.js'
import type { SigningKey } from '../../protocol/keys.js'
import { receiptReference } from '../../protocol/receipt.js'
import type { AdmissionOperation } from '../operation/operation.js'
import { commitRecord } from '../operation/operation-document.js'
import { POLICY_HASH } from '../policy.js'
import { BROKERED_TOOL, receiptSubject, type ReceiptTool } from './receipt-subject.js'
import type { Owner } from '../sqlite/owner-table.js'
import { uuidV7 } from '../uuid-v7.js'

/** Under whose key and for whom receipts are written. */
export interface ReceiptWriter {
  readonly key: SigningKey
  readonly issuerKey: string
  readonly tenantScope: string
  /** How durable this kernel's admission is; every receipt says so. */
  readonly durableMode: string
}

/** How an open store writes its log. */
export interface LogSettings extends ReceiptWriter {
  readonly checkpointReceipts: number
}

/** When, and by which owner of which store. */
export interface ReceiptMoment {
  readonly nowUnixMs: number
  readonly owner: Owner
  readonly storeId: string
}

/** Why an operation came to stand where it does, and what guards saw. */
export interface DecisionReason {
  readonly cause: string
  /** What an executor delivered: the content by digest, null where it is withheld, and who attests it. */
  readonly delivery?: {
    readonly contentHash: string | null
    readonly metadata: { readonly [member: string]: JsonValue }
  }
  readonly deniedBy?: string | undefined
  readonly evidence?: readonly GuardEvidence[] | undefined
}

/** A request that was refused, with the operation it named if there was one. */
export interface Refusal {
  /** Null for a peer that has no caller key, and may reserve nothing. */
  readonly callerPublicKey: string | null
  readonly capabilityId: string
  readonly parameters: JsonValue
  readonly code: string
  readonly sentence: string
  readonly operation: AdmissionOperation | null
  /** The kernel itself, unless said. */
  readonly guard?: string
  readonly evidence?: readonly GuardEvidence[]
  /** What the broker does, unless said. */
  readonly tool?: ReceiptTool
}

type Decide = (operation: AdmissionOperation, reason: DecisionReason) => ReceiptDecision

const allow: Decide = () => ({ verdict: 'allow' })
const reasonOf = ({ lastError }: AdmissionOperation, { cause }: DecisionReason): string => lastError ?? cause

/** The states that are decisions. All others are passed through, or wait for somebody. */
const DECISIONS: Partial<Record<AdmissionState, Decide>> = {
  ready_to_dispatch: allow,
  dispatch_committed: allow,
  completed: allow,
  compensated_before_dispatch: (operation, reason) =>
    reason.deniedBy === undefined
      ? { reason: reasonOf(operation, reason), verdict: 'cancelled' }
      : { guard: reason.deniedBy, reason: reasonOf(operation, reason), verdict: 'deny' },
  not_accepted_after_dispatch_commit: (operation, reason) => ({
    reason: reasonOf(operation, reason),
    verdict: 'cancelled',
  }),
  outcome_unknown_after_dispatch: (operation, reason) => ({
    reason: reasonOf(operation, reason),
    verdict: 'incomplete',
  }),
  denied_after_delivery: (operation, reason) => ({
    guard: reason.deniedBy ?? KERNEL_GUARD,
    reason: reasonOf(operation, reason),
    verdict: 'deny',
  }),
}

export function isDecision(state: AdmissionState): boolean {
  return DECISIONS[state] !== undefined
}

/** The receipt of the decision by which an operation came into its state; undefined where there was none. */
export function operationReceipt(
  writer: ReceiptWriter,
  operation: AdmissionOperation,
  moment: ReceiptMoment,
  reason: DecisionReason,
): KernelReceipt | undefined {
  const decision = DECISIONS[operation.state]?.(operation, reason)
  if (decision === undefined) return undefined
  const { capability_id } = operation.binding
  const outcome = outcomeOf(operation)
  const { parameters, tool } = receiptSubject(operation)
  const body = bodyOf(writer, moment, {
    action: actionOf(parameters),
    capability_id,
    content_hash: contentHashOf(outcome, reason),
    decision,
    metadata: {
      ...metadataOf(writer, operation.callerPublicKey),
      admission: { ...admissionOf(operation, moment) },
      ...recordMetadata(operation),
      ...reason.delivery?.metadata,
      ...(outcome === undefined ? {} : { outcome }),
    },
  })
  return sign(writer, withEvidence({ ...body, ...named(tool) }, reason.evidence), moment)
}

function contentHashOf(outcome: JsonValue | undefined, { delivery }: DecisionReason): string {
  return delivery?.contentHash ?? (outcome === undefined ? NO_CONTENT_HASH : valueHash(outcome))
}

/** The receipt of a refusal. */
export function refusalReceipt(
  writer: ReceiptWriter,
  refusal: Refusal,
  moment: ReceiptMoment,
): KernelReceipt {
  const {
    callerPublicKey,
    capabilityId,
    code,
    guard = KERNEL_GUARD,
    operation,
    parameters,
    sentence,
  } = refusal
  const body = bodyOf(writer, moment, {
    action: actionOf(parameters),
    capability_id: capabilityId,
    content_hash: NO_CONTENT_HASH,
    decision: { guard, reason: sentence, verdict: 'deny' },
    metadata: {
      ...metadataOf(writer, callerPublicKey),
      ...(operation === null ? {} : { admission: { ...admissionOf(operation, moment) } }),
      refusal: { code },
    },
  })
  return sign(writer, withEvidence({ ...body, ...named(refusal.tool) }, refusal.evidence), moment)
}

type Said = Pick<KernelReceiptBody, 'action' | 'capability_id' | 'content_hash' | 'decision' | 'metadata'>

function bodyOf(writer: ReceiptWriter, { nowUnixMs }: ReceiptMoment, said: Said): KernelReceiptBody {
  return {
    ...MEDIATED,
    ...said,
    kernel_key: writer.key.publicKey,
    policy_hash: POLICY_HASH,
    tenant_id: writer.tenantScope,
    timestamp: Math.floor(nowUnixMs / 1_000),
    ...named(BROKERED_TOOL),
  }
}

function named({ name, server }: ReceiptTool = BROKERED_TOOL) {
  return { tool_name: name, tool_server: server }
}

/** No evidence is said by no such member. */
function withEvidence(body: KernelReceiptBody, evidence: readonly GuardEvidence[] = []): KernelReceiptBody {
  return evidence.length === 0 ? body : { ...body, evidence }
}

function sign(writer: ReceiptWriter, body: KernelReceiptBody, { nowUnixMs }: ReceiptMoment): KernelReceipt {
  return signKernelReceipt(body, writer.key, `rcpt-${uuidV7(nowUnixMs)}`)
}

function actionOf(parameters: JsonValue) {
  return { parameter_hash: valueHash(parameters), parameters }
}

function metadataOf({ durableMode, issuerKey }: ReceiptWriter, subjectKey: string | null) {
  return {
    attribution: { delegation_depth: 0, issuer_key: issuerKey, subject_key: subjectKey },
    durable_mode: durableMode,
  }
}

function admissionOf(operation: AdmissionOperation, { nowUnixMs, owner, storeId }: ReceiptMoment) {
  const { attachments, binding, commit, state, version } = operation
  const { leaseId, ownerEpoch } = owner
  const outcomeId = attachments.tool_outcome_id ?? null
  const metadata: AdmissionReceiptMetadata = {
    compensation_status: isCompensation(state) ? state : 'not_compensated',
    coordinator_lease_epoch: ownerEpoch,
    coordinator_lease_id: leaseId,
    operation_id: operation.operationId,
    projected_dispatch_state: STATE_FACTS[state].dispatch,
    projected_operation_version: version,
    projected_state: state,
    request_binding_hash: binding.request_binding.request_binding_hash,
    request_id: binding.request_id,
    request_namespace_digest: binding.request_namespace_digest,
    retained_dispatch_commit: commit === null ? null : commitRecord(commit),
    schema: ADMISSION_RECEIPT_SCHEMA,
    store_fence: { lease_id: leaseId, owner_epoch: ownerEpoch, store_uuid: storeId },
    tool_outcome_id: outcomeId,
    // An outcome is inserted once: it has one version.
    tool_outcome_version: outcomeId === null ? null : 1,
    trusted_time_unix_ms: nowUnixMs,
  }
  return metadata
}

function isCompensation(
  state: AdmissionState,
): state is 'compensated_before_dispatch' | 'not_accepted_after_dispatch_commit' {
  return state === 'compensated_before_dispatch' || state === 'not_accepted_after_dispatch_commit'
}

/** By which signed statement of the broker an operation ended. */
function recordMetadata({ call: { record } }: AdmissionOperation): { readonly [member: string]: JsonValue } {
  if (record === null) return {}
  const reference =
    record.kind === 'receipt' ? receiptReference(record.receipt) : failureReference(record.failure.receipt)
  return { broker_record: { kind: record.kind, reference } }
}

/** What a completed operation delivered, by digest. */
function outcomeOf({ call: { record }, state }: AdmissionOperation): JsonValue | undefined {
  if (state !== 'completed' || record?.kind !== 'receipt') return undefined
  const { evidence, responseBodyBytes } = record.receipt.body
  return {
    response_body_bytes: responseBodyBytes,
    response_body_sha256: evidence.responseBodySha256,
    response_headers_sha256: evidence.responseHeadersSha256,
    upstream_status: evidence.upstreamStatus,
  }
}
