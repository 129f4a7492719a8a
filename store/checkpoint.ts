// Owns: when pages move from the WAL into the store file: between requests, never inside a commit.
// Must never: run a blocking checkpoint, or leave the WAL in a state where the next commit syncs twice. A WAL
// that is wholly checkpointed restarts on the next write with a header sync of its own, so that write is ours.
// Source: sqlite.org/wal.html §2.2 and §3.1; wal.c walFrames() "syncHeader".
import type Database from 'better-sqlite3'
import type { StoreHead } from './store-head.js'

/** Fewer commits are not worth two fsyncs; the WAL stays small all the same. */
const IDLE_COMMITS = 32
const IDLE_MS = 200
/** Under steady load, so that one checkpoint stays a matter of a few milliseconds. */
const PRESSING_COMMITS = 256
const PRESSING_BOUND_BYTES = 1024 * 1024

interface CheckpointRow {
  readonly busy: number
  readonly log: number
  readonly checkpointed: number
}

export class CheckpointSchedule {
  readonly #database: Database.Database
  readonly #head: StoreHead
  #commits = 0
  #boundBytes = 0
  #idleTimer: NodeJS.Timeout | undefined
  #pressing: NodeJS.Immediate | undefined
  #fault: unknown

  constructor(database: Database.Database, head: StoreHead) {
    this.#database = database
    this.#head = head
  }

  /** What the last checkpoint failed with (a full disk, for one); the WAL keeps every commit meanwhile. */
  get fault(): unknown {
    return this.#fault
  }

  noteCommit(boundBytes: number): void {
    this.#commits += 1
    this.#boundBytes += boundBytes
    clearTimeout(this.#idleTimer)
    if (this.#commits >= PRESSING_COMMITS || this.#boundBytes >= PRESSING_BOUND_BYTES) {
      this.#pressing ??= setImmediate(() => this.#run())
    } else if (this.#commits >= IDLE_COMMITS) {
      this.#idleTimer = setTimeout(() => this.#run(), IDLE_MS).unref()
    }
  }

  close(): void {
    clearTimeout(this.#idleTimer)
    clearImmediate(this.#pressing)
  }

  #run(): void {
    this.#pressing = undefined
    this.#commits = 0
    this.#boundBytes = 0
    try {
      const [row] = this.#database.pragma('wal_checkpoint(PASSIVE)') as CheckpointRow[]
      if (row !== undefined && row.log > 0 && row.log === row.checkpointed) this.#head.advance('checkpoints')
      this.#fault = undefined
    } catch (error) {
      this.#fault = error
    }
  }
}
