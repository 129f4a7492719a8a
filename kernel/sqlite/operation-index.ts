// Owns: by what an operation is found besides its id and its request: its attempt, its arguments, and whose reservation
// it still is.
// Must never: say that an operation may be moved. Source: sqlite.org/queryplanner.html.
import { ADMISSION_STATES, STATE_FACTS } from '../../protocol/admission-states.js'
import { MAXIMUM_SHARING } from '../../protocol/operation-rpc.js'
import { appendOnly } from '../../store/schema.js'
import type { Transaction } from '../../store/transaction.js'
import type { AdmissionOperation } from '../operation/operation.js'
import { insertRow, type Reader } from './row-documents.js'

const NOT_COMMITTED = ADMISSION_STATES.filter(state => STATE_FACTS[state].dispatch === 'not_committed')
  .map(state => `'${state}'`)
  .join(', ')
/** What may still be started, or expires; word for word the condition of its index. */
const RESERVED = `settled = 0 AND state IN (${NOT_COMMITTED})`

/** Whose effect is not known yet, or never will be by itself: word for word the condition of the index. */
const UNRESOLVED = "settled = 0 OR state = 'outcome_unknown_after_dispatch'"

export const OPERATION_INDEX_SQL = `
CREATE TABLE operation_index (operation_id TEXT PRIMARY KEY REFERENCES operations, attempt_id TEXT UNIQUE) STRICT;
CREATE INDEX operations_unresolved ON operations (argument_hash, created_at_unix_ms) WHERE ${UNRESOLVED};
CREATE INDEX operations_reserved ON operations (caller_public_key) WHERE ${RESERVED};
${appendOnly('operation_index')}`

/** Read in the order of the index, newest first, and no further than the answer goes: also among a million alike. */
export const SHARING_SQL = `SELECT operation_id AS id FROM operations WHERE argument_hash = ? AND (${UNRESOLVED}) AND operation_id <> ?
  ORDER BY created_at_unix_ms DESC LIMIT ${MAXIMUM_SHARING}`

export const OPEN_RESERVATIONS_SQL = `SELECT count(*) AS count FROM operations WHERE caller_public_key = ? AND ${RESERVED}`

export class OperationIndexReads {
  readonly #reader: Reader

  constructor(reader: Reader) {
    this.#reader = reader
  }

  /** The id of the operation that announced an attempt. */
  ofAttempt(attemptId: string): string | undefined {
    const sql = 'SELECT operation_id AS id FROM operation_index WHERE attempt_id = ?'
    return this.#reader.get<{ id: string }>(sql, attemptId)?.id
  }

  /** How many reservations of a caller are open: neither started nor taken back. */
  openReservations(callerPublicKey: string): number {
    return this.#reader.get<{ count: number }>(OPEN_RESERVATIONS_SQL, callerPublicKey)?.count ?? 0
  }

  /** Other operations with the same arguments that are not resolved, newest first. */
  sharing({ binding, operationId }: Pick<AdmissionOperation, 'binding' | 'operationId'>): string[] {
    const { action_parameter_hash: hash } = binding.request_binding
    return this.#reader.all<{ id: string }>(SHARING_SQL, hash, operationId).map(({ id }) => id)
  }
}

export class OperationIndex extends OperationIndexReads {
  readonly #tx: Transaction

  constructor(tx: Transaction) {
    super(tx)
    this.#tx = tx
  }

  insert({ operationId }: AdmissionOperation, attemptId: string | null): void {
    insertRow(this.#tx, 'operation_index', operationId, attemptId)
  }
}
