// Owns: one open transaction of the kernel's store: the tables of every part, stamped with one moment.
// Must never: outlive its transaction. Source: the admission store's mutation fence.
import type { Transaction } from '../../store/transaction.js'
import { AdministrationTables } from './administration-tables.js'
import { BudgetTables } from './budget-tables.js'
import { GrantTables } from './grant-tables.js'
import { HoldTable } from './hold-table.js'
import { NonceTables } from './nonce-tables.js'
import { OperationTables } from './operation-tables.js'
import { OutcomeTables } from './outcome-tables.js'
import type { Head, Moment, Owner } from './owner-table.js'

export class SqliteMove implements Moment {
  readonly bootId: string
  readonly bootMs: number
  readonly clockFault: string | null
  readonly nowUnixMs: number
  readonly head: Head
  readonly owner: Owner
  readonly administration: AdministrationTables
  readonly budgets: BudgetTables
  readonly grants: GrantTables
  readonly holds: HoldTable
  readonly nonces: NonceTables
  readonly operations: OperationTables
  readonly outcomes: OutcomeTables

  constructor(tx: Transaction, moment: Moment) {
    this.bootId = moment.bootId
    this.bootMs = moment.bootMs
    this.clockFault = moment.clockFault
    this.nowUnixMs = moment.nowUnixMs
    this.head = moment.head
    this.owner = moment.owner
    this.administration = new AdministrationTables(tx)
    this.budgets = new BudgetTables(tx, moment)
    this.grants = new GrantTables(tx, moment)
    this.holds = new HoldTable(tx, moment)
    this.nonces = new NonceTables(tx, moment)
    this.operations = new OperationTables(tx, moment)
    this.outcomes = new OutcomeTables(tx)
  }
}
