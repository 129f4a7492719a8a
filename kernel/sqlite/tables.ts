// Owns: the open kernel store: its reads outside a transaction, its fenced commits, its owner.
// Must never: commit past its fence. Source: the admission store's owner lease and mutation fence.
import type { Clock } from '../../protocol/clock.js'
import { openStore } from '../../store/open.js'
import type { Cutpoint, Store } from '../../store/store.js'
import { uuidV7 } from '../uuid-v7.js'
import { AdministrationReads } from './administration-tables.js'
import { GrantReads } from './grant-tables.js'
import { SqliteMove } from './move.js'
import { OperationReads } from './operation-tables.js'
import { type Owner, passFence, takeOver } from './owner-table.js'
import { KERNEL_STORE_SCHEMA } from './schema.js'

export interface OpenTablesOptions {
  readonly clock: Clock
  readonly ownerWaitMs?: number
  readonly atCutpoint?: Cutpoint
}

/** The tables of an open store: reads, and writes inside a fenced transaction. */
export class SqliteAdmissionTables {
  readonly storeId: string
  readonly owner: Owner
  readonly administration: AdministrationReads
  readonly grants: GrantReads
  readonly operations: OperationReads
  readonly #store: Store
  readonly #clock: Clock

  constructor(store: Store, clock: Clock, owner: Owner) {
    this.storeId = store.storeId
    this.owner = owner
    this.administration = new AdministrationReads(store)
    this.grants = new GrantReads(store)
    this.operations = new OperationReads(store)
    this.#store = store
    this.#clock = clock
  }

  /** One durable commit. It takes the next commit index, and only while this owner holds the store. */
  transaction<T>(name: string, body: (move: SqliteMove) => T): Promise<T> {
    return this.#store.transaction(name, tx => {
      const head = passFence(tx, this.owner)
      return body(new SqliteMove(tx, { head, nowUnixMs: this.#clock.unixMs(), owner: this.owner }))
    })
  }

  close(): void {
    this.#store.close()
  }
}

/** Opens the provisioned tables as their next owner. @throws BrokerError `another_instance` while one serves them. */
export async function openTables(path: string, options: OpenTablesOptions): Promise<SqliteAdmissionTables> {
  const { clock } = options
  const store = await openStore(path, KERNEL_STORE_SCHEMA, options)
  const leaseId = uuidV7(clock.unixMs())
  try {
    const nowUnixMs = clock.unixMs()
    const ownerEpoch = await store.transaction('owner_opened', tx => takeOver(tx, leaseId, nowUnixMs))
    return new SqliteAdmissionTables(store, clock, { ownerEpoch, leaseId })
  } catch (error) {
    store.close()
    throw error
  }
}
