// Owns: `chio.admission-operation.v1`, the one document of an operation, and what every operation in it keeps to.
// Must never: be believed because it decodes: who made it is known from where it was read or who signed around it.
// Source: the persisted admission operation, its dispatch states and its dispatch commit.
import {
  AdmissionAttachments,
  type AttachmentHolder,
  assertAttachments,
  isSupported,
} from './admission-attachments.js'
import { ADMISSION_OPERATION_SCHEMA, OperationBinding } from './admission-operation.js'
import { ADMISSION_STATES, type AdmissionState, DISPATCH_STATES, STATE_FACTS } from './admission-states.js'
import {
  decode,
  encode,
  type Infer,
  identifier,
  integer,
  literal,
  nullable,
  object,
  oneOf,
  text,
} from './codec.js'
import { sha256Hex } from './digest.js'
import { DispatchCommitRecord, type ProviderAttempt } from './dispatch-commit.js'
import { BrokerError } from './errors.js'
import { MAXIMUM_INTEGER } from './limits.js'
import { proposalHash } from './threshold-proposal.js'

const positive = integer({ min: 1, max: MAXIMUM_INTEGER })
const MAXIMUM_LAST_ERROR_BYTES = 4_096

/** By which signed receipt the end of an operation is answered again. */
export const TerminalReplay = object({ receipt_id: identifier() })

export const AdmissionOperationDocument = object({
  attachments: AdmissionAttachments,
  binding: OperationBinding,
  coordinator_lease_epoch: positive,
  dispatch_commit: nullable(DispatchCommitRecord),
  dispatch_state: oneOf(...DISPATCH_STATES),
  last_error: nullable(text({ minBytes: 1, maxBytes: MAXIMUM_LAST_ERROR_BYTES })),
  schema: literal(ADMISSION_OPERATION_SCHEMA),
  state: oneOf(...ADMISSION_STATES),
  terminal_replay: nullable(TerminalReplay),
  version: positive,
})
export type AdmissionOperationDocument = Infer<typeof AdmissionOperationDocument>

/** The members that the rules below judge: a document has them all, and so has the kernel's own record. */
export type JudgedOperation = Pick<
  AdmissionOperationDocument,
  'attachments' | 'binding' | 'coordinator_lease_epoch' | 'dispatch_commit' | 'state' | 'version'
>

const WITH_COMMIT: readonly AdmissionState[] = [
  'dispatch_committed',
  'awaiting_caller_report',
  'finalizing',
  'completed',
  'not_accepted_after_dispatch_commit',
  'outcome_unknown_after_dispatch',
  'denied_after_delivery',
]
const ECONOMIC: readonly AdmissionState[] = ADMISSION_STATES.slice(ADMISSION_STATES.indexOf('mutation_ready'))

/** Reads a document and judges it. @throws BrokerError `invalid_request`, or the code of the rule it breaks. */
export function decodeAdmissionOperation(bytes: Uint8Array): AdmissionOperationDocument {
  const document = decode(AdmissionOperationDocument, bytes, 'admission operation')
  if (document.dispatch_state !== STATE_FACTS[document.state].dispatch) {
    disagree('dispatch_state', `${STATE_FACTS[document.state].dispatch} in ${document.state}`)
  }
  assertOperation(document)
  return document
}

export function operationDocumentDigest(document: AdmissionOperationDocument): string {
  return sha256Hex(encode(AdmissionOperationDocument, document))
}

/**
 * What every operation keeps to, in whatever state it stands.
 * @throws BrokerError `attachment_forbidden`, `attachment_missing`, `approval_mismatch` or `invariant`.
 */
export function assertOperation(operation: JudgedOperation): void {
  const { attachments, binding, state } = operation
  const holder = holderOf(operation)
  if (!isStateOf(holder)) disagree('state', `one of a ${binding.kind} with its requirements`)
  assertAttachments(attachments, holder)
  assertProposal(attachments)
  const commit = operation.dispatch_commit
  if ((commit !== null) !== WITH_COMMIT.includes(state)) {
    disagree('dispatch_commit', `${WITH_COMMIT.includes(state) ? 'one' : 'none'} in ${state}`)
  }
  if (commit !== null) assertCommit(commit, operation)
}

/** An operation as its attachments are judged. */
export function holderOf({ binding, state }: Pick<JudgedOperation, 'binding' | 'state'>): AttachmentHolder {
  const { kind, request_binding } = binding
  return { kind, requirements: request_binding.participant_requirements, state }
}

/** Economic mutations have states of their own, and an executor reports to tool calls with a hold and a nonce alone. */
function isStateOf({ kind, requirements, state }: AttachmentHolder): boolean {
  if (kind === 'governed_economic_mutation') return state === 'prepared' || ECONOMIC.includes(state)
  if (ECONOMIC.includes(state)) return false
  if (state !== 'awaiting_caller_report') return true
  return kind === 'tool_dispatch' && requirements.execution_nonce && requirements.budget_capture
}

function assertProposal({ threshold_proposal, threshold_proposal_hash }: AdmissionAttachments): void {
  if (threshold_proposal === undefined || threshold_proposal_hash === undefined) return
  if (proposalHash(threshold_proposal.body) === threshold_proposal_hash) return
  throw new BrokerError(
    'approval_mismatch',
    'attachment threshold_proposal refused: expected the one of the attached hash, got another',
  )
}

function assertCommit(commit: DispatchCommitRecord, operation: JudgedOperation): void {
  const { state, version } = operation
  const isNow = state === 'dispatch_committed'
  const fits = isNow ? commit.committed_version === version : commit.committed_version <= version
  if (!fits) disagree('committed_version', isNow ? "the operation's version" : 'one not beyond its version')
  if (commit.coordinator_lease_epoch !== operation.coordinator_lease_epoch) {
    disagree('coordinator_lease_epoch', "the operation's")
  }
  assertAttempt(commit.provider_attempt, operation)
}

function assertAttempt(attempt: ProviderAttempt | null, operation: JudgedOperation): void {
  const { attachments, binding } = operation
  if (binding.kind === 'governed_active_response') {
    if (attempt !== null) disagree('provider_attempt', 'none of an active response')
    return
  }
  if (attempt !== null && attempt.operation_id !== binding.operation_id) {
    disagree('provider_attempt', 'one of this operation')
  }
  if (!isSupported('broker_attempt', holderOf(operation))) return
  const attached = attachments.broker_attempt
  if (attempt?.attempt_id !== attached?.attempt_id || attempt?.transport_id !== attached?.transport_id) {
    disagree('provider_attempt', 'the attached attempt')
  }
}

function disagree(member: string, expected: string): never {
  throw new BrokerError('invariant', `operation ${member} refused: expected ${expected}, got another`, {
    outcome: 'not_started',
  })
}
