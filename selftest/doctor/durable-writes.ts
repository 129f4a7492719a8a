// Whether a commit is on disk when it says so: SQLite's sync level read back from a real file that was written, the
// file system under the state folder, and the room on it. The file is made, committed to once, and removed.
// Source: sqlite.org/pragma.html synchronous, sqlite.org/wal.html "all processes on the same host", statfs(2).
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  mkdtempSync,
  openSync,
  rmSync,
  statfsSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { systemClock } from '../../native/clock.js'
import { openConnection } from '../../store/connection.js'
import { type Check, missing, ok, weaker } from './check.js'

const NAME = 'durable-writes'
const FULL = 2
const MEBIBYTE = 1024 * 1024
/** Below this the next receipt may not fit. */
const LEAST_FREE_BYTES = 8 * MEBIBYTE
const SCANT_FREE_BYTES = 256 * MEBIBYTE

/** Magic numbers of statfs(2). WAL needs memory that all openers share, which these do not give. */
const NETWORK = new Map([
  [0x6969, 'NFS'],
  [0xfe53_4d42, 'SMB'],
  [0xff53_4d42, 'CIFS'],
  [0x0102_1997, '9p'],
])
const IN_MEMORY = new Map([
  [0x0102_1994, 'tmpfs'],
  [0x8584_58f6, 'ramfs'],
])

export interface DurableWritesFound {
  /** Where the file was made. */
  readonly place: string
  readonly fileSystemType: number
  readonly freeBytes: number
  /** PRAGMA synchronous after a commit; null when the file could not be used. */
  readonly synchronous: number | null
  readonly commitMs: number | null
  readonly fault: string | null
}

/** @param state the state folder, made or not. */
export function findDurableWrites(state: string): DurableWritesFound {
  const standing = standingFolder(state)
  const { type, bavail, bsize } = statfsSync(standing)
  const place = isWritable(state) ? state : tmpdir()
  return { place, fileSystemType: type, freeBytes: bavail * bsize, ...tryCommit(place) }
}

function standingFolder(path: string): string {
  let folder = path
  while (!existsSync(folder)) folder = dirname(folder)
  return folder
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK | constants.X_OK)
    return true
  } catch {
    return false
  }
}

function tryCommit(place: string): Pick<DurableWritesFound, 'synchronous' | 'commitMs' | 'fault'> {
  let folder: string | undefined
  try {
    folder = mkdtempSync(join(place, '.chio-doctor-'))
    return { ...commitOnce(join(folder, 'trial.db')), fault: null }
  } catch (error) {
    return {
      synchronous: null,
      commitMs: null,
      fault: error instanceof Error ? error.message : String(error),
    }
  } finally {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
  }
}

function commitOnce(path: string): { synchronous: number; commitMs: number } {
  closeSync(openSync(path, 'wx', 0o600))
  const database = openConnection(path)
  try {
    database.exec('CREATE TABLE trial (value INTEGER NOT NULL) STRICT')
    const startedBootNs = systemClock.bootNs()
    database.exec('INSERT INTO trial (value) VALUES (1)')
    const commitMs = Number((systemClock.bootNs() - startedBootNs) / 1_000n) / 1_000
    return { synchronous: Number(database.pragma('synchronous', { simple: true })), commitMs }
  } finally {
    database.close()
  }
}

export function judgeDurableWrites(found: DurableWritesFound): Check {
  const { commitMs, fault, fileSystemType, freeBytes, place, synchronous } = found
  const elsewhere = 'keep the state folder on a local disk: chio init --state DIR'
  const network = NETWORK.get(fileSystemType)
  if (network !== undefined) return missing(NAME, `the state folder is on ${network}`, elsewhere)
  if (fault !== null)
    return missing(
      NAME,
      `no file could be written in ${place}: ${fault}`,
      'free space, or give write permission',
    )
  if (synchronous !== FULL)
    return missing(
      NAME,
      `SQLite reads back synchronous ${synchronous}, not FULL (2)`,
      'install the package anew: npm run setup',
    )
  const room = `${Math.floor(freeBytes / MEBIBYTE)} MiB free`
  if (freeBytes < LEAST_FREE_BYTES) return missing(NAME, room, 'free space under the state folder')
  const memory = IN_MEMORY.get(fileSystemType)
  if (memory !== undefined)
    return weaker(NAME, `the state folder is on ${memory}: no record outlives a restart`, elsewhere)
  if (freeBytes < SCANT_FREE_BYTES) return weaker(NAME, room, 'free space under the state folder')
  return ok(NAME, `SQLite reads back FULL in ${place}; a commit took ${commitMs} ms; ${room}`)
}
