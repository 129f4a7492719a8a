// Owns the attempt rows: what is registered, and each move as one UPDATE that must change exactly one row.
// Must never: move along an edge that the state table lacks, or make a row for an attempt that nobody registered.
// Source: the broker protocol's attempt state machine, section 7.
import { type AttemptState, mayMoveAttempt } from '../protocol/attempt-states.js'
import { capabilityDigest } from '../protocol/capability.js'
import { BrokerError } from '../protocol/errors.js'
import type { BrokerExecuteRequest } from '../protocol/execute-request.js'
import type { CapturedHold } from '../protocol/hold.js'
import { type AttemptRegistration, registrationDigest } from '../protocol/registration.js'
import type { Transaction } from '../store/transaction.js'
import { OPEN_ATTEMPTS } from './schema.js'

/** Reads rows, inside a transaction or outside. */
export interface RowReader {
  get<Row>(sql: string, ...parameters: readonly (string | number | Uint8Array)[]): Row | undefined
}

export interface AttemptRecord {
  readonly attemptId: string
  readonly operationId: string
  readonly holdId: string
  readonly invocationId: string
  readonly parentCapabilityId: string
  readonly brokerCapabilityId: string
  readonly capabilityDigest: string
  readonly requestDigest: string
  readonly requestCanonicalDigest: string
  readonly registrationDigest: string
  readonly proofKeyId: string
  readonly proofNonce: string
  readonly proofIssuedAtUnixSeconds: number
  readonly registeredAtUnixMs: number
  readonly state: AttemptState
  readonly version: number
  readonly dispatchCommittedAtUnixMs: number | null
  readonly endedAtUnixMs: number | null
  readonly reason: string | null
  readonly receiptReference: string | null
  readonly expectedFrameSha256: string | null
  readonly submittedFrameSha256: string | null
  readonly submittedFrameBytes: number | null
}

const COLUMNS: Record<keyof AttemptRecord, string> = {
  attemptId: 'attempt_id',
  operationId: 'operation_id',
  holdId: 'hold_id',
  invocationId: 'invocation_id',
  parentCapabilityId: 'parent_capability_id',
  brokerCapabilityId: 'broker_capability_id',
  capabilityDigest: 'capability_digest',
  requestDigest: 'request_digest',
  requestCanonicalDigest: 'request_canonical_digest',
  registrationDigest: 'registration_digest',
  proofKeyId: 'proof_key_id',
  proofNonce: 'proof_nonce',
  proofIssuedAtUnixSeconds: 'proof_issued_at_unix_seconds',
  registeredAtUnixMs: 'registered_at_unix_ms',
  state: 'state',
  version: 'version',
  dispatchCommittedAtUnixMs: 'dispatch_committed_at_unix_ms',
  endedAtUnixMs: 'ended_at_unix_ms',
  reason: 'reason',
  receiptReference: 'receipt_reference',
  expectedFrameSha256: 'expected_frame_sha256',
  submittedFrameSha256: 'submitted_frame_sha256',
  submittedFrameBytes: 'submitted_frame_bytes',
}

const FIELDS = Object.entries(COLUMNS)
  .map(([member, column]) => `${column} AS ${member}`)
  .join(', ')
const FIND_SQL = `SELECT ${FIELDS} FROM attempts WHERE attempt_id = ?`
const OPEN_SQL = `SELECT ${FIELDS} FROM attempts WHERE ${OPEN_ATTEMPTS} LIMIT ?`

const INSERTED: readonly (keyof AttemptRecord)[] = [
  'attemptId',
  'operationId',
  'holdId',
  'invocationId',
  'parentCapabilityId',
  'brokerCapabilityId',
  'capabilityDigest',
  'requestDigest',
  'requestCanonicalDigest',
  'registrationDigest',
  'proofKeyId',
  'proofNonce',
  'proofIssuedAtUnixSeconds',
  'registeredAtUnixMs',
]
const INSERT_SQL = `INSERT INTO attempts (${INSERTED.map(member => COLUMNS[member]).join(', ')}, state, version)
  VALUES (${INSERTED.map(() => '?').join(', ')}, 'registered', 1)`

const MOVE_SQL =
  'UPDATE attempts SET state = ?, version = version + 1 WHERE attempt_id = ? AND version = ? AND state = ?'
const CAPTURE_SQL = `UPDATE attempts SET state = 'captured', version = version + 1, revocation_set_digest = ?,
  authority_commit_index = ?, budget_commit_index = ?, revocation_commit_index = ?, leader_epoch = ?
  WHERE attempt_id = ? AND version = ? AND state = 'prepared'`
const DISPATCH_SQL = `UPDATE attempts SET state = 'dispatch_committed', version = version + 1,
  dispatch_committed_at_unix_ms = ? WHERE attempt_id = ? AND version = ? AND state = 'captured'`
const END_SQL = `UPDATE attempts SET state = ?, version = version + 1, ended_at_unix_ms = ?, reason = ?,
  receipt_reference = ?, expected_frame_sha256 = ?, submitted_frame_sha256 = ?, submitted_frame_bytes = ?
  WHERE attempt_id = ? AND version = ? AND state = ?`

/** The row that a registration begins as. */
export function newAttempt(
  registration: AttemptRegistration,
  execute: BrokerExecuteRequest,
  registeredAtUnixMs: number,
): AttemptRecord {
  return {
    attemptId: registration.ids.attemptId,
    operationId: registration.ids.operationId,
    holdId: registration.ids.holdId,
    invocationId: registration.invocationId,
    parentCapabilityId: registration.parentCapabilityId,
    brokerCapabilityId: registration.brokerCapabilityId,
    capabilityDigest: capabilityDigest(execute.capability),
    requestDigest: registration.requestDigest,
    requestCanonicalDigest: registration.requestCanonicalDigest,
    registrationDigest: registrationDigest(registration),
    proofKeyId: registration.proofKeyId,
    proofNonce: registration.proofNonce,
    proofIssuedAtUnixSeconds: execute.proof.body.issuedAtUnixSeconds,
    registeredAtUnixMs,
    state: 'registered',
    version: 1,
    dispatchCommittedAtUnixMs: null,
    endedAtUnixMs: null,
    reason: null,
    receiptReference: null,
    expectedFrameSha256: null,
    submittedFrameSha256: null,
    submittedFrameBytes: null,
  }
}

export function findAttempt(rows: RowReader, attemptId: string): AttemptRecord | undefined {
  return rows.get<AttemptRecord>(FIND_SQL, attemptId)
}

/** Attempts that a former life of the daemon left open, at most this many. */
export function openAttempts(tx: Transaction, limit: number): AttemptRecord[] {
  return tx.all<AttemptRecord>(OPEN_SQL, limit)
}

/** @throws BrokerError `conflict` when attempt, operation or proof nonce were used before. */
export function insertAttempt(tx: Transaction, attempt: AttemptRecord): void {
  tx.run(INSERT_SQL, ...INSERTED.map(member => attempt[member] as string | number))
}

/** Walks registered → prepared → captured → dispatch_committed. @throws BrokerError `conflict`. */
export function commitDispatch(
  tx: Transaction,
  attempt: AttemptRecord,
  captured: CapturedHold,
  committedAtUnixMs: number,
): void {
  const { attemptId, version } = attempt
  tx.changeOne(MOVE_SQL, 'prepared', attemptId, version, 'registered')
  const indexes = [
    captured.checkedRevocationSetDigest,
    captured.authorityCommitIndex,
    captured.budgetCommitIndex,
    captured.revocationCommitIndex,
    captured.leaderEpoch,
  ] as const
  tx.changeOne(CAPTURE_SQL, ...indexes, attemptId, version + 1)
  tx.changeOne(DISPATCH_SQL, committedAtUnixMs, attemptId, version + 2)
}

/** What is kept of a frame that was refused: never its bytes. */
export interface RefusedFrame {
  readonly expectedFrameSha256: string
  readonly submittedFrameSha256: string | null
  readonly submittedFrameBytes: number | null
}

export interface AttemptEnd {
  readonly state: 'completed' | 'failed' | 'unknown_outcome'
  readonly endedAtUnixMs: number
  readonly reason: string | null
  readonly receiptReference: string
  readonly frame: RefusedFrame | null
}

/** Ends an attempt from the state in which the record was read. @throws BrokerError `conflict`. */
export function endAttempt(tx: Transaction, attempt: AttemptRecord, end: AttemptEnd): void {
  if (!mayMoveAttempt(attempt.state, end.state) || attempt.state === end.state) {
    throw new BrokerError(
      'conflict',
      `move refused: expected an edge from ${attempt.state}, got ${end.state}`,
    )
  }
  tx.changeOne(
    END_SQL,
    end.state,
    end.endedAtUnixMs,
    end.reason,
    end.receiptReference,
    end.frame?.expectedFrameSha256 ?? null,
    end.frame?.submittedFrameSha256 ?? null,
    end.frame?.submittedFrameBytes ?? null,
    attempt.attemptId,
    attempt.version,
    attempt.state,
  )
}
