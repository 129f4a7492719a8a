// Owns: what a store tells whoever keeps word of its newest commit in another file.
// Must never: be told of a commit before it is on disk, or be left out of one.
// Source: the rollback anchor of the admission store.
import type { SqlParameters } from './transaction.js'

/** One row at a time, over a connection that changes nothing, or inside the transaction. */
export interface RowReader {
  get<Row>(sql: string, ...parameters: SqlParameters): Row | undefined
}

export interface CommitWitness {
  /**
   * Judges a store before anything may be written into it.
   * @throws BrokerError when the store is older than what was witnessed, or is another one.
   */
  assertNewest(reader: RowReader, storeId: string): void
  /** In the transaction, after its body: what will be so once it is committed. @throws to refuse the commit. */
  prepare(reader: RowReader): void
  /** The commit is on disk, and nobody was told yet. Never throws: what is committed stays so. */
  committed(): void
  /** The store has ended, in order or not. Safe to repeat. */
  close(): void
}
