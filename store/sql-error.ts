// Owns: the one mapping from what SQLite throws to what callers of a store see.
// Must never: put a row's content into a sentence; SQLite's own message goes no further than `cause`.
// Source: sqlite.org/rescode.html.
import Database from 'better-sqlite3'
import { BrokerError } from '../protocol/errors.js'

export type SqlOutcome = 'not_started' | 'unknown'

export function isBusy(error: unknown): boolean {
  return error instanceof Database.SqliteError && /^SQLITE_(BUSY|LOCKED)/.test(error.code)
}

/** Constraint faults keep their meaning, other faults of SQLite and the disk are `storage`; all else is returned as it is. */
export function sqlFault(error: unknown, what: string, outcome: SqlOutcome): unknown {
  if (!(error instanceof Database.SqliteError)) return diskFault(error, what, outcome)
  if (/^SQLITE_CONSTRAINT_(PRIMARYKEY|UNIQUE|ROWID)$/.test(error.code)) {
    return new BrokerError('conflict', `${what} refused: a row with this key exists already`, {
      outcome,
      cause: error,
    })
  }
  if (error.code.startsWith('SQLITE_CONSTRAINT')) {
    return new BrokerError('invariant', `${what} refused by a constraint of the schema: ${error.code}`, {
      outcome,
      cause: error,
    })
  }
  return new BrokerError('storage', `${what} failed: ${error.code}; ${nextStep(error.code)}`, {
    outcome,
    cause: error,
  })
}

/** A fault of a system call is `storage`; all else is returned as it is. */
export function diskFault(error: unknown, what: string, outcome: SqlOutcome): unknown {
  if (!(error instanceof Error) || !('syscall' in error)) return error
  const code = (error as NodeJS.ErrnoException).code ?? 'an unnamed error'
  return new BrokerError('storage', `${what} failed: ${code}; ${nextStep(code)}`, { outcome, cause: error })
}

/** A full disk is met first where the file of the shared index has to grow. */
const NO_SPACE: ReadonlySet<string> = new Set(['SQLITE_FULL', 'SQLITE_IOERR_SHMSIZE', 'ENOSPC', 'EDQUOT'])

function nextStep(code: string): string {
  if (NO_SPACE.has(code)) return 'free space on the file system of the store'
  if (code.startsWith('SQLITE_BUSY')) return 'find the other process that holds the file (fuser)'
  if (code.startsWith('SQLITE_READONLY') || code === 'EROFS')
    return 'mount the file system of the store writable'
  if (code === 'SQLITE_CORRUPT' || code === 'SQLITE_NOTADB') return 'restore the store from its backup'
  return 'look at the file system of the store'
}
