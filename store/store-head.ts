// Owns: the head, a counter that only grows: with every opening, every completed checkpoint and every clean end.
// The owner lock's file keeps the last one, so that a store which went back is noticed: a write-ahead log that was
// removed, or yesterday's content written into the same file. A checkpoint is followed by a step of the head, which
// is then in the log alone, so a store that is served always has more in its log than in its file.
// Must never: refuse a store that is ahead of the note, since the note is written after the step and is not synced.
// Source: sqlite.org/howtocorrupt.html §4 (deleting a hot log).
import type Database from 'better-sqlite3'
import { BrokerError } from '../protocol/errors.js'
import type { OwnerLock } from './owner-lock.js'

const STORE_KEY_DIGITS = 16

export class StoreHead {
  readonly #database: Database.Database
  readonly #lock: OwnerLock
  readonly #storeKey: string

  constructor(database: Database.Database, lock: OwnerLock, storeId: string) {
    this.#database = database
    this.#lock = lock
    this.#storeKey = storeId.slice(0, STORE_KEY_DIGITS)
  }

  /** @throws BrokerError `store_replaced` when the store is behind what its last owner noted. */
  assertNotBehind(path: string): void {
    const [storeKey, noted] = this.#lock.readNote().split(' ')
    if (storeKey !== this.#storeKey || noted === undefined || !/^[0-9]{1,15}$/.test(noted)) return
    const head = this.#read()
    if (head >= Number(noted)) return
    throw new BrokerError(
      'store_replaced',
      `store ${path} refused: expected head ${noted} or later, got ${head}; its write-ahead log was removed or an older copy was put back: restore the newest state`,
      { outcome: 'not_started' },
    )
  }

  /** One small durable write outside the request path, after which a commit costs exactly one sync again. */
  advance(counter: 'openings' | 'checkpoints'): void {
    try {
      this.#database.exec(`BEGIN IMMEDIATE; UPDATE store_state SET ${counter} = ${counter} + 1; COMMIT`)
    } finally {
      if (this.#database.inTransaction) this.#database.exec('ROLLBACK')
    }
    this.note()
  }

  note(): void {
    this.#lock.writeNote(`${this.#storeKey} ${this.#read()}`)
  }

  #read(): number {
    const row = this.#database
      .prepare<[], { head: number }>('SELECT openings + checkpoints AS head FROM store_state')
      .get()
    return row?.head ?? 0
  }
}
