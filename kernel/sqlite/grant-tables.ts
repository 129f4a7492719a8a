// Owns: the rows of grants and revocations.
// Must never: let a grant be overspent: the table refuses it by itself.
// Source: the grants of the kernel; sqlite.org/stricttables.html.
import { encode } from '../../protocol/codec.js'
import { Grant, grantDigest } from '../../protocol/grant.js'
import { appendOnly } from '../../store/schema.js'
import type { Transaction } from '../../store/transaction.js'
import type { ListFilter } from '../admission-store.js'
import type { StoredGrant } from '../operation/operation.js'
import { type Head, HEAD_SQL, type Moment } from './owner-table.js'
import { insertRow, readDocument, type Reader } from './row-documents.js'

export const GRANT_SQL = `
CREATE TABLE grants (grant_id TEXT PRIMARY KEY, caller_public_key TEXT NOT NULL, document BLOB NOT NULL,
  digest TEXT NOT NULL, maximum_executions INTEGER NOT NULL, held INTEGER NOT NULL CHECK (held >= 0), captured INTEGER NOT NULL
  CHECK (captured >= 0), revoked INTEGER NOT NULL CHECK (revoked IN (0, 1)), commit_index INTEGER NOT NULL, CHECK (held + captured <= maximum_executions)) STRICT;
CREATE TABLE revocations (revocation_id TEXT PRIMARY KEY, commit_index INTEGER NOT NULL, revoked_at_unix_ms INTEGER NOT NULL) STRICT;
${appendOnly('revocations')}`

interface GrantRow {
  readonly document: Uint8Array
  readonly digest: string
  readonly held: number
  readonly captured: number
  readonly revoked: number
  readonly commit_index: number
}

export class GrantReads {
  readonly #reader: Reader

  constructor(reader: Reader) {
    this.#reader = reader
  }

  find(grantId: string): StoredGrant | undefined {
    const row = this.#reader.get<GrantRow>('SELECT * FROM grants WHERE grant_id = ?', grantId)
    return row === undefined ? undefined : grantOf(row)
  }

  newest({ callerPublicKey: key, limit }: ListFilter): StoredGrant[] {
    const sql = `SELECT * FROM grants WHERE ? IS NULL OR caller_public_key = ? ORDER BY commit_index DESC LIMIT ?`
    return this.#reader.all<GrantRow>(sql, key, key, limit).map(grantOf)
  }

  revocation(ids: readonly string[]): { revoked: boolean; commitIndex: number } {
    const sql = 'SELECT 1 FROM revocations WHERE revocation_id = ?'
    const commitIndex = this.#reader.get<Head>(HEAD_SQL)?.revocationIndex ?? 0
    return { revoked: ids.some(id => this.#reader.get(sql, id) !== undefined), commitIndex }
  }
}

export class GrantTables extends GrantReads {
  readonly #tx: Transaction
  readonly #moment: Moment

  constructor(tx: Transaction, moment: Moment) {
    super(tx)
    this.#tx = tx
    this.#moment = moment
  }

  insert(grant: Grant): void {
    const { callerPublicKey, grantId, maximumExecutions } = grant
    const { commitIndex } = this.#moment.head
    const documents = [encode(Grant, grant), grantDigest(grant)]
    const counters = [maximumExecutions, 0, 0, 0, commitIndex]
    insertRow(this.#tx, 'grants', grantId, callerPublicKey, ...documents, ...counters)
    this.#touchRevocations()
  }

  /** @returns whether the grant was not revoked before. */
  revoke(grantId: string, revocationIds: readonly string[]): boolean {
    for (const id of revocationIds) this.revokeId(id)
    return this.#tx.run('UPDATE grants SET revoked = 1 WHERE grant_id = ? AND revoked = 0', grantId) === 1
  }

  /** @returns whether the id was not revoked before. */
  revokeId(id: string): boolean {
    const { head, nowUnixMs } = this.#moment
    const sql = 'INSERT INTO revocations VALUES (?, ?, ?) ON CONFLICT DO NOTHING'
    const newly = this.#tx.run(sql, id, head.commitIndex, nowUnixMs) === 1
    this.#touchRevocations()
    return newly
  }

  #touchRevocations(): void {
    this.#tx.run('UPDATE kernel_state SET revocation_index = commit_index')
  }
}

function grantOf(row: GrantRow): StoredGrant {
  return {
    grant: readDocument(Grant, row.document),
    digest: row.digest,
    held: row.held,
    captured: row.captured,
    revoked: row.revoked === 1,
    commitIndex: row.commit_index,
  }
}
