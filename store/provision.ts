// Owns: making a store, once: built under a temporary name, complete and on disk before it gets its own.
// Must never: touch a file that exists. Provisioning over history would forget what was already spent.
// Source: rename(2), fsync(2) "calling fsync() does not necessarily ensure that the entry in the directory".
import { randomBytes } from 'node:crypto'
import { closeSync, constants, fsyncSync, openSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Clock } from '../protocol/clock.js'
import { BrokerError } from '../protocol/errors.js'
import { openConnection } from './connection.js'
import { assertPrivateParent, assertStoreFile, exists } from './file-custody.js'
import { takeOwnerLock } from './owner-lock.js'
import { writeFirstPin } from './pin.js'
import { checkStoreSchema, completeSchemaSql, type StoreSchema } from './schema.js'
import { assertStrictTables } from './schema-text.js'
import { sqlFault } from './sql-error.js'
import type { SqlValue } from './transaction.js'

export interface ProvisionOptions {
  readonly clock: Clock
  readonly ownerWaitMs?: number
  /** Writes the rows that a store of this kind is never without: complete, or there is no store. */
  readonly first?: (rows: FirstRows) => void
}

/** A store that is being made: it has its id and its tables, and no name yet. */
export interface FirstRows {
  readonly storeId: string
  run(sql: string, ...parameters: readonly SqlValue[]): void
}

/**
 * Makes a new store. Its directory exists already, 0700, and is ours.
 * @throws BrokerError `another_instance` while the directory is served, `storage` when the file exists.
 */
export async function provisionStore(
  path: string,
  schema: StoreSchema,
  options: ProvisionOptions,
): Promise<void> {
  checkStoreSchema(schema)
  assertPrivateParent(path)
  const lock = await takeOwnerLock(path, options)
  try {
    build(path, schema, options)
  } catch (error) {
    throw sqlFault(error, `provisioning ${path}`, 'not_started')
  } finally {
    lock.release()
  }
}

function build(path: string, schema: StoreSchema, options: ProvisionOptions): void {
  refuseExisting(path)
  const temporary = `${path}.provision-${randomBytes(8).toString('hex')}`
  try {
    createPrivateFile(temporary)
    fill(temporary, schema, options)
    syncPath(temporary)
    refuseExisting(path)
    renameSync(temporary, path)
    syncPath(dirname(path))
  } finally {
    for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(temporary + suffix, { force: true })
  }
}

function fill(path: string, schema: StoreSchema, { clock, first }: ProvisionOptions): void {
  const database = openConnection(path)
  try {
    database.transaction(() => {
      database.pragma(`application_id = ${schema.applicationId}`)
      database.pragma(`user_version = ${schema.userVersion}`)
      database.exec(completeSchemaSql(schema))
      assertStrictTables(database)
      database.exec('INSERT INTO store_state (singleton, openings, checkpoints, commits) VALUES (1, 0, 0, 0)')
      const storeId = writeFirstPin(database, assertStoreFile(path), clock.unixMs())
      first?.({ storeId, run: (sql, ...parameters) => void database.prepare(sql).run(...parameters) })
    })()
  } finally {
    database.close()
  }
}

function refuseExisting(path: string): void {
  if (!exists(path)) return
  throw new BrokerError(
    'storage',
    `provisioning ${path} refused: expected nothing there, got a file; open it, or move it away by hand`,
    { outcome: 'not_started' },
  )
}

function createPrivateFile(path: string): void {
  const flags = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
  closeSync(openSync(path, flags, 0o600))
}

/** Makes a file durable, or the names of a folder. */
export function syncPath(path: string): void {
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW)
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
