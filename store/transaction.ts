// Owns: the statements of one transaction, and the cache of prepared ones.
// Must never: outlive its transaction, or hand out a better-sqlite3 object.
import type Database from 'better-sqlite3'
import { BrokerError } from '../protocol/errors.js'

export type SqlValue = number | bigint | string | Uint8Array | null
/** Positional values, or one object for `@name` placeholders. */
export type SqlParameters = readonly SqlValue[] | readonly [Readonly<Record<string, SqlValue>>]

/** What the body of `Store.transaction` works with. Every call throws once the body has ended. */
export interface Transaction {
  get<Row>(sql: string, ...parameters: SqlParameters): Row | undefined
  all<Row>(sql: string, ...parameters: SqlParameters): Row[]
  /** @returns how many rows the statement itself changed; triggers are not counted. */
  run(sql: string, ...parameters: SqlParameters): number
  /** @throws BrokerError `conflict` unless exactly one row changed: the compare-and-set of a state move. */
  changeOne(sql: string, ...parameters: SqlParameters): void
}

/** Texts come from code, so few are ever seen; the bound only catches a text that is built from values. */
const MAXIMUM_CACHED_STATEMENTS = 512

export class StatementCache {
  readonly #database: Database.Database
  readonly #statements = new Map<string, Database.Statement<unknown[]>>()

  constructor(database: Database.Database) {
    this.#database = database
  }

  prepare(sql: string): Database.Statement<unknown[]> {
    const known = this.#statements.get(sql)
    if (known !== undefined) return known
    if (this.#statements.size >= MAXIMUM_CACHED_STATEMENTS) {
      throw new RangeError(
        `statements: expected at most ${MAXIMUM_CACHED_STATEMENTS} texts, got one more; bind values`,
      )
    }
    const statement = this.#database.prepare<unknown[]>(sql)
    this.#statements.set(sql, statement)
    return statement
  }
}

export class OpenTransaction implements Transaction {
  readonly #statements: StatementCache
  #open = true
  #boundBytes = 0
  #hasWritten = false

  constructor(statements: StatementCache) {
    this.#statements = statements
  }

  get<Row>(sql: string, ...parameters: SqlParameters): Row | undefined {
    return this.#prepare(sql).get(...parameters) as Row | undefined
  }

  all<Row>(sql: string, ...parameters: SqlParameters): Row[] {
    return this.#prepare(sql).all(...parameters) as Row[]
  }

  run(sql: string, ...parameters: SqlParameters): number {
    for (const value of parameters) {
      if (value instanceof Uint8Array) this.#boundBytes += value.byteLength
    }
    const { changes } = this.#prepare(sql).run(...parameters)
    if (changes > 0) this.#hasWritten = true
    return changes
  }

  changeOne(sql: string, ...parameters: SqlParameters): void {
    const changed = this.run(sql, ...parameters)
    if (changed === 1) return
    throw new BrokerError('conflict', `move refused: expected exactly one row to change, got ${changed}`, {
      outcome: 'not_started',
    })
  }

  /** Bytes bound as positional blobs, for the checkpoint to judge how much the WAL has grown. */
  get boundBytes(): number {
    return this.#boundBytes
  }

  /** Whether there is anything to commit. */
  get hasWritten(): boolean {
    return this.#hasWritten
  }

  end(): void {
    this.#open = false
  }

  #prepare(sql: string): Database.Statement<unknown[]> {
    if (!this.#open)
      throw new TypeError('transaction: expected one that is open, got one whose body has ended')
    return this.#statements.prepare(sql)
  }
}
