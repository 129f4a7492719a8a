// Owns: one open transaction of the kernel's store: the tables of every part, stamped with one moment.
// Must never: outlive its transaction. Source: the admission store's mutation fence.
import type { AdminOperation } from '../../protocol/administration.js'
import { anchoredAt, type ClockReading } from '../trusted-clock.js'
import type { Transaction } from '../../store/transaction.js'
import type { LogSettings } from '../log/decision-receipt.js'
import { AdministrationTables } from './administration-tables.js'
import { BudgetTables } from './budget-tables.js'
import { ApprovalTables } from './approval-tables.js'
import { CapabilityTables } from './capability-tables.js'
import { DeliveryTables } from './delivery-tables.js'
import { ContextTables } from './context-tables.js'
import { GrantTables } from './grant-tables.js'
import { HoldTable } from './hold-table.js'
import { NonceTables } from './nonce-tables.js'
import { OperationIndex } from './operation-index.js'
import { OperationTables } from './operation-tables.js'
import { OutcomeTables } from './outcome-tables.js'
import { PossessionTables } from './possession-tables.js'
import { readClock, recordCorrection, writeClock } from './clock-row.js'
import { ReconciliationTable } from './reconciliation-table.js'
import type { Head, Moment, Owner } from './owner-table.js'
import { ReceiptTables } from './receipt-tables.js'

export class SqliteMove implements Moment {
  readonly bootId: string
  readonly bootMs: number
  readonly clockFault: string | null
  readonly nowUnixMs: number
  readonly head: Head
  readonly owner: Owner
  readonly storeId: string
  /** With what its log is written; null in a store that is only read. */
  readonly log: LogSettings | null
  readonly administration: AdministrationTables
  readonly budgets: BudgetTables
  readonly capabilities: CapabilityTables
  readonly contexts: ContextTables
  readonly deliveries: DeliveryTables
  readonly approvals: ApprovalTables
  readonly grants: GrantTables
  readonly holds: HoldTable
  readonly nonces: NonceTables
  readonly index: OperationIndex
  readonly operations: OperationTables
  readonly possessions: PossessionTables
  readonly receipts: ReceiptTables
  readonly reconciliations: ReconciliationTable
  readonly #tx: Transaction
  readonly outcomes: OutcomeTables

  constructor(tx: Transaction, moment: Moment, log: LogSettings | null = null) {
    this.bootId = moment.bootId
    this.bootMs = moment.bootMs
    this.clockFault = moment.clockFault
    this.nowUnixMs = moment.nowUnixMs
    this.head = moment.head
    this.owner = moment.owner
    this.storeId = moment.storeId
    this.log = log
    this.administration = new AdministrationTables(tx)
    this.budgets = new BudgetTables(tx, moment)
    this.capabilities = new CapabilityTables(tx, moment)
    this.contexts = new ContextTables(tx, moment)
    this.deliveries = new DeliveryTables(tx)
    this.approvals = new ApprovalTables(tx, moment)
    this.grants = new GrantTables(tx, moment)
    this.holds = new HoldTable(tx, moment)
    this.nonces = new NonceTables(tx, moment)
    this.index = new OperationIndex(tx)
    this.operations = new OperationTables(tx, moment)
    this.possessions = new PossessionTables(tx, moment)
    this.receipts = new ReceiptTables(tx, moment)
    this.outcomes = new OutcomeTables(tx)
    this.reconciliations = new ReconciliationTable(tx, moment)
    this.#tx = tx
  }

  /** The moment as tokens, grants and nonces have it. */
  get nowUnixSeconds(): number {
    return Math.floor(this.nowUnixMs / 1_000)
  }

  /** From here on the wall clock counts as it is, back too; the correction is kept. */
  acceptClock(operation: AdminOperation, reading: ClockReading): void {
    const fromUnixMs = readClock(this.#tx)?.highWaterUnixMs ?? reading.unixMs
    const { commitIndex } = this.head
    recordCorrection(this.#tx, operation, { commitIndex, fromUnixMs, reading })
    writeClock(this.#tx, anchoredAt(reading))
  }
}
