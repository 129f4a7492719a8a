// Owns: the open kernel store: its reads outside a transaction, its fenced commits, its owner.
// Must never: commit past its fence. Source: the admission store's owner lease and mutation fence.
import { bootIdentity } from '../../native/clock.js'
import { type Clock, NS_PER_MS } from '../../protocol/clock.js'
import { type ClockJudgement, type ClockReading, judgeClock } from '../../protocol/trusted-clock.js'
import type { Durability } from '../../store/connection.js'
import { openStore } from '../../store/open.js'
import type { Cutpoint, Store } from '../../store/store.js'
import type { LogSettings } from '../log/decision-receipt.js'
import { uuidV7 } from '../uuid-v7.js'
import { AdministrationReads } from './administration-tables.js'
import { readClock, writeClock } from './clock-row.js'
import { DeliveryReads } from './delivery-tables.js'
import { ApprovalReads } from './approval-tables.js'
import { GrantReads } from './grant-tables.js'
import { SqliteMove } from './move.js'
import { OperationIndexReads } from './operation-index.js'
import { OutcomeReads } from './outcome-tables.js'
import { OperationReads } from './operation-tables.js'
import { type Owner, passFence, takeOver } from './owner-table.js'
import { ReconciliationReads } from './reconciliation-table.js'
import { ReceiptReads } from './receipt-tables.js'
import { KERNEL_STORE_SCHEMA } from './schema.js'
import { headPathOf, SignedHead } from './signed-head.js'

/** Of a store that is opened without a configuration. */
const DEFAULT_CLOCK_SKEW_MS = 5_000

interface TimeSource {
  readonly bootId: string
  readonly clock: Clock
  readonly skewMs: number
}

export interface OpenTablesOptions {
  readonly clock: Clock
  readonly ownerWaitMs?: number
  /** The boot in which the clock's elapsed time counts; this machine's unless said. */
  readonly bootId?: string
  readonly durability?: Durability
  /** How far the wall clock may stray from the boot clock before admission stops. */
  readonly clockSkewMs?: number
  /** With what decisions and the head are signed; a store that is opened without it decides nothing. */
  readonly log?: LogSettings
  readonly atCutpoint?: Cutpoint
}

/** The tables of an open store: reads, and writes inside a fenced transaction. */
export class SqliteAdmissionTables {
  readonly storeId: string
  readonly owner: Owner
  readonly administration: AdministrationReads
  readonly approvals: ApprovalReads
  readonly deliveries: DeliveryReads
  readonly grants: GrantReads
  readonly index: OperationIndexReads
  readonly operations: OperationReads
  readonly outcomes: OutcomeReads
  readonly receipts: ReceiptReads
  readonly reconciliations: ReconciliationReads
  readonly #store: Store
  readonly #time: TimeSource
  readonly #log: LogSettings | null

  constructor(store: Store, owner: Owner, time: TimeSource, log: LogSettings | null) {
    this.storeId = store.storeId
    this.owner = owner
    this.administration = new AdministrationReads(store)
    this.approvals = new ApprovalReads(store)
    this.deliveries = new DeliveryReads(store)
    this.grants = new GrantReads(store)
    this.index = new OperationIndexReads(store)
    this.operations = new OperationReads(store)
    this.outcomes = new OutcomeReads(store)
    this.receipts = new ReceiptReads(store)
    this.reconciliations = new ReconciliationReads(store)
    this.#store = store
    this.#time = time
    this.#log = log
  }

  /** One durable commit. It takes the next commit index, and only while this owner holds the store. */
  transaction<T>(name: string, body: (move: SqliteMove) => T): Promise<T> {
    return this.#store.transaction(name, tx => {
      const head = passFence(tx, this.owner)
      const reading = this.reading()
      const { bootId, bootMs } = reading
      const { fault, nowUnixMs, row } = this.#judge(tx, reading)
      writeClock(tx, row)
      const { owner, storeId } = this
      const moment = { bootId, bootMs, clockFault: fault, head, nowUnixMs, owner, storeId }
      return body(new SqliteMove(tx, moment, this.#log))
    })
  }

  /** The clock as the next commit would judge it. */
  judgedClock(): ClockJudgement {
    return this.#judge(this.#store, this.reading())
  }

  #judge(rows: Parameters<typeof readClock>[0], reading: ClockReading): ClockJudgement {
    const judged = judgeClock(readClock(rows), reading, this.#time.skewMs)
    return judged.fault === null ? judged : { ...judged, fault: `${judged.fault}: chio clock accept` }
  }

  /** Both hands of the clock, now. */
  reading(): ClockReading {
    const { bootId, clock } = this.#time
    return { bootId, bootMs: Number(clock.bootNs() / NS_PER_MS), unixMs: clock.unixMs() }
  }

  close(): void {
    this.#store.close()
  }
}

/** Opens the provisioned tables as their next owner. @throws BrokerError `another_instance` while one serves them. */
export async function openTables(path: string, options: OpenTablesOptions): Promise<SqliteAdmissionTables> {
  const { atCutpoint = () => undefined, bootId = bootIdentity(), clock, log = null } = options
  const head = log && new SignedHead({ atCutpoint, bootId, key: log.key, path: headPathOf(path) })
  const store = await openStore(path, KERNEL_STORE_SCHEMA, { ...options, ...(head && { witness: head }) })
  const leaseId = uuidV7(clock.unixMs())
  try {
    const nowUnixMs = clock.unixMs()
    const ownerEpoch = await store.transaction('owner_opened', tx => takeOver(tx, leaseId, nowUnixMs))
    head?.begin(store)
    const { clockSkewMs: skewMs = DEFAULT_CLOCK_SKEW_MS } = options
    return new SqliteAdmissionTables(store, { ownerEpoch, leaseId }, { bootId, clock, skewMs }, log)
  } catch (error) {
    store.close()
    throw error
  }
}
