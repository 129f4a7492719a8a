// Owns the review journal: one line a note, each whole and on disk before anybody is told of it. One process at a time
// reads and appends, under a lock of the folder.
// Must never: repair a torn line, count it, or append behind it; nor append the same operation twice.
// Source: write(2) with O_APPEND, fsync(2); a folder is synced where a name was made in it.
import { closeSync, constants, existsSync, fsyncSync, openSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { canonicalBytes } from '../../protocol/canonical.js'
import type { Clock } from '../../protocol/clock.js'
import { decode } from '../../protocol/codec.js'
import { BrokerError, type Outcome } from '../../protocol/errors.js'
import { parseStrictJson } from '../../protocol/json.js'
import { type OwnerLock, takeOwnerLock } from '../../store/owner-lock.js'
import type { Cutpoint } from '../../system/cutpoints.js'
import { readRetainedFile, syncFolder } from '../../system/retained-file.js'
import { AppendedNote } from './note.js'

/** Far above what the ledger has room for. */
const MAXIMUM_JOURNAL_BYTES = 4_194_304
const LOCK_WAIT_MS = 5_000
const NEWLINE = 0x0a
const APPEND = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW
const PRIVATE_FILE = 0o600
const GROUP_OR_OTHERS = 0o077

export interface JournalOptions {
  readonly atCutpoint: Cutpoint
  readonly clock: Clock
}

interface TornLine {
  readonly bytes: Uint8Array
  readonly offset: number
}

interface Content {
  /** Operations whose lines are whole. */
  readonly operations: ReadonlySet<string>
  readonly torn: TornLine | null
}

export class ReviewJournal {
  readonly #path: string
  readonly #lock: OwnerLock
  readonly #atCutpoint: Cutpoint

  private constructor(path: string, lock: OwnerLock, { atCutpoint }: JournalOptions) {
    this.#path = path
    this.#lock = lock
    this.#atCutpoint = atCutpoint
  }

  /** @throws BrokerError `another_instance` where another process is at it for longer than 5 s. */
  static async open(path: string, options: JournalOptions): Promise<ReviewJournal> {
    const lock = await takeOwnerLock(path, { clock: options.clock, ownerWaitMs: LOCK_WAIT_MS })
    return new ReviewJournal(path, lock, options)
  }

  /**
   * Asked before the claim, so that a journal that takes nothing up costs none. What is appended already is the
   * ledger's to answer.
   * @throws BrokerError `storage` with offset and operation of a torn line; the outcome is `unknown` where that line may be
   * of this very append.
   */
  assertTakes(note: AppendedNote): void {
    const { operations, torn } = this.#read()
    if (torn !== null && !operations.has(note.operation_id)) throw tornLine(torn, note)
  }

  /** Appends one line in one write, and waits for the disk. @throws BrokerError `storage`; nothing is appended then. */
  async append(note: AppendedNote): Promise<void> {
    this.assertTakes(note)
    const isNew = !existsSync(this.#path)
    if (this.#read().operations.has(note.operation_id)) throw appendedBefore(note)
    this.#atCutpoint('review-note.append.before')
    const descriptor = openSync(this.#path, APPEND, PRIVATE_FILE)
    try {
      const line = lineOf(note)
      const written = writeSync(descriptor, line)
      if (written !== line.length) throw cutShort(note, written, line.length)
      this.#atCutpoint('review-note.append.written')
      fsyncSync(descriptor)
    } finally {
      closeSync(descriptor)
    }
    if (isNew) await syncFolder(dirname(this.#path))
    this.#atCutpoint('review-note.append.after')
  }

  /** Safe to repeat. */
  close(): void {
    this.#lock.release()
  }

  #read(): Content {
    if (!existsSync(this.#path)) return { operations: new Set(), torn: null }
    const bytes = readRetainedFile(this.#path, {
      forbiddenMode: GROUP_OR_OTHERS,
      maximumBytes: MAXIMUM_JOURNAL_BYTES,
      ownerUid: process.geteuid?.() ?? 0,
    })
    const operations = new Set<string>()
    let offset = 0
    for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, offset)) {
      operations.add(operationOf(bytes.subarray(offset, end), offset))
      offset = end + 1
    }
    return { operations, torn: offset === bytes.length ? null : { bytes: bytes.subarray(offset), offset } }
  }
}

/** The operation comes first: what is left of a torn line says whose it is. */
function lineOf({ note, operation_id, sha256 }: AppendedNote): Uint8Array {
  return Buffer.from(`${JSON.stringify({ operation_id, sha256, note })}\n`, 'utf8')
}

function operationOf(line: Uint8Array, offset: number): string {
  try {
    const what = 'journal line'
    return decode(AppendedNote, canonicalBytes(parseStrictJson(line, what)), what).operation_id
  } catch (cause) {
    throw new BrokerError(
      'storage',
      `journal refused: expected a note at byte ${offset}, got another line; nothing is appended, restore it`,
      { cause },
    )
  }
}

function tornLine({ bytes, offset }: TornLine, note: AppendedNote): BrokerError {
  const text = Buffer.from(bytes).toString('latin1')
  const whose = /^\{"operation_id":"([0-9a-f]{64})"/.exec(text)?.[1]
  const own = Buffer.from(lineOf(note)).toString('latin1')
  const outcome: Outcome = own.startsWith(text) ? 'unknown' : 'not_started'
  const { operation_id: operationId } = note
  return new BrokerError(
    'storage',
    `append of operation ${operationId} refused: expected a journal whose last line ended, got a torn one at byte ${offset}, of operation ${whose ?? 'too short to tell'}; nothing is appended or repaired, see what that operation did`,
    { operationId, outcome },
  )
}

function appendedBefore({ operation_id: operationId }: AppendedNote): BrokerError {
  return new BrokerError(
    'storage',
    `append of operation ${operationId} refused: expected a journal without it, got one that holds it; it is not appended again`,
    { operationId, outcome: 'unknown' },
  )
}

function cutShort({ operation_id: operationId }: AppendedNote, written: number, length: number): BrokerError {
  return new BrokerError(
    'storage',
    `append of operation ${operationId} refused: expected ${length} bytes to be written, got ${written}; the line is torn, free some space before the next`,
    { operationId, outcome: 'unknown' },
  )
}
