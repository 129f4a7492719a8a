// Owns: what administrators stated of operations afterwards; nothing of it is ever changed or removed.
// Must never: move an operation: a statement stands beside its end, it does not become one.
// Source: the governed administrator authorization.
import { encode } from '../../protocol/codec.js'
import { MAXIMUM_RECONCILIATIONS, Reconciliation } from '../../protocol/operation-rpc.js'
import { appendOnly } from '../../store/schema.js'
import type { Transaction } from '../../store/transaction.js'
import type { Moment } from './owner-table.js'
import { insertRow, readDocument, type Reader } from './row-documents.js'

export const RECONCILIATION_SQL = `
CREATE TABLE reconciliations (commit_index INTEGER PRIMARY KEY, authorization_digest TEXT NOT NULL UNIQUE,
  operation_id TEXT NOT NULL REFERENCES operations, document BLOB NOT NULL) STRICT;
CREATE INDEX reconciliations_of_operation ON reconciliations (operation_id);
${appendOnly('reconciliations')}`

export class ReconciliationReads {
  readonly #reader: Reader

  constructor(reader: Reader) {
    this.#reader = reader
  }

  /** The newest statements of one operation, oldest first. */
  of(operationId: string): Reconciliation[] {
    const sql = `SELECT document FROM reconciliations WHERE operation_id = ? ORDER BY commit_index DESC LIMIT ${MAXIMUM_RECONCILIATIONS}`
    const rows = this.#reader.all<{ document: Uint8Array }>(sql, operationId)
    return rows.map(({ document }) => readDocument(Reconciliation, document)).reverse()
  }
}

export class ReconciliationTable {
  readonly #tx: Transaction
  readonly #moment: Moment

  constructor(tx: Transaction, moment: Moment) {
    this.#tx = tx
    this.#moment = moment
  }

  insert(reconciliation: Reconciliation, authorizationDigest: string): void {
    const { operationId } = reconciliation.stated
    const document = encode(Reconciliation, reconciliation)
    const { commitIndex } = this.#moment.head
    insertRow(this.#tx, 'reconciliations', commitIndex, authorizationDigest, operationId, document)
  }
}
