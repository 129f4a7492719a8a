// Owns: an admission operation as the kernel keeps it: what was reserved, and what each milestone added.
// Must never: hold a body, a secret or a proof. The exact request is kept apart, encrypted.
// Source: the admission operation's binding, attachments and dispatch commit.
import { OperationBinding } from '../../protocol/admission-operation.js'
import type { AdmissionAttachments } from '../../protocol/admission-attachments.js'
import type { AdmissionState } from '../../protocol/admission-states.js'
import { BrokerError } from '../../protocol/errors.js'
import { type Infer, identifier, nullable, object } from '../../protocol/codec.js'
import { ProviderAttempt, StoreFence } from '../../protocol/dispatch-commit.js'
import type { Grant } from '../../protocol/grant.js'
import { CapturedHold } from '../../protocol/hold.js'
import { type BrokerRecord, ReserveRequest, ReserveResult } from '../../protocol/kernel-rpc.js'
import { AttemptIds, type AttemptRegistration } from '../../protocol/registration.js'
import { Count, UnixMs } from '../../protocol/unix-time.js'
import type { AnnouncedCallTerms, ToolCallTerms } from '../calls/tool-call-terms.js'

const announced = { binding: OperationBinding, ids: AttemptIds, request: ReserveRequest }
/** What a request commits to, before anything was minted for it. */
export const Announcement = object(announced)
export type Announcement = Infer<typeof Announcement>

/** Fixed once it is answered and never changed: the same reserve is answered from it. */
export const Reservation = object({ ...announced, answer: ReserveResult })
export type Reservation = Infer<typeof Reservation>

/** Fixed by the one start: the captured hold, and under which owner it was captured. */
export const DispatchCommit = object({
  captured: CapturedHold,
  committed_version: Count,
  coordinator_lease_epoch: Count,
  coordinator_lease_id: identifier(),
  provider_attempt: nullable(ProviderAttempt),
  startedAtUnixMs: UnixMs,
  store_fence: StoreFence,
})
export type DispatchCommit = Infer<typeof DispatchCommit>

/** A call that the broker makes with a credential. */
export interface BrokeredCall {
  readonly kind: 'brokered'
  readonly reservation: Reservation
  /** Set when the exact request was retained and its registration may be signed. */
  readonly registration: AttemptRegistration | null
  /** The broker's signed record that ended it, if one did. */
  readonly record: BrokerRecord | null
}

/** A brokered call that waits for its approvals: it has no capability and no nonce yet, and nothing to start with. */
export interface AnnouncedCall extends Pick<BrokeredCall, 'record' | 'registration'> {
  readonly kind: 'announced'
  readonly reservation: Announcement
}

/** A call that an executor carries out and reports. The broker has no part in it: nothing is registered with it. */
export interface ToolCall extends Pick<BrokeredCall, 'record' | 'registration'> {
  readonly kind: 'tool_call'
  readonly terms: ToolCallTerms
}

/** A tool call that waits for its approvals: it has no nonce yet, and nothing to reserve with. */
export interface AnnouncedToolCall extends Pick<BrokeredCall, 'record' | 'registration'> {
  readonly kind: 'announced_call'
  readonly terms: AnnouncedCallTerms
}

/** What an operation is about. Whoever needs a brokered one asks `brokeredCall`. */
export type OperationCall = AnnouncedCall | AnnouncedToolCall | BrokeredCall | ToolCall

/** Whether an executor carries it out, waiting for approvals or not. */
export function isToolCall(call: OperationCall): call is AnnouncedToolCall | ToolCall {
  return call.kind === 'tool_call' || call.kind === 'announced_call'
}

export interface AdmissionOperation {
  readonly operationId: string
  readonly binding: OperationBinding
  readonly callerPublicKey: string
  readonly state: AdmissionState
  readonly version: number
  readonly createdAtUnixMs: number
  readonly updatedAtUnixMs: number
  readonly call: OperationCall
  /** What each milestone added; each is set once. */
  readonly attachments: AdmissionAttachments
  /** Epoch of the owner that reserved it, or that adopted it since. */
  readonly leaseEpoch: number
  /** Set from the dispatch commit on. */
  readonly commit: DispatchCommit | null
  readonly lastError: string | null
}

/**
 * What was announced, whether it was answered or still waits.
 * @throws BrokerError `operation_state` for a tool call: nobody announces one.
 */
export function announcementOf(operation: AdmissionOperation): Announcement {
  const { call } = operation
  return isToolCall(call) ? brokeredCall(operation).reservation : call.reservation
}

/** @throws BrokerError `operation_state` when the operation is not one that an executor may carry out. */
export function toolCallOf({ call, operationId }: AdmissionOperation): ToolCall {
  if (call.kind === 'tool_call') return call
  if (call.kind === 'announced_call') {
    throw new BrokerError(
      'operation_state',
      `operation ${operationId} refused: expected a tool call with its nonce, got one that waits for approvals; repeat its preflight once they are there`,
      { operationId },
    )
  }
  throw new BrokerError(
    'operation_state',
    `operation ${operationId} refused: expected a tool call, got one that the broker carries out; inspect it`,
    { operationId },
  )
}

/** @throws BrokerError `operation_state` when the operation is not one that the broker carries out. */
export function brokeredCall({ call, operationId }: AdmissionOperation): BrokeredCall {
  if (call.kind === 'brokered') return call
  throw new BrokerError(
    'operation_state',
    `operation ${operationId} refused: expected one that the broker can carry out, got one that waits for approvals or is of another kind; inspect it`,
    { operationId },
  )
}

export interface StoredGrant {
  readonly grant: Grant
  readonly digest: string
  /** Executions that are reserved and may still be given back. */
  readonly held: number
  /** Executions that a start has spent. */
  readonly captured: number
  readonly revoked: boolean
  readonly commitIndex: number
}

/** The exact execute request, encrypted under the storage key. */
export interface SealedRequest {
  readonly nonce: Uint8Array
  readonly ciphertext: Uint8Array
}
