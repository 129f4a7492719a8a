// Owns: opening a store that was provisioned before.
// Must never: create or repair anything. Where history is missing or is not ours, the answer is a refusal.
// Source: ../docs/decisions on provision and open; sqlite.org/howtocorrupt.html.
import type Database from 'better-sqlite3'
import type { Clock } from '../protocol/clock.js'
import type { CommitWitness } from './commit-witness.js'
import { type Durability, openConnection, openReadOnly } from './connection.js'
import { FileAge } from './file-age.js'
import { assertPrivateParent, assertStoreFile } from './file-custody.js'
import { type OwnerLock, takeOwnerLock } from './owner-lock.js'
import { assertPin, readPin } from './pin.js'
import { checkStoreSchema, type StoreSchema } from './schema.js'
import { assertSchema } from './schema-text.js'
import { sqlFault } from './sql-error.js'
import { type Cutpoint, Store } from './store.js'
import { ageFileSql, StoreHead } from './store-head.js'
import { StatementCache } from './transaction.js'

/** Longest wait of a transaction for a file that a backup tool or a stray process holds. */
const DEFAULT_BUSY_BUDGET_MS = 5_000

export interface OpenOptions {
  readonly clock: Clock
  readonly busyBudgetMs?: number
  /** How long to wait for the process that serves the store; 0 unless said. */
  readonly ownerWaitMs?: number
  readonly atCutpoint?: Cutpoint
  /** `full` unless a configuration gave it up in so many words. */
  readonly durability?: Durability
  /** Keeps word of the newest commit elsewhere; closed with the store, or when it does not open. */
  readonly witness?: CommitWitness
}

/**
 * Opens a provisioned store and takes its owner lock.
 * @throws BrokerError `another_instance`, `store_missing`, `store_replaced` or `storage`.
 */
export async function openStore(path: string, schema: StoreSchema, options: OpenOptions): Promise<Store> {
  checkStoreSchema(schema)
  assertPrivateParent(path)
  assertStoreFile(path)
  const lock = await takeOwnerLock(path, options)
  let age: FileAge | undefined
  let database: Database.Database | undefined
  try {
    age = new FileAge(path)
    assertNewest(path, schema, { lock, age, witness: options.witness })
    database = openConnection(path, options.durability)
    const storeId = assertContent(database, path, schema)
    const head = new StoreHead({ database, lock, storeId, age })
    const store = new Store({
      database,
      lock,
      head,
      age,
      storeId,
      clock: options.clock,
      busyBudgetMs: options.busyBudgetMs ?? DEFAULT_BUSY_BUDGET_MS,
      atCutpoint: options.atCutpoint ?? (() => {}),
      witness: options.witness,
    })
    await startWal(store, schema)
    head.note()
    return store
  } catch (error) {
    database?.close()
    age?.close()
    options.witness?.close()
    lock.release()
    throw error
  }
}

/** Judged before anything may be written: an older file stays apart from a newer log, which may be all that is left. */
function assertNewest(
  path: string,
  schema: StoreSchema,
  { age, lock, witness }: { lock: OwnerLock; age: FileAge; witness: CommitWitness | undefined },
): void {
  const database = openReadOnly(path)
  try {
    assertSchema(database, schema)
    const storeId = readPin(database)?.storeId ?? ''
    new StoreHead({ age, database, lock, storeId }).assertNotBehind(path)
    const statements = new StatementCache(database)
    witness?.assertNewest(
      { get: (sql, ...values) => statements.prepare(sql).get(...values) as never },
      storeId,
    )
  } catch (error) {
    throw sqlFault(error, `opening ${path}`, 'not_started')
  } finally {
    database.close()
  }
}

/** Custody is judged again once the file is open: the name may have changed hands since. */
function assertContent(database: Database.Database, path: string, schema: StoreSchema): string {
  try {
    const file = assertStoreFile(path)
    assertSchema(database, schema)
    return assertPin(database, path, file)
  } catch (error) {
    throw sqlFault(error, `opening ${path}`, 'not_started')
  }
}

/** Proves at once that the store can be written, and takes the sync of a new WAL's header off the first request. */
function startWal(store: Store, { userVersion }: StoreSchema): Promise<void> {
  return store.transaction('store_opened', tx => {
    tx.changeOne('UPDATE store_state SET openings = openings + 1 WHERE singleton = 1')
    tx.run(ageFileSql(userVersion))
  })
}
