// Owns: the head, a counter that only grows: with every commit, every opening, every completed checkpoint and every
// clean end. The owner lock's file keeps the last one, so that a store which went back is noticed: a write-ahead log
// that was removed, or older content written into the same file, be it a single commit old. Beside it stands what the
// store file itself said of its age when it was last complete, so that an older file under the newest log is noticed
// too; a step of the head changes both. After a checkpoint that step is in the log alone, so a store that is served
// always has more in its log than in its file.
// Must never: refuse a store that is ahead of the note, since the note is written after the step and is not synced.
// Source: sqlite.org/howtocorrupt.html §1.4 and §4 (deleting a hot log), sqlite.org/fileformat2.html §1.3.7.
import type Database from 'better-sqlite3'
import { BrokerError } from '../protocol/errors.js'
import type { FileAge } from './file-age.js'
import type { OwnerLock } from './owner-lock.js'

const STORE_KEY_DIGITS = 16
/** In the transaction whose commit it counts. */
export const COUNT_COMMIT_SQL =
  'UPDATE store_state SET commits = commits + 1 RETURNING openings + checkpoints + commits AS head'
const HEAD_SQL = 'SELECT openings + checkpoints + commits AS head FROM store_state'

/** Written anew as it is: the first page is then among those that change, and with it the age that it holds. */
export function ageFileSql(userVersion: number): string {
  return `PRAGMA user_version = ${userVersion}`
}

export interface HeadParts {
  readonly database: Database.Database
  readonly lock: OwnerLock
  readonly storeId: string
  readonly age: FileAge
}

interface Noted {
  readonly head: number
  readonly fileAge: number
}

export class StoreHead {
  readonly #parts: HeadParts
  readonly #storeKey: string
  #fileAge = 0

  constructor(parts: HeadParts) {
    this.#parts = parts
    this.#storeKey = parts.storeId.slice(0, STORE_KEY_DIGITS)
  }

  /** @throws BrokerError `store_replaced` when the store is behind what its last owner noted. */
  assertNotBehind(path: string): void {
    const noted = this.#noted()
    if (noted === undefined) return
    const head = this.#read()
    if (head < noted.head) throw behind(path, `head ${noted.head}`, head)
    const { opened } = this.#parts.age
    if (opened < noted.fileAge) throw behind(path, `a file of age ${noted.fileAge}`, opened)
  }

  /** One small durable write outside the request path, after which a commit costs exactly one sync again. */
  advance(counter: 'openings' | 'checkpoints'): void {
    const { database } = this.#parts
    const version: unknown = database.pragma('user_version', { simple: true })
    try {
      const step = `UPDATE store_state SET ${counter} = ${counter} + 1`
      database.exec(`BEGIN IMMEDIATE; ${step}; ${ageFileSql(Number(version))}; COMMIT`)
    } finally {
      if (database.inTransaction) database.exec('ROLLBACK')
    }
    this.note()
  }

  /** Notes where a commit has brought the head. */
  reached(head: number): void {
    this.#parts.lock.writeNote(`${this.#storeKey} ${head} ${this.#fileAge}`)
  }

  note(): void {
    this.#fileAge = this.#parts.age.readDurable()
    this.reached(this.#read())
  }

  /** @returns the note, when it is one, and about this store. */
  #noted(): Noted | undefined {
    const [storeKey, head, fileAge] = this.#parts.lock.readNote().split(' ')
    if (storeKey !== this.#storeKey || !isCount(head) || !isCount(fileAge)) return undefined
    return { head: Number(head), fileAge: Number(fileAge) }
  }

  #read(): number {
    return this.#parts.database.prepare<[], { head: number }>(HEAD_SQL).get()?.head ?? 0
  }
}

function isCount(text: string | undefined): text is string {
  return text !== undefined && /^[0-9]{1,15}$/.test(text)
}

function behind(path: string, expected: string, got: number): BrokerError {
  return new BrokerError(
    'store_replaced',
    `store ${path} refused: expected ${expected} or later, got ${got}; its write-ahead log was removed or an older copy was put back: restore the newest state, file and log together`,
    { outcome: 'not_started' },
  )
}
