// Owns: the kernel's tables in SQLite and every statement over them: the one file of kernel/ that holds SQL.
// Must never: decide what may be moved; the tables refuse by themselves only a second ending, an overspent grant
// and a changed history. Source: sqlite.org/stricttables.html; the admission store's mutation fence.
import { ADMISSION_STATES, type AdmissionState, STATE_FACTS } from '../protocol/admission-states.js'
import { type AdminOperation, tokenDigest } from '../protocol/administration.js'
import type { Clock } from '../protocol/clock.js'
import { encode } from '../protocol/codec.js'
import { BrokerError } from '../protocol/errors.js'
import { type Grant, Grant as GrantCodec, grantDigest } from '../protocol/grant.js'
import { openStore } from '../store/open.js'
import { appendOnly, type StoreSchema } from '../store/schema.js'
import type { Cutpoint, Store } from '../store/store.js'
import type { SqlValue, Transaction } from '../store/transaction.js'
import type { AdminOutcome, ListFilter } from './admission-store.js'
import { type AdmissionOperation, Reservation, type SealedRequest, type StoredGrant } from './operation.js'
import * as rows from './store-rows.js'
import { uuidV7 } from './uuid-v7.js'

const quoted = (states: readonly string[]): string => states.map(state => `'${state}'`).join(', ')
const STATES = quoted(ADMISSION_STATES)
const ENDED = quoted(ADMISSION_STATES.filter(state => STATE_FACTS[state].terminal))

export const KERNEL_STORE_SCHEMA: StoreSchema = {
  applicationId: 0x43_48_4b_01,
  userVersion: 2,
  schemaSql: `
CREATE TABLE kernel_state (singleton INTEGER PRIMARY KEY CHECK (singleton = 1), owner_epoch INTEGER NOT NULL, lease_id TEXT NOT NULL,
  commit_index INTEGER NOT NULL, revocation_index INTEGER NOT NULL, live_nonces INTEGER NOT NULL CHECK (live_nonces >= 0)) STRICT;
CREATE TABLE owner_leases (owner_epoch INTEGER PRIMARY KEY, lease_id TEXT NOT NULL, opened_at_unix_ms INTEGER NOT NULL) STRICT;
CREATE TABLE grants (grant_id TEXT PRIMARY KEY, caller_public_key TEXT NOT NULL, document BLOB NOT NULL,
  digest TEXT NOT NULL, maximum_executions INTEGER NOT NULL, held INTEGER NOT NULL CHECK (held >= 0), captured INTEGER NOT NULL
  CHECK (captured >= 0), revoked INTEGER NOT NULL CHECK (revoked IN (0, 1)), commit_index INTEGER NOT NULL, CHECK (held + captured <= maximum_executions)) STRICT;
CREATE TABLE revocations (revocation_id TEXT PRIMARY KEY, commit_index INTEGER NOT NULL, revoked_at_unix_ms INTEGER NOT NULL) STRICT;
CREATE TABLE operations (operation_id TEXT PRIMARY KEY, namespace_digest TEXT NOT NULL, request_id TEXT NOT NULL,
  caller_public_key TEXT NOT NULL, state TEXT NOT NULL CHECK (state IN (${STATES})), version INTEGER NOT NULL,
  settled INTEGER NOT NULL, created_at_unix_ms INTEGER NOT NULL, updated_at_unix_ms INTEGER NOT NULL,
  reservation BLOB NOT NULL, registration BLOB, dispatch_commit BLOB, record BLOB, last_error TEXT,
  UNIQUE (namespace_digest, request_id)) STRICT;
CREATE INDEX operations_open ON operations (created_at_unix_ms) WHERE settled = 0;
CREATE INDEX operations_newest ON operations (created_at_unix_ms);
CREATE INDEX operations_of_caller ON operations (caller_public_key, created_at_unix_ms);
CREATE TRIGGER operations_end_once BEFORE UPDATE ON operations WHEN OLD.state IN (${ENDED})
  BEGIN SELECT RAISE(ABORT, 'an operation ends once'); END;
CREATE TABLE history (operation_id TEXT NOT NULL, version INTEGER NOT NULL, from_state TEXT, to_state TEXT NOT NULL,
  cause TEXT NOT NULL, commit_index INTEGER NOT NULL, owner_epoch INTEGER NOT NULL, recorded_at_unix_ms INTEGER NOT NULL, PRIMARY KEY (operation_id, version)) STRICT;
CREATE TABLE state_counts (state TEXT PRIMARY KEY, count INTEGER NOT NULL CHECK (count >= 0)) STRICT;
CREATE TABLE holds (hold_id TEXT PRIMARY KEY, operation_id TEXT NOT NULL UNIQUE REFERENCES operations,
  grant_id TEXT NOT NULL REFERENCES grants, nonce_id TEXT NOT NULL UNIQUE, authorize_event_id TEXT NOT NULL UNIQUE,
  capture_event_id TEXT NOT NULL UNIQUE, reverse_event_id TEXT NOT NULL UNIQUE,
  state TEXT NOT NULL CHECK (state IN ('reserved', 'captured', 'reversed')), commit_index INTEGER NOT NULL) STRICT;
CREATE TRIGGER holds_end_once BEFORE UPDATE ON holds WHEN OLD.state <> 'reserved' BEGIN SELECT RAISE(ABORT, 'a hold ends once'); END;
CREATE TRIGGER holds_refuses_delete BEFORE DELETE ON holds BEGIN SELECT RAISE(ABORT, 'holds are kept'); END;
CREATE TABLE retained_requests (operation_id TEXT PRIMARY KEY REFERENCES operations, nonce BLOB NOT NULL, ciphertext BLOB NOT NULL) STRICT;
CREATE TABLE admin_operations (authorization_digest TEXT PRIMARY KEY, intent_digest TEXT NOT NULL, operation_id TEXT NOT NULL UNIQUE,
  commit_index INTEGER NOT NULL, grant_id TEXT NOT NULL, newly_revoked INTEGER NOT NULL) STRICT;
CREATE TABLE admin_approvals (token_digest TEXT PRIMARY KEY, approval_id TEXT NOT NULL UNIQUE, authorization_digest TEXT NOT NULL) STRICT;
${['owner_leases', 'revocations', 'history', 'admin_operations', 'admin_approvals'].map(appendOnly).join('\n')}`,
}

const OPERATION = 'SELECT * FROM operations WHERE operation_id = ?'
const REQUEST = 'SELECT * FROM operations WHERE namespace_digest = ? AND request_id = ?'
const GRANT = 'SELECT * FROM grants WHERE grant_id = ?'
const ADMIN = `SELECT commit_index AS commitIndex, grant_id AS grantId, newly_revoked AS newlyRevoked,
  intent_digest AS intentDigest FROM admin_operations WHERE authorization_digest = ?`
const HEAD =
  'SELECT commit_index AS commitIndex, revocation_index AS revocationIndex, live_nonces AS liveNonces FROM kernel_state'
const MOVE = `UPDATE operations SET state = ?, version = ?, settled = ?, updated_at_unix_ms = ?,
  registration = coalesce(?, registration), dispatch_commit = coalesce(?, dispatch_commit),
  record = coalesce(?, record), last_error = coalesce(?, last_error)
  WHERE operation_id = ? AND version = ? AND state = ?`

/** What can be read by key, inside a transaction and outside. */
class TableReads {
  readonly #reader: Pick<Transaction, 'get'>

  constructor(reader: Pick<Transaction, 'get'>) {
    this.#reader = reader
  }

  operation(operationId: string): AdmissionOperation | undefined {
    return rows.optional(rows.operationOf, this.#reader.get<rows.OperationRow>(OPERATION, operationId))
  }

  request(namespaceDigest: string, requestId: string): AdmissionOperation | undefined {
    const row = this.#reader.get<rows.OperationRow>(REQUEST, namespaceDigest, requestId)
    return rows.optional(rows.operationOf, row)
  }

  grant(grantId: string): StoredGrant | undefined {
    return rows.optional(rows.grantOf, this.#reader.get<rows.GrantRow>(GRANT, grantId))
  }

  adminOutcome(authorizationDigest: string, intentDigest: string): AdminOutcome | undefined {
    return rows.adminOutcomeOf(this.#reader.get<rows.AdminRow>(ADMIN, authorizationDigest), intentDigest)
  }
}

/** The tables of an open store: reads, and writes inside a fenced transaction. */
export class SqliteAdmissionTables extends TableReads {
  readonly storeId: string
  readonly owner: rows.Owner
  readonly #store: Store
  readonly #clock: Clock

  constructor(store: Store, clock: Clock, owner: rows.Owner) {
    super(store)
    this.storeId = store.storeId
    this.owner = owner
    this.#store = store
    this.#clock = clock
  }

  newestOperations({ callerPublicKey: key, limit }: ListFilter): AdmissionOperation[] {
    const newest = 'ORDER BY created_at_unix_ms DESC LIMIT ?'
    if (key === null) return this.#operations(`SELECT * FROM operations ${newest}`, limit)
    return this.#operations(`SELECT * FROM operations WHERE caller_public_key = ? ${newest}`, key, limit)
  }

  openOperations(): AdmissionOperation[] {
    return this.#operations('SELECT * FROM operations WHERE settled = 0')
  }

  #operations(sql: string, ...values: SqlValue[]): AdmissionOperation[] {
    return this.#store.all<rows.OperationRow>(sql, ...values).map(rows.operationOf)
  }

  stateCounts(): { state: AdmissionState; count: number }[] {
    return this.#store.all('SELECT state, count FROM state_counts WHERE count > 0 ORDER BY state')
  }

  retainedRequest(operationId: string): SealedRequest | undefined {
    const sql = 'SELECT nonce, ciphertext FROM retained_requests WHERE operation_id = ?'
    return this.#store.get(sql, operationId)
  }

  newestGrants({ callerPublicKey: key, limit }: ListFilter) {
    const sql = `SELECT * FROM grants WHERE ? IS NULL OR caller_public_key = ? ORDER BY commit_index DESC LIMIT ?`
    return this.#store.all<rows.GrantRow>(sql, key, key, limit).map(rows.grantOf)
  }

  readRevocation(ids: readonly string[]): { revoked: boolean; commitIndex: number } {
    const sql = 'SELECT 1 FROM revocations WHERE revocation_id = ?'
    const commitIndex = this.#store.get<rows.Head>(HEAD)?.revocationIndex ?? 0
    return { revoked: ids.some(id => this.#store.get(sql, id) !== undefined), commitIndex }
  }

  /** One durable commit. It takes the next commit index, and only while this owner holds the store. */
  transaction<T>(name: string, body: (move: SqliteMove) => T): Promise<T> {
    return this.#store.transaction(name, tx => {
      const fence =
        'UPDATE kernel_state SET commit_index = commit_index + 1 WHERE owner_epoch = ? AND lease_id = ?'
      if (tx.run(fence, this.owner.ownerEpoch, this.owner.leaseId) !== 1) {
        const expected = `expected owner epoch ${this.owner.ownerEpoch}, got a later one`
        throw new BrokerError('fenced', `write refused: ${expected}; this process must end`)
      }
      return body(new SqliteMove(tx, this.owner, this.#clock.unixMs()))
    })
  }

  close(): void {
    this.#store.close()
  }
}

/** One open transaction. */
export class SqliteMove extends TableReads {
  readonly nowUnixMs: number
  readonly head: rows.Head
  readonly #tx: Transaction
  readonly #owner: rows.Owner

  constructor(tx: Transaction, owner: rows.Owner, nowUnixMs: number) {
    super(tx)
    this.#tx = tx
    this.#owner = owner
    this.nowUnixMs = nowUnixMs
    this.head = tx.get<rows.Head>(HEAD) as rows.Head
  }

  insertGrant(grant: Grant): void {
    const { callerPublicKey, grantId, maximumExecutions } = grant
    const documents = [encode(GrantCodec, grant), grantDigest(grant)]
    this.#insert(
      'grants',
      grantId,
      callerPublicKey,
      ...documents,
      maximumExecutions,
      0,
      0,
      0,
      this.head.commitIndex,
    )
    this.#touchRevocations()
  }

  /** @returns whether the grant was not revoked before. */
  revoke(grantId: string, revocationIds: readonly string[]): boolean {
    const sql = 'INSERT INTO revocations VALUES (?, ?, ?) ON CONFLICT DO NOTHING'
    for (const id of revocationIds) this.#tx.run(sql, id, this.head.commitIndex, this.nowUnixMs)
    this.#touchRevocations()
    return this.#tx.run('UPDATE grants SET revoked = 1 WHERE grant_id = ? AND revoked = 0', grantId) === 1
  }

  consumeApprovals(operation: AdminOperation, outcome: AdminOutcome): void {
    const { authorization, authorizationDigest: digest, intentDigest, operationId } = operation
    const answer = [outcome.commitIndex, outcome.grantId, Number(outcome.newlyRevoked)]
    this.#insert('admin_operations', digest, intentDigest, operationId, ...answer)
    for (const token of authorization.approvals)
      this.#insert('admin_approvals', tokenDigest(token), token.id, digest)
  }

  /** Inserts an operation as prepared, version 1. */
  insertOperation(reservation: Reservation): void {
    const { binding, request } = reservation
    const ids = [binding.operation_id, binding.request_namespace_digest, binding.request_id]
    const facts = ['prepared', 1, 0, this.nowUnixMs, this.nowUnixMs, encode(Reservation, reservation)]
    this.#insert('operations', ...ids, request.callerPublicKey, ...facts, null, null, null, null)
    this.#count('prepared', 1)
  }

  insertHold({ answer, binding, ids, request }: Reservation): void {
    const owner = [binding.operation_id, request.grantId, answer.executionNonce.nonce.nonce_id]
    const events = [ids.authorizeEventId, ids.captureEventId, ids.reverseEventId]
    this.#insert('holds', ids.holdId, ...owner, ...events, 'reserved', this.head.commitIndex)
    this.#tx.changeOne('UPDATE grants SET held = held + 1 WHERE grant_id = ?', request.grantId)
    this.#tx.run('UPDATE kernel_state SET live_nonces = live_nonces + 1')
  }

  /** Captures or reverses the one hold, and with it ends its nonce's reservation. */
  endHold({ operationId, reservation }: AdmissionOperation, state: 'captured' | 'reversed'): void {
    const end = `UPDATE holds SET state = ?, commit_index = ? WHERE operation_id = ? AND state = 'reserved'`
    this.#tx.changeOne(end, state, this.head.commitIndex, operationId)
    const give = 'UPDATE grants SET held = held - 1, captured = captured + ? WHERE grant_id = ?'
    this.#tx.changeOne(give, state === 'captured' ? 1 : 0, reservation.request.grantId)
    this.#tx.run('UPDATE kernel_state SET live_nonces = live_nonces - 1')
  }

  retain(operationId: string, { ciphertext, nonce }: SealedRequest): void {
    this.#insert('retained_requests', operationId, nonce, ciphertext)
  }

  dropRetained(operationId: string): void {
    this.#tx.run('DELETE FROM retained_requests WHERE operation_id = ?', operationId)
  }

  recordHistory({ cause, from, operationId, to, version }: rows.HistoryEntry): void {
    const stamp = [this.head.commitIndex, this.#owner.ownerEpoch, this.nowUnixMs]
    this.#insert('history', operationId, version, from, to, cause, ...stamp)
  }

  /** The compare-and-set: version and state must be those that were judged. */
  changeOperation(was: AdmissionOperation, change: rows.OperationChange): void {
    const { commit, lastError, record, registration, to, version } = change
    const documents = [registration, commit, record, lastError] as const
    const settled = STATE_FACTS[to].terminal ? 1 : 0
    const old = [was.operationId, was.version, was.state] as const
    this.#tx.changeOne(MOVE, to, version, settled, this.nowUnixMs, ...documents, ...old)
    if (to === was.state) return
    this.#count(was.state, -1)
    this.#count(to, 1)
  }

  #touchRevocations(): void {
    this.#tx.run('UPDATE kernel_state SET revocation_index = commit_index')
  }

  #insert(table: string, ...values: SqlValue[]): void {
    this.#tx.run(`INSERT INTO ${table} VALUES (${values.map(() => '?').join(', ')})`, ...values)
  }

  #count(state: AdmissionState, by: 1 | -1): void {
    const sql = `INSERT INTO state_counts VALUES (?, max(0, ?)) ON CONFLICT DO UPDATE SET count = count + ?`
    this.#tx.run(sql, state, by, by)
  }
}

/** Opens the provisioned tables as their next owner. @throws BrokerError `another_instance` while one serves them. */
export async function openTables(
  path: string,
  options: { readonly clock: Clock; readonly ownerWaitMs?: number; readonly atCutpoint?: Cutpoint },
): Promise<SqliteAdmissionTables> {
  const store = await openStore(path, KERNEL_STORE_SCHEMA, options)
  const leaseId = uuidV7(options.clock.unixMs())
  try {
    const nowUnixMs = options.clock.unixMs()
    const ownerEpoch = await store.transaction('owner_opened', tx => takeOver(tx, leaseId, nowUnixMs))
    return new SqliteAdmissionTables(store, options.clock, { ownerEpoch, leaseId })
  } catch (error) {
    store.close()
    throw error
  }
}

function takeOver(tx: Transaction, leaseId: string, nowUnixMs: number): number {
  const next = 'ON CONFLICT DO UPDATE SET owner_epoch = owner_epoch + 1, lease_id = excluded.lease_id'
  tx.run(`INSERT INTO kernel_state VALUES (1, 1, ?, 0, 0, 0) ${next}`, leaseId)
  tx.run('INSERT INTO owner_leases SELECT owner_epoch, lease_id, ? FROM kernel_state', nowUnixMs)
  return tx.get<{ epoch: number }>('SELECT owner_epoch AS epoch FROM kernel_state')?.epoch as number
}
