// Owns: the one exception of the pin: the same file on a device that was renumbered, accepted once, kept for ever.
// Must never: accept another inode, or a change that nobody signed for.
// Source: device numbers of disks may change over a restart (sd(4), "names are assigned in order of discovery").
import type Database from 'better-sqlite3'
import type { Clock } from '../protocol/clock.js'
import { BrokerError } from '../protocol/errors.js'
import { openConnection } from './connection.js'
import { assertPrivateParent, assertStoreFile, type FileIdentity } from './file-custody.js'
import { takeOwnerLock } from './owner-lock.js'
import { readPin } from './pin.js'
import { checkStoreSchema, type StoreSchema } from './schema.js'
import { assertSchema } from './schema-text.js'
import { sqlFault } from './sql-error.js'

/** What an administrator signs for. */
export interface AdoptionRequest {
  readonly storeId: string
  readonly inode: string
  readonly pinnedDevice: string
  readonly foundDevice: string
}

export interface AdoptOptions {
  readonly clock: Clock
  readonly ownerWaitMs?: number
  /** Verifies the administrator's signature over the request. @returns the signed document, which is kept; or throws. */
  readonly authorize: (request: AdoptionRequest) => Uint8Array
}

/** @throws BrokerError `store_replaced` when another inode holds the content, `conflict` when nothing has changed. */
export async function adoptStore(
  path: string,
  schema: StoreSchema,
  options: AdoptOptions,
): Promise<AdoptionRequest> {
  checkStoreSchema(schema)
  assertPrivateParent(path)
  assertStoreFile(path)
  const lock = await takeOwnerLock(path, options)
  try {
    const database = openConnection(path)
    try {
      assertSchema(database, schema)
      return appendPin(database, assertStoreFile(path), options)
    } finally {
      database.close()
    }
  } catch (error) {
    throw sqlFault(error, `adopting ${path}`, 'not_started')
  } finally {
    lock.release()
  }
}

function appendPin(database: Database.Database, file: FileIdentity, options: AdoptOptions): AdoptionRequest {
  const pin = readPin(database)
  if (pin === undefined || pin.inode !== file.inode) {
    throw new BrokerError(
      'store_replaced',
      'adoption refused: expected the pinned inode, got another; a copy is never accepted',
    )
  }
  if (pin.device === file.device) {
    throw new BrokerError(
      'conflict',
      'adoption refused: expected another device number, got the pinned one; nothing to adopt',
    )
  }
  const request = {
    storeId: pin.storeId,
    inode: pin.inode,
    pinnedDevice: pin.device,
    foundDevice: file.device,
  }
  database
    .prepare(
      `INSERT INTO store_pin (sequence, store_id, device, inode, pinned_at_unix_ms, adoption)
       SELECT max(sequence) + 1, ?, ?, ?, ?, ? FROM store_pin`,
    )
    .run(pin.storeId, file.device, file.inode, options.clock.unixMs(), options.authorize(request))
  return request
}
