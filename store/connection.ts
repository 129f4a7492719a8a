// Owns: one SQLite connection as every store of ours has it: FULL on disk, foreign keys, no trusted schema.
// Must never: believe a default. The package is compiled with synchronous=NORMAL for WAL files, and a new file
// reads FULL until its first write, so every setting is set after the open and read back.
// Source: sqlite.org/pragma.html, sqlite.org/wal.html §2.3.
import Database from 'better-sqlite3'
import { BrokerError } from '../protocol/errors.js'
import { sqlFault } from './sql-error.js'

/** How long one try may hold the event loop while another process has the file. */
export const BUSY_TRY_MS = 50

const SETTINGS: readonly (readonly [name: string, written: string, readBack: number | string])[] = [
  ['journal_mode', 'WAL', 'wal'],
  ['synchronous', 'FULL', 2],
  ['foreign_keys', 'ON', 1],
  ['trusted_schema', 'OFF', 0],
  ['recursive_triggers', 'ON', 1],
  ['cell_size_check', 'ON', 1],
  ['temp_store', 'MEMORY', 2],
  ['busy_timeout', String(BUSY_TRY_MS), BUSY_TRY_MS],
  ['wal_autocheckpoint', '0', 0],
]

/** `none`: commits are not synced, and a power cut may take any of them. For development alone. */
export type Durability = 'full' | 'none'

const FORGETFUL: typeof SETTINGS = SETTINGS.map(setting =>
  setting[0] === 'synchronous' ? ['synchronous', 'OFF', 0] : setting,
)

/** @returns an open connection to an existing file, every setting asserted. It never creates. */
export function openConnection(path: string, durability: Durability = 'full'): Database.Database {
  const database = openExisting(path)
  try {
    for (const setting of durability === 'full' ? SETTINGS : FORGETFUL) applySetting(database, setting)
    return database
  } catch (error) {
    database.close()
    throw sqlFault(error, `opening ${path}`, 'not_started')
  }
}

/** @returns a connection that changes nothing, not even by its end: the last one to close empties the log otherwise. */
export function openReadOnly(path: string): Database.Database {
  return openExisting(path, true)
}

function openExisting(path: string, readonly = false): Database.Database {
  try {
    return new Database(path, { fileMustExist: true, readonly, timeout: BUSY_TRY_MS })
  } catch (error) {
    throw sqlFault(error, `opening ${path}`, 'not_started')
  }
}

function applySetting(database: Database.Database, setting: (typeof SETTINGS)[number]): void {
  const [name, written, readBack] = setting
  database.pragma(`${name} = ${written}`)
  const got: unknown = database.pragma(name, { simple: true })
  if (got !== readBack) {
    throw new BrokerError(
      'storage',
      `store setting ${name} refused: expected ${readBack}, got ${String(got)}`,
      {
        outcome: 'not_started',
      },
    )
  }
}
