// Owns: the invocation contexts under which an operation was judged, one after the other.
// Must never: change or lose one: a later context is held against the last one.
// Source: the refreshed context of the kernel's caller API.
import { encode } from '../../protocol/codec.js'
import { InvocationContext } from '../../protocol/invocation-context.js'
import { appendOnly } from '../../store/schema.js'
import type { Transaction } from '../../store/transaction.js'
import type { Moment } from './owner-table.js'
import { insertRow, readDocument } from './row-documents.js'

export const CONTEXT_SQL = `
CREATE TABLE invocation_contexts (operation_id TEXT NOT NULL REFERENCES operations, commit_index INTEGER NOT NULL,
  document BLOB NOT NULL, PRIMARY KEY (operation_id, commit_index)) STRICT;
${appendOnly('invocation_contexts')}`

export class ContextTables {
  readonly #tx: Transaction
  readonly #moment: Moment

  constructor(tx: Transaction, moment: Moment) {
    this.#tx = tx
    this.#moment = moment
  }

  last(operationId: string): InvocationContext | undefined {
    const sql =
      'SELECT document FROM invocation_contexts WHERE operation_id = ? ORDER BY commit_index DESC LIMIT 1'
    const row = this.#tx.get<{ document: Uint8Array }>(sql, operationId)
    return row === undefined ? undefined : readDocument(InvocationContext, row.document)
  }

  append(operationId: string, context: InvocationContext): void {
    const { commitIndex } = this.#moment.head
    insertRow(this.#tx, 'invocation_contexts', operationId, commitIndex, encode(InvocationContext, context))
  }
}
