// Owns: the approvals and denials that were given for operations, as their approvers signed them.
// Must never: lose or change one, or keep one token or one id twice.
// Source: single use of governed approval tokens; sqlite.org/stricttables.html.
import { GovernedApprovalToken, tokenDigest } from '../../protocol/approval-token.js'
import { encode } from '../../protocol/codec.js'
import { appendOnly } from '../../store/schema.js'
import type { Transaction } from '../../store/transaction.js'
import type { Moment } from './owner-table.js'
import { insertRow, readDocument, type Reader } from './row-documents.js'

export const APPROVAL_SQL = `
CREATE TABLE operation_approvals (token_digest TEXT PRIMARY KEY, approval_id TEXT NOT NULL UNIQUE,
  operation_id TEXT NOT NULL REFERENCES operations, approver TEXT NOT NULL, document BLOB NOT NULL,
  commit_index INTEGER NOT NULL, recorded_at_unix_ms INTEGER NOT NULL) STRICT;
CREATE INDEX operation_approvals_of ON operation_approvals (operation_id, commit_index);
${appendOnly('operation_approvals')}`

export class ApprovalReads {
  readonly #reader: Reader

  constructor(reader: Reader) {
    this.#reader = reader
  }

  /** Every word that was given for an operation, the first one first. */
  of(operationId: string): GovernedApprovalToken[] {
    const sql = 'SELECT document FROM operation_approvals WHERE operation_id = ? ORDER BY commit_index'
    const rows = this.#reader.all<{ readonly document: Uint8Array }>(sql, operationId)
    return rows.map(({ document }) => readDocument(GovernedApprovalToken, document))
  }

  /** Of which operation an approval of this id was given, if any was. */
  operationOf(approvalId: string): string | undefined {
    const sql = 'SELECT operation_id AS id FROM operation_approvals WHERE approval_id = ?'
    return this.#reader.get<{ readonly id: string }>(sql, approvalId)?.id
  }
}

export class ApprovalTables extends ApprovalReads {
  readonly #tx: Transaction
  readonly #moment: Moment

  constructor(tx: Transaction, moment: Moment) {
    super(tx)
    this.#tx = tx
    this.#moment = moment
  }

  insert(operationId: string, token: GovernedApprovalToken): void {
    const owner = [token.id, operationId, token.approver, encode(GovernedApprovalToken, token)]
    const { head, nowUnixMs } = this.#moment
    insertRow(this.#tx, 'operation_approvals', tokenDigest(token), ...owner, head.commitIndex, nowUnixMs)
  }
}
