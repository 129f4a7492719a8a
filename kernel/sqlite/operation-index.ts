// Owns: by what an operation is found besides its id and its request: its attempt, its arguments, and whose reservation
// it still is.
// Must never: say that an operation may be moved. Source: sqlite.org/queryplanner.html.
import { ADMISSION_STATES, STATE_FACTS } from '../../protocol/admission-states.js'
import { MAXIMUM_SHARING } from '../../protocol/operation-rpc.js'
import { appendOnly } from '../../store/schema.js'
import type { Transaction } from '../../store/transaction.js'
import type { AdmissionOperation } from '../operation/operation.js'
import { insertRow, type Reader } from './row-documents.js'

/** What may still be started, or expires. */
const RESERVED = `settled = 0 AND state IN ('prepared', 'budget_authorized', 'ready_to_dispatch')`

export const OPERATION_INDEX_SQL = `
CREATE INDEX operations_reserved ON operations (caller_public_key) WHERE ${RESERVED};
CREATE TABLE operation_index (operation_id TEXT PRIMARY KEY REFERENCES operations, attempt_id TEXT UNIQUE, argument_hash TEXT NOT NULL) STRICT;
CREATE INDEX operations_of_arguments ON operation_index (argument_hash);
${appendOnly('operation_index')}`

/** Whose effect is not known yet, or never will be by itself. */
const UNRESOLVED = ADMISSION_STATES.filter(
  state => !STATE_FACTS[state].terminal || state === 'outcome_unknown_after_dispatch',
)
  .map(state => `'${state}'`)
  .join(', ')
const SHARING = `SELECT operation_id AS id FROM operation_index JOIN operations USING (operation_id)
  WHERE argument_hash = ? AND operation_id <> ? AND state IN (${UNRESOLVED})
  ORDER BY created_at_unix_ms DESC LIMIT ${MAXIMUM_SHARING}`

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
    const sql = `SELECT count(*) AS count FROM operations WHERE caller_public_key = ? AND ${RESERVED}`
    return this.#reader.get<{ count: number }>(sql, callerPublicKey)?.count ?? 0
  }

  /** Other operations with the same arguments that are not resolved, newest first. */
  sharing({ binding, operationId }: Pick<AdmissionOperation, 'binding' | 'operationId'>): string[] {
    const { action_parameter_hash: hash } = binding.request_binding
    return this.#reader.all<{ id: string }>(SHARING, hash, operationId).map(({ id }) => id)
  }
}

export class OperationIndex extends OperationIndexReads {
  readonly #tx: Transaction

  constructor(tx: Transaction) {
    super(tx)
    this.#tx = tx
  }

  insert({ binding, operationId }: AdmissionOperation, attemptId: string | null): void {
    const { action_parameter_hash: hash } = binding.request_binding
    insertRow(this.#tx, 'operation_index', operationId, attemptId, hash)
  }
}
