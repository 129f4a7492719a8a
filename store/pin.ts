// Owns: the pin that ties a store's content to the file it was provisioned in: random id, inode, device.
// Must never: follow the file to a new place by itself. A copy put back from yesterday would undo what was
// spent since; only an adoption, appended and kept, accepts a device number that alone changed.
import { randomBytes } from 'node:crypto'
import type Database from 'better-sqlite3'
import { BrokerError } from '../protocol/errors.js'
import type { FileIdentity } from './file-custody.js'

export interface Pin extends FileIdentity {
  readonly storeId: string
}

/** @returns the pin that holds, or undefined when there is none. */
export function readPin(database: Database.Database): Pin | undefined {
  return database
    .prepare<[], Pin>(
      'SELECT store_id AS storeId, device, inode FROM store_pin ORDER BY sequence DESC LIMIT 1',
    )
    .get()
}

/** @returns the id of the new store. */
export function writeFirstPin(
  database: Database.Database,
  file: FileIdentity,
  pinnedAtUnixMs: number,
): string {
  const storeId = randomBytes(32).toString('hex')
  database
    .prepare(
      'INSERT INTO store_pin (sequence, store_id, device, inode, pinned_at_unix_ms) VALUES (1, ?, ?, ?, ?)',
    )
    .run(storeId, file.device, file.inode, pinnedAtUnixMs)
  return storeId
}

/** @returns the store id. @throws BrokerError `store_replaced` when the content sits in another file. */
export function assertPin(database: Database.Database, path: string, file: FileIdentity): string {
  const pin = readPin(database)
  if (pin === undefined) throw replaced(path, 'a pinned store', 'one without a pin', 'provision a new one')
  if (pin.inode !== file.inode) {
    throw replaced(
      path,
      `inode ${pin.inode}`,
      file.inode,
      'put the original file back; a copy is never accepted',
    )
  }
  if (pin.device !== file.device) {
    throw replaced(
      path,
      `device ${pin.device}`,
      file.device,
      'if the disk alone was renumbered: chio store adopt, for an executor chio ledger adopt',
    )
  }
  return pin.storeId
}

function replaced(path: string, expected: string, got: string, next: string): BrokerError {
  return new BrokerError(
    'store_replaced',
    `store ${path} refused: expected ${expected}, got ${got}; ${next}`,
    {
      outcome: 'not_started',
    },
  )
}
