// Owns: the proofs of possession that calls were started with, each once under its capability.
// Must never: forget one, also after its time: a clock that is set back would make it young again.
// Source: the replay of `chio.dpop_proof.v1`, by nonce and capability; sqlite.org/stricttables.html.
import type { PossessionProof } from '../../protocol/possession-proof.js'
import { appendOnly } from '../../store/schema.js'
import type { Transaction } from '../../store/transaction.js'
import type { Moment } from './owner-table.js'
import { insertRow } from './row-documents.js'

export const POSSESSION_SQL = `
CREATE TABLE possession_proofs (capability_id TEXT NOT NULL, nonce TEXT NOT NULL,
  operation_id TEXT NOT NULL REFERENCES operations, issued_at_unix_seconds INTEGER NOT NULL, commit_index INTEGER NOT NULL,
  PRIMARY KEY (capability_id, nonce)) STRICT;
${appendOnly('possession_proofs')}`

export class PossessionTables {
  readonly #tx: Transaction
  readonly #moment: Moment

  constructor(tx: Transaction, moment: Moment) {
    this.#tx = tx
    this.#moment = moment
  }

  isUsed({ body }: PossessionProof): boolean {
    const sql = 'SELECT 1 FROM possession_proofs WHERE capability_id = ? AND nonce = ?'
    return this.#tx.get(sql, body.capability_id, body.nonce) !== undefined
  }

  use({ body }: PossessionProof, operationId: string): void {
    const { commitIndex } = this.#moment.head
    const { capability_id, issued_at, nonce } = body
    insertRow(this.#tx, 'possession_proofs', capability_id, nonce, operationId, issued_at, commitIndex)
  }
}
