// Owns: the rows of tool outcomes: one an operation, inserted once, its raw bytes sealed.
// Must never: replace an outcome or lose one: the table refuses both by itself.
// Source: the tool-outcome store (insert once per operation).
import { encode } from '../../protocol/codec.js'
import { ToolOutcome } from '../../protocol/tool-outcome.js'
import { appendOnly } from '../../store/schema.js'
import type { Transaction } from '../../store/transaction.js'
import type { SealedRequest } from '../operation/operation.js'
import { insertRow, readDocument, type Reader } from './row-documents.js'

export const OUTCOME_SQL = `
CREATE TABLE tool_outcomes (operation_id TEXT PRIMARY KEY REFERENCES operations, outcome_id TEXT NOT NULL UNIQUE,
  document BLOB NOT NULL, nonce BLOB NOT NULL, ciphertext BLOB NOT NULL) STRICT;
${appendOnly('tool_outcomes')}`

/** A recorded outcome, and its raw bytes as they rest. */
export interface StoredOutcome {
  readonly outcome: ToolOutcome
  readonly sealed: SealedRequest
}

export class OutcomeReads {
  readonly #reader: Reader

  constructor(reader: Reader) {
    this.#reader = reader
  }

  ofOperation(operationId: string): StoredOutcome | undefined {
    const sql = 'SELECT document, nonce, ciphertext FROM tool_outcomes WHERE operation_id = ?'
    const row = this.#reader.get<SealedRequest & { document: Uint8Array }>(sql, operationId)
    if (row === undefined) return undefined
    const { ciphertext, document, nonce } = row
    return { outcome: readDocument(ToolOutcome, document), sealed: { ciphertext, nonce } }
  }
}

export class OutcomeTables extends OutcomeReads {
  readonly #tx: Transaction

  constructor(tx: Transaction) {
    super(tx)
    this.#tx = tx
  }

  insert({ outcome, sealed }: StoredOutcome): void {
    const { operation_id, outcome_id } = outcome
    const bytes = [encode(ToolOutcome, outcome), sealed.nonce, sealed.ciphertext]
    insertRow(this.#tx, 'tool_outcomes', operation_id, outcome_id, ...bytes)
  }
}
