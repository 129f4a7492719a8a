// Owns: the wire's document of an operation, derived from the kernel's record.
// Must never: say more of an operation than its record does: no body, no proof, no capability.
// Source: `chio.admission-operation.v1`.
import {
  AdmissionOperationDocument,
  assertOperation,
  operationDocumentDigest,
} from '../../protocol/admission-document.js'
import { ADMISSION_OPERATION_SCHEMA } from '../../protocol/admission-operation.js'
import { STATE_FACTS } from '../../protocol/admission-states.js'
import { encode } from '../../protocol/codec.js'
import type { DispatchCommitRecord } from '../../protocol/dispatch-commit.js'
import type { AdmissionOperation, DispatchCommit } from './operation.js'

const MAXIMUM_ERROR_CHARACTERS = 1_024

/** @param endedBy id of the receipt of its end: the log knows it, the operation itself does not. */
export function operationDocument(
  operation: AdmissionOperation,
  endedBy: string | null = null,
): AdmissionOperationDocument {
  const { attachments, binding, commit, lastError, leaseEpoch, state, version } = operation
  return {
    attachments,
    binding,
    coordinator_lease_epoch: leaseEpoch,
    dispatch_commit: commit === null ? null : commitRecord(commit),
    dispatch_state: STATE_FACTS[state].dispatch,
    last_error: lastError?.slice(0, MAXIMUM_ERROR_CHARACTERS) ?? null,
    schema: ADMISSION_OPERATION_SCHEMA,
    state,
    terminal_replay: endedBy === null ? null : { receipt_id: endedBy },
    version,
  }
}

/** The exact bytes of an operation's document. */
export function operationBytes(operation: AdmissionOperation): Uint8Array {
  return encode(AdmissionOperationDocument, operationDocument(operation))
}

export function operationDigest(operation: AdmissionOperation): string {
  return operationDocumentDigest(operationDocument(operation))
}

/** A commit as documents carry it, without what it captured. */
export function commitRecord(commit: DispatchCommit): DispatchCommitRecord {
  const { captured: _captured, startedAtUnixMs: _startedAtUnixMs, ...record } = commit
  return record
}

/** What the store holds every operation against, at each step. @throws BrokerError with the code of the rule. */
export function assertConsistent(operation: AdmissionOperation): void {
  assertOperation(operationDocument(operation))
}
