// Owns: the capability tokens that calls were judged under, as they were admitted: ancestors for tokens that are delegated
// from them, and the one content that an id stands for.
// Must never: let an id come to name another token, or forget one. Source: the capability snapshots of the kernel.
import { CapabilityToken, capabilityTokenHash } from '../../protocol/capability-token.js'
import { encode } from '../../protocol/codec.js'
import { appendOnly } from '../../store/schema.js'
import type { Transaction } from '../../store/transaction.js'
import type { Moment } from './owner-table.js'
import { insertRow, readDocument, type Reader } from './row-documents.js'

export const CAPABILITY_SQL = `
CREATE TABLE capability_snapshots (capability_id TEXT PRIMARY KEY, digest TEXT NOT NULL, document BLOB NOT NULL,
  commit_index INTEGER NOT NULL) STRICT;
${appendOnly('capability_snapshots')}`

export class CapabilityReads {
  readonly #reader: Reader

  constructor(reader: Reader) {
    this.#reader = reader
  }

  find(capabilityId: string): CapabilityToken | undefined {
    const sql = 'SELECT document FROM capability_snapshots WHERE capability_id = ?'
    const row = this.#reader.get<{ document: Uint8Array }>(sql, capabilityId)
    return row === undefined ? undefined : readDocument(CapabilityToken, row.document)
  }
}

export class CapabilityTables extends CapabilityReads {
  readonly #tx: Transaction
  readonly #moment: Moment

  constructor(tx: Transaction, moment: Moment) {
    super(tx)
    this.#tx = tx
    this.#moment = moment
  }

  /** @returns false when the id names another token already. */
  remember(token: CapabilityToken): boolean {
    const digest = capabilityTokenHash(token)
    const sql = 'SELECT digest FROM capability_snapshots WHERE capability_id = ?'
    const known = this.#tx.get<{ digest: string }>(sql, token.id)
    if (known !== undefined) return known.digest === digest
    const { commitIndex } = this.#moment.head
    insertRow(this.#tx, 'capability_snapshots', token.id, digest, encode(CapabilityToken, token), commitIndex)
    return true
  }
}
