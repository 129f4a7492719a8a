// Owns: the administrators' operations that were done, and the approvals that each consumed.
// Must never: let an approval be consumed twice. Source: the governed administration of the broker's wire.
import type { AdminOperation } from '../../protocol/administration.js'
import { tokenDigest } from '../../protocol/approval-token.js'
import { BrokerError } from '../../protocol/errors.js'
import { appendOnly } from '../../store/schema.js'
import type { Transaction } from '../../store/transaction.js'
import type { AdminOutcome } from '../admission-store.js'
import { insertRow, type Reader } from './row-documents.js'

export const ADMINISTRATION_SQL = `
CREATE TABLE admin_operations (authorization_digest TEXT PRIMARY KEY, intent_digest TEXT NOT NULL, operation_id TEXT NOT NULL UNIQUE,
  commit_index INTEGER NOT NULL, grant_id TEXT NOT NULL, newly_revoked INTEGER NOT NULL) STRICT;
CREATE TABLE admin_approvals (token_digest TEXT PRIMARY KEY, approval_id TEXT NOT NULL UNIQUE, authorization_digest TEXT NOT NULL) STRICT;
${['admin_operations', 'admin_approvals'].map(appendOnly).join('\n')}`

const OUTCOME = `SELECT commit_index AS commitIndex, grant_id AS grantId, newly_revoked AS newlyRevoked,
  intent_digest AS intentDigest FROM admin_operations WHERE authorization_digest = ?`

interface OutcomeRow {
  readonly commitIndex: number
  readonly grantId: string
  readonly newlyRevoked: number
  readonly intentDigest: string
}

export class AdministrationReads {
  readonly #reader: Reader

  constructor(reader: Reader) {
    this.#reader = reader
  }

  /** @throws BrokerError `conflict` when the approvals were consumed for another request. */
  outcome(authorizationDigest: string, intentDigest: string): AdminOutcome | undefined {
    const row = this.#reader.get<OutcomeRow>(OUTCOME, authorizationDigest)
    if (row === undefined) return undefined
    const { commitIndex, grantId, newlyRevoked } = row
    if (row.intentDigest === intentDigest) return { commitIndex, grantId, newlyRevoked: newlyRevoked === 1 }
    throw new BrokerError(
      'conflict',
      'approvals refused: expected the request for which they were consumed, got another; approve it anew',
    )
  }
}

export class AdministrationTables extends AdministrationReads {
  readonly #tx: Transaction

  constructor(tx: Transaction) {
    super(tx)
    this.#tx = tx
  }

  consumeApprovals(operation: AdminOperation, outcome: AdminOutcome): void {
    const { authorization, authorizationDigest: digest, intentDigest, operationId } = operation
    const answer = [outcome.commitIndex, outcome.grantId, Number(outcome.newlyRevoked)]
    insertRow(this.#tx, 'admin_operations', digest, intentDigest, operationId, ...answer)
    for (const token of authorization.approvals)
      insertRow(this.#tx, 'admin_approvals', tokenDigest(token), token.id, digest)
  }
}
