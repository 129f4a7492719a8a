// Owns the receipt rows, and the building of the receipt of a completed execution: digests, never content.
// Must never: describe a response other than the one that is stored in the same commit.
// Source: the broker protocol's evidence and success receipt, sections 5.14 to 5.16.
import { capabilityDigest } from '../protocol/capability.js'
import { decode, encode } from '../protocol/codec.js'
import { EVIDENCE_SCHEMA, responseBodyDigest, responseHeadersDigest } from '../protocol/evidence.js'
import {
  type BrokerExecuteRequest,
  callerHeadersDigest,
  callerOptionsDigest,
} from '../protocol/execute-request.js'
import {
  type BrokerExecuteFailure,
  failureReference,
  SignedExecutionFailureReceipt,
} from '../protocol/failure.js'
import type { CapturedHold } from '../protocol/hold.js'
import type { SigningKey } from '../protocol/keys.js'
import {
  credentialReferenceHash,
  RECEIPT_SCHEMA,
  receiptIdOf,
  receiptReference,
  SignedExecutionReceipt,
  signReceipt,
} from '../protocol/receipt.js'
import type { AttemptRegistration } from '../protocol/registration.js'
import type { Transaction } from '../store/transaction.js'
import type { RowReader } from './attempts.js'
import type { StoredResponse } from './stored-responses.js'

const INSERT_SQL = `INSERT INTO receipts (reference, attempt_id, kind, receipt, recorded_at_unix_ms)
  VALUES (?, ?, ?, ?, ?)`
const FIND_SQL = 'SELECT kind, receipt FROM receipts WHERE reference = ?'

export interface Execution {
  readonly request: BrokerExecuteRequest
  readonly registration: AttemptRegistration
  readonly captured: CapturedHold
}

/** Signs what was executed and answered. */
export function signExecution(
  execution: Execution,
  response: StoredResponse,
  issuedAtUnixSeconds: number,
  key: SigningKey,
): SignedExecutionReceipt {
  const { request, registration } = execution
  const capability = request.capability.body
  const { proof } = request
  return signReceipt(
    {
      authorizeEventId: registration.ids.authorizeEventId,
      brokerCapabilityId: capability.capabilityId,
      brokerQuotaKeyId: capability.brokerQuotaKeyId,
      callerHeadersSha256: callerHeadersDigest(request.request.headers),
      callerOptionsSha256: callerOptionsDigest(request.request.options),
      captureEventId: registration.ids.captureEventId,
      credentialReferenceHash: credentialReferenceHash(capability.credential),
      credentialVersion: capability.credential.version,
      evidence: evidenceOf(execution, response),
      issuedAtUnixSeconds,
      normalizedDestination: request.request.destination,
      operationId: registration.ids.operationId,
      outcome: 'completed',
      parentCapabilityId: capability.parentCapabilityId,
      providerAdapterId: capability.providerAdapterId,
      providerAdapterVersion: capability.providerAdapterVersion,
      quotas: registration.quotas,
      receiptId: receiptIdOf(registration.ids.attemptId),
      requestBodyBytes: request.request.body.length,
      requestBodySha256: proof.body.bodySha256,
      responseBodyBytes: response.body.length,
      schema: RECEIPT_SCHEMA,
      sourceReceiptIds: [],
      subject: capability.subject,
    },
    key,
  )
}

function evidenceOf({ request, registration, captured }: Execution, response: StoredResponse) {
  return {
    attemptId: registration.ids.attemptId,
    authorityCommitIndex: captured.authorityCommitIndex,
    budgetCommitIndex: captured.budgetCommitIndex,
    capabilityDigest: capabilityDigest(request.capability),
    holdId: registration.ids.holdId,
    invocationId: registration.invocationId,
    leaderEpoch: captured.leaderEpoch,
    requestDigest: registration.requestDigest,
    responseBodySha256: responseBodyDigest(response.body),
    responseHeadersSha256: responseHeadersDigest(response.headers),
    revocationCommitIndex: captured.revocationCommitIndex,
    revocationSetDigest: captured.checkedRevocationSetDigest,
    schema: EVIDENCE_SCHEMA,
    upstreamStatus: response.status,
  } as const
}

export function insertExecutionReceipt(
  tx: Transaction,
  attemptId: string,
  receipt: SignedExecutionReceipt,
  recordedAtUnixMs: number,
): void {
  const bytes = encode(SignedExecutionReceipt, receipt)
  tx.run(INSERT_SQL, receiptReference(receipt), attemptId, 'execution', bytes, recordedAtUnixMs)
}

export function insertFailureReceipt(
  tx: Transaction,
  attemptId: string,
  failure: BrokerExecuteFailure,
  recordedAtUnixMs: number,
): void {
  const bytes = encode(SignedExecutionFailureReceipt, failure.receipt)
  tx.run(INSERT_SQL, failureReference(failure.receipt), attemptId, 'failure', bytes, recordedAtUnixMs)
}

export type StoredReceipt =
  | { readonly kind: 'execution'; readonly receipt: SignedExecutionReceipt }
  | { readonly kind: 'failure'; readonly failure: BrokerExecuteFailure }

export function findReceipt(rows: RowReader, reference: string): StoredReceipt | undefined {
  const row = rows.get<{ kind: 'execution' | 'failure'; receipt: Uint8Array }>(FIND_SQL, reference)
  if (row === undefined) return undefined
  if (row.kind === 'execution') {
    return { kind: 'execution', receipt: decode(SignedExecutionReceipt, row.receipt, 'stored receipt') }
  }
  const receipt = decode(SignedExecutionFailureReceipt, row.receipt, 'stored failure receipt')
  const { diagnosticCode } = receipt.body
  return { kind: 'failure', failure: { diagnosticCode, receipt, receiptReference: reference } }
}
