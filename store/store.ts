// Owns: an open store: its transactions, its reads, its end. One commit is one fsync of the WAL, on disk before
// `transaction` resolves.
// Must never: keep a transaction open across a turn of the event loop, so no effect can run inside one.
// Source: sqlite.org/lang_transaction.html, sqlite.org/wal.html.
import type Database from 'better-sqlite3'
import { type Clock, NS_PER_MS } from '../protocol/clock.js'
import { BrokerError } from '../protocol/errors.js'
import { type Attempt, BusyQueue } from './busy-queue.js'
import { CheckpointSchedule } from './checkpoint.js'
import type { CommitWitness } from './commit-witness.js'
import type { OwnerLock } from './owner-lock.js'
import { isBusy, sqlFault } from './sql-error.js'
import type { FileAge } from './file-age.js'
import { COUNT_COMMIT_SQL, type StoreHead } from './store-head.js'
import { OpenTransaction, type SqlParameters, StatementCache, type Transaction } from './transaction.js'

/** Called with `NAME:before_commit` and `NAME:after_commit`; a crash test ends the process there. */
export type Cutpoint = (name: string) => void

export interface StoreParts {
  readonly database: Database.Database
  readonly lock: OwnerLock
  readonly head: StoreHead
  readonly age: FileAge
  readonly storeId: string
  readonly clock: Clock
  readonly busyBudgetMs: number
  readonly atCutpoint: Cutpoint
  readonly witness: CommitWitness | undefined
}

export interface TransactionOptions {
  /** Until when to wait for a file that another process holds; the store's budget unless said. */
  readonly deadlineBootNs?: bigint
}

export class Store {
  readonly storeId: string
  readonly #parts: StoreParts
  readonly #statements: StatementCache
  readonly #queue: BusyQueue
  readonly #checkpoint: CheckpointSchedule
  #closed = false

  constructor(parts: StoreParts) {
    this.storeId = parts.storeId
    this.#parts = parts
    this.#statements = new StatementCache(parts.database)
    this.#queue = new BusyQueue(parts.clock)
    this.#checkpoint = new CheckpointSchedule(parts.database, parts.head)
  }

  /** What the last checkpoint failed with, if it did; commits stay durable in the WAL meanwhile. */
  get checkpointFault(): unknown {
    return this.#checkpoint.fault
  }

  /**
   * Runs the body and commits, in the caller's tick when the file is free and nobody waits, else later from a
   * timer, in order. What depends on the time is therefore compared inside the body.
   * @param name of the durable boundary, for its cutpoints.
   * @param body synchronous, with no effect but its statements: a busy file means that it has not run yet.
   * @throws BrokerError `storage` past the budget or when the disk fails; outcome `unknown` when COMMIT failed.
   */
  transaction<T>(name: string, body: (tx: Transaction) => T, options: TransactionOptions = {}): Promise<T> {
    this.#assertOutside()
    const budgetEndBootNs = this.#parts.clock.bootNs() + BigInt(this.#parts.busyBudgetMs) * NS_PER_MS
    return this.#queue.submit(() => this.#attempt(name, body), options.deadlineBootNs ?? budgetEndBootNs)
  }

  /** Reads one row outside a transaction. */
  get<Row>(sql: string, ...parameters: SqlParameters): Row | undefined {
    return this.#read(statement => statement.get(...parameters) as Row | undefined, sql)
  }

  /** Reads all rows outside a transaction. */
  all<Row>(sql: string, ...parameters: SqlParameters): Row[] {
    return this.#read(statement => statement.all(...parameters) as Row[], sql)
  }

  /** Refuses who still waits, empties the WAL into the file and gives the owner lock back. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#queue.close()
    this.#checkpoint.close()
    try {
      this.#advanceHead()
      this.#parts.database.close()
    } finally {
      this.#parts.age.close()
      this.#parts.witness?.close()
      this.#parts.lock.release()
    }
  }

  /** A clean end is a step of the head, so that a copy made while we served is behind. A full disk does not stop it. */
  #advanceHead(): void {
    try {
      this.#parts.head.advance('checkpoints')
    } catch (error) {
      if (sqlFault(error, 'closing the store', 'not_started') === error) throw error
    }
  }

  #read<T>(read: (statement: Database.Statement<unknown[]>) => T, sql: string): T {
    this.#assertUsable()
    try {
      const statement = this.#statements.prepare(sql)
      if (!statement.readonly)
        throw new TypeError('store read: expected a statement that only reads, got one that writes')
      return read(statement)
    } catch (error) {
      throw sqlFault(error, 'reading the store', 'not_started')
    }
  }

  #attempt<T>(name: string, body: (tx: Transaction) => T): Attempt<T> {
    this.#assertUsable()
    if (!this.#begin(name)) return { busy: true }
    const tx = new OpenTransaction(this.#statements)
    let value: T
    let head: number | undefined
    try {
      value = body(tx)
      this.#assertFinished(value)
      if (tx.hasWritten) {
        head = this.#countCommit()
        this.#parts.witness?.prepare(tx)
      }
      this.#parts.atCutpoint(`${name}:before_commit`)
    } catch (error) {
      this.#rollBack()
      throw sqlFault(error, `transaction ${name}`, 'not_started')
    } finally {
      tx.end()
    }
    this.#commit(name, head)
    this.#checkpoint.noteCommit(tx.boundBytes)
    return { busy: false, value }
  }

  #begin(name: string): boolean {
    try {
      this.#statements.prepare('BEGIN IMMEDIATE').run()
      return true
    } catch (error) {
      if (isBusy(error)) return false
      throw sqlFault(error, `transaction ${name}`, 'not_started')
    }
  }

  #countCommit(): number | undefined {
    return (this.#statements.prepare(COUNT_COMMIT_SQL).get() as { head: number } | undefined)?.head
  }

  #commit(name: string, head: number | undefined): void {
    try {
      this.#statements.prepare('COMMIT').run()
    } catch (error) {
      this.#rollBack()
      throw sqlFault(error, `commit of ${name}`, 'unknown')
    }
    if (head !== undefined) {
      this.#parts.head.reached(head)
      this.#parts.witness?.committed()
    }
    this.#parts.atCutpoint(`${name}:after_commit`)
  }

  #rollBack(): void {
    if (this.#parts.database.inTransaction) this.#statements.prepare('ROLLBACK').run()
  }

  #assertFinished(value: unknown): void {
    if (value instanceof Promise)
      throw new TypeError('transaction body: expected a synchronous function, got a promise')
    if (!this.#parts.database.inTransaction) {
      throw new TypeError(
        'transaction body: expected it to leave BEGIN and COMMIT to the store, got an ended transaction',
      )
    }
  }

  #assertUsable(): void {
    if (this.#closed) {
      throw new BrokerError('storage', 'store refused: expected it to be open, got one that was closed', {
        outcome: 'not_started',
      })
    }
    this.#assertOutside()
  }

  /** Thrown in the caller's tick: as a rejection it could be lost while the outer transaction commits. */
  #assertOutside(): void {
    if (!this.#parts.database.inTransaction) return
    throw new TypeError(
      'store: expected no call from inside a transaction body but on its `tx`, got a nested one',
    )
  }
}
