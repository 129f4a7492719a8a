// Owns: the rows of operations, their history, the counts of their states and their retained requests.
// Must never: decide what may be moved; by itself the table refuses only a second ending and a changed history.
// Source: sqlite.org/stricttables.html; the admission store's append-only history.
import { AdmissionAttachments } from '../../protocol/admission-attachments.js'
import { ADMISSION_STATES, type AdmissionState, STATE_FACTS } from '../../protocol/admission-states.js'
import { type Codec, encode, type Infer, tagged } from '../../protocol/codec.js'
import { BrokerError } from '../../protocol/errors.js'
import { BrokerRecord } from '../../protocol/kernel-rpc.js'
import { type HistoryLine, MAXIMUM_HISTORY_LINES } from '../../protocol/operation-rpc.js'
import { AttemptRegistration } from '../../protocol/registration.js'
import { appendOnly } from '../../store/schema.js'
import type { SqlValue, Transaction } from '../../store/transaction.js'
import type { ListFilter } from '../admission-store.js'
import {
  type AdmissionOperation,
  Announcement,
  DispatchCommit,
  type OperationCall,
  Reservation,
  type SealedRequest,
} from '../operation/operation.js'
import { AnnouncedCallTerms, ToolCallTerms } from '../calls/tool-call-terms.js'
import type { Moment } from './owner-table.js'
import { insertRow, type Reader, readOptionalDocument, RememberedDocuments } from './row-documents.js'

const quoted = (states: readonly string[]): string => states.map(state => `'${state}'`).join(', ')
const STATES = quoted(ADMISSION_STATES)
const ENDED = quoted(ADMISSION_STATES.filter(state => STATE_FACTS[state].terminal))

export const OPERATION_SQL = `
CREATE TABLE operations (operation_id TEXT PRIMARY KEY, namespace_digest TEXT NOT NULL, request_id TEXT NOT NULL,
  caller_public_key TEXT NOT NULL, state TEXT NOT NULL CHECK (state IN (${STATES})), version INTEGER NOT NULL,
  settled INTEGER NOT NULL, created_at_unix_ms INTEGER NOT NULL, updated_at_unix_ms INTEGER NOT NULL,
  call BLOB NOT NULL, attachments BLOB NOT NULL, lease_epoch INTEGER NOT NULL, registration BLOB, dispatch_commit BLOB, record BLOB, last_error TEXT, argument_hash TEXT NOT NULL,
  UNIQUE (namespace_digest, request_id)) STRICT;
CREATE INDEX operations_open ON operations (created_at_unix_ms) WHERE settled = 0;
CREATE INDEX operations_newest ON operations (created_at_unix_ms);
CREATE INDEX operations_of_caller ON operations (caller_public_key, created_at_unix_ms);
CREATE TRIGGER operations_end_once BEFORE UPDATE ON operations WHEN OLD.state IN (${ENDED})
  BEGIN SELECT RAISE(ABORT, 'an operation ends once'); END;
CREATE TABLE history (operation_id TEXT NOT NULL, version INTEGER NOT NULL, from_state TEXT, to_state TEXT NOT NULL,
  cause TEXT NOT NULL, commit_index INTEGER NOT NULL, owner_epoch INTEGER NOT NULL, recorded_at_unix_ms INTEGER NOT NULL, PRIMARY KEY (operation_id, version)) STRICT;
CREATE TABLE state_counts (state TEXT PRIMARY KEY, count INTEGER NOT NULL CHECK (count >= 0)) STRICT;
CREATE TABLE retained_requests (operation_id TEXT PRIMARY KEY REFERENCES operations, nonce BLOB NOT NULL, ciphertext BLOB NOT NULL) STRICT;
${appendOnly('history')}`

const MOVE = `UPDATE operations SET state = ?, version = ?, settled = ?, updated_at_unix_ms = ?,
  attachments = ?, lease_epoch = ?, call = coalesce(?, call),
  registration = coalesce(?, registration), dispatch_commit = coalesce(?, dispatch_commit),
  record = coalesce(?, record), last_error = coalesce(?, last_error)
  WHERE operation_id = ? AND version = ? AND state = ?`

interface OperationRow {
  readonly operation_id: string
  readonly state: AdmissionState
  readonly version: number
  readonly created_at_unix_ms: number
  readonly updated_at_unix_ms: number
  readonly call: Uint8Array
  readonly attachments: Uint8Array
  readonly lease_epoch: number
  readonly registration: Uint8Array | null
  readonly dispatch_commit: Uint8Array | null
  readonly record: Uint8Array | null
  readonly last_error: string | null
}

export interface HistoryEntry {
  readonly operationId: string
  readonly version: number
  readonly from: AdmissionState | null
  readonly to: AdmissionState
  readonly cause: string
}

export class OperationReads {
  readonly #reader: Reader

  constructor(reader: Reader) {
    this.#reader = reader
  }

  find(operationId: string): AdmissionOperation | undefined {
    return this.#select('WHERE operation_id = ?', operationId)[0]
  }

  ofRequest(namespaceDigest: string, requestId: string): AdmissionOperation | undefined {
    return this.#select('WHERE namespace_digest = ? AND request_id = ?', namespaceDigest, requestId)[0]
  }

  newest({ callerPublicKey: key, limit }: ListFilter): AdmissionOperation[] {
    const newest = 'ORDER BY created_at_unix_ms DESC LIMIT ?'
    if (key === null) return this.#select(newest, limit)
    return this.#select(`WHERE caller_public_key = ? ${newest}`, key, limit)
  }

  /** Every operation that is not in a terminal state. */
  open(): AdmissionOperation[] {
    return this.#select('WHERE settled = 0')
  }

  /** What waits for approvals, or has them and was not asked for again: a caller's, or everybody's. */
  waiting(callerPublicKey: string | null): AdmissionOperation[] {
    const waiting = "WHERE settled = 0 AND state IN ('approval_required', 'approval_reserved')"
    if (callerPublicKey === null) return this.#select(waiting)
    return this.#select(`${waiting} AND caller_public_key = ?`, callerPublicKey)
  }

  /** The newest lines of an operation's history, oldest first. */
  history(operationId: string): HistoryLine[] {
    const sql = `SELECT cause, from_state AS "from", owner_epoch AS ownerEpoch, recorded_at_unix_ms AS recordedAtUnixMs,
      to_state AS "to", version FROM history WHERE operation_id = ? ORDER BY version DESC LIMIT ${MAXIMUM_HISTORY_LINES}`
    return this.#reader.all<HistoryLine>(sql, operationId).reverse()
  }

  stateCounts(): { state: AdmissionState; count: number }[] {
    return this.#reader.all('SELECT state, count FROM state_counts WHERE count > 0 ORDER BY state')
  }

  count(): number {
    return (this.#reader.get('SELECT count(*) AS n FROM operations') as { n: number }).n
  }

  retainedRequest(operationId: string): SealedRequest | undefined {
    const sql = 'SELECT nonce, ciphertext FROM retained_requests WHERE operation_id = ?'
    return this.#reader.get(sql, operationId)
  }

  #select(condition: string, ...values: SqlValue[]): AdmissionOperation[] {
    return this.#reader.all<OperationRow>(`SELECT * FROM operations ${condition}`, ...values).map(operationOf)
  }
}

export class OperationTables extends OperationReads {
  readonly #tx: Transaction
  readonly #moment: Moment

  constructor(tx: Transaction, moment: Moment) {
    super(tx)
    this.#tx = tx
    this.#moment = moment
  }

  /** Inserts an operation as prepared, version 1. */
  insert(operation: AdmissionOperation): void {
    const { binding, call, callerPublicKey, createdAtUnixMs, operationId, state, version } = operation
    const ids = [operationId, binding.request_namespace_digest, binding.request_id, callerPublicKey]
    const facts = [state, version, 0, createdAtUnixMs, createdAtUnixMs, encode(Call, callDocument(call))]
    const attached = [encode(AdmissionAttachments, operation.attachments), operation.leaseEpoch]
    const { action_parameter_hash: hash } = binding.request_binding
    insertRow(this.#tx, 'operations', ...ids, ...facts, ...attached, null, null, null, null, hash)
    this.#count(state, 1)
  }

  retain(operationId: string, { ciphertext, nonce }: SealedRequest): void {
    insertRow(this.#tx, 'retained_requests', operationId, nonce, ciphertext)
  }

  dropRetained(operationId: string): void {
    this.#tx.run('DELETE FROM retained_requests WHERE operation_id = ?', operationId)
  }

  recordHistory({ cause, from, operationId, to, version }: HistoryEntry): void {
    const { head, nowUnixMs, owner } = this.#moment
    const stamp = [head.commitIndex, owner.ownerEpoch, nowUnixMs]
    insertRow(this.#tx, 'history', operationId, version, from, to, cause, ...stamp)
  }

  /**
   * The compare-and-set: version and state must be those that were judged.
   * @throws BrokerError `stale_version` when another move came first.
   */
  replace(was: AdmissionOperation, is: AdmissionOperation): AdmissionOperation {
    const { registration, record } = is.call
    const documents = [
      registration === was.call.registration ? null : encodeOptional(AttemptRegistration, registration),
      is.commit === was.commit ? null : encodeOptional(DispatchCommit, is.commit),
      record === was.call.record ? null : encodeOptional(BrokerRecord, record),
      is.lastError,
    ]
    const settled = STATE_FACTS[is.state].terminal ? 1 : 0
    const facts = [is.state, is.version, settled, is.updatedAtUnixMs]
    const answered = is.call.kind === was.call.kind ? null : encode(Call, callDocument(is.call))
    const attached = [encode(AdmissionAttachments, is.attachments), is.leaseEpoch, answered]
    const old = [was.operationId, was.version, was.state]
    if (this.#tx.run(MOVE, ...facts, ...attached, ...documents, ...old) !== 1) refuseStale(was)
    if (is.state !== was.state) {
      this.#count(was.state, -1)
      this.#count(is.state, 1)
    }
    return is
  }

  #count(state: AdmissionState, by: 1 | -1): void {
    const sql = `INSERT INTO state_counts VALUES (?, max(0, ?)) ON CONFLICT DO UPDATE SET count = count + ?`
    this.#tx.run(sql, state, by, by)
  }
}

function encodeOptional<T>(codec: Codec<T>, document: T | null): Uint8Array | null {
  return document === null ? null : encode(codec, document)
}

function refuseStale({ operationId, version }: AdmissionOperation): never {
  throw new BrokerError(
    'stale_version',
    `move of operation ${operationId} refused: expected version ${version} still, got a later one; reread the operation and choose its next move`,
    { operationId, outcome: 'not_started' },
  )
}

/** What is fixed by the first move, of every kind of call. */
const Call = tagged('kind', {
  announced: Announcement,
  announced_call: AnnouncedCallTerms,
  brokered: Reservation,
  tool_call: ToolCallTerms,
})

function callDocument(call: OperationCall): Infer<typeof Call> {
  if (call.kind === 'tool_call') return { kind: 'tool_call', ...call.terms }
  if (call.kind === 'announced_call') return { kind: 'announced_call', ...call.terms }
  if (call.kind === 'announced') return { kind: 'announced', ...call.reservation }
  return { kind: 'brokered', ...call.reservation }
}

/** A call as its row holds it, with what its milestones added. */
function callOf(
  document: Infer<typeof Call>,
  added: Pick<OperationCall, 'record' | 'registration'>,
): OperationCall {
  if (document.kind === 'tool_call') {
    const { kind, ...terms } = document
    return { kind, terms, ...added }
  }
  if (document.kind === 'announced_call') {
    const { kind, ...terms } = document
    return { kind, terms, ...added }
  }
  if (document.kind === 'announced') {
    const { kind, ...reservation } = document
    return { kind, reservation, ...added }
  }
  const { kind, ...reservation } = document
  return { kind, reservation, ...added }
}

const calls = new RememberedDocuments(Call)
const attachments = new RememberedDocuments(AdmissionAttachments)
const registrations = new RememberedDocuments(AttemptRegistration)
const commits = new RememberedDocuments(DispatchCommit)

function operationOf(row: OperationRow): AdmissionOperation {
  const { operation_id: operationId } = row
  const document = calls.read(operationId, row.call)
  return {
    operationId,
    attachments: attachments.read(operationId, row.attachments),
    binding: document.binding,
    leaseEpoch: row.lease_epoch,
    callerPublicKey: 'agentId' in document ? document.agentId : document.request.callerPublicKey,
    state: row.state,
    version: row.version,
    createdAtUnixMs: row.created_at_unix_ms,
    updatedAtUnixMs: row.updated_at_unix_ms,
    call: callOf(document, {
      registration: registrations.readOptional(operationId, row.registration),
      record: readOptionalDocument(BrokerRecord, row.record),
    }),
    commit: commits.readOptional(operationId, row.dispatch_commit),
    lastError: row.last_error,
  }
}
