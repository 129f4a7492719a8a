// Owns: the rows of budgets, their holds and their events. Events are found by id before anything is counted, so that
// one that is repeated after a crash counts once.
// Must never: let a grant be overspent, a hold end twice or an event be forgotten: the tables refuse it by themselves.
// Source: budget holds of the kernel; idempotency by event id; sqlite.org/stricttables.html.
import { encode } from '../../protocol/codec.js'
import { BrokerError } from '../../protocol/errors.js'
import { appendOnly } from '../../store/schema.js'
import type { Transaction } from '../../store/transaction.js'
import {
  applyBudgetEvent,
  type Budget,
  BudgetEvent,
  type BudgetHold,
  type BudgetLimits,
  BudgetOutcome,
  type BudgetRow,
} from '../calls/budget.js'
import type { Moment } from './owner-table.js'
import { insertRow, readDocument, type Reader } from './row-documents.js'

export const BUDGET_SQL = `
CREATE TABLE budgets (capability_id TEXT NOT NULL, grant_index INTEGER NOT NULL CHECK (grant_index >= 0),
  maximum_invocations INTEGER, maximum_units INTEGER, maximum_units_per_call INTEGER,
  invocations INTEGER NOT NULL CHECK (invocations >= 0), exposed_units INTEGER NOT NULL CHECK (exposed_units >= 0),
  realized_units INTEGER NOT NULL CHECK (realized_units >= 0), seq INTEGER NOT NULL, PRIMARY KEY (capability_id, grant_index),
  CHECK (maximum_invocations IS NULL OR invocations <= maximum_invocations),
  CHECK (maximum_units IS NULL OR exposed_units + realized_units <= maximum_units)) STRICT;
CREATE TRIGGER budgets_keep_limits BEFORE UPDATE OF capability_id, grant_index, maximum_invocations, maximum_units, maximum_units_per_call
  ON budgets BEGIN SELECT RAISE(ABORT, 'the limits of a budget are fixed'); END;
CREATE TRIGGER budgets_refuses_delete BEFORE DELETE ON budgets BEGIN SELECT RAISE(ABORT, 'budgets are kept'); END;
CREATE TABLE budget_holds (hold_id TEXT PRIMARY KEY, capability_id TEXT NOT NULL, grant_index INTEGER NOT NULL,
  authorized_units INTEGER NOT NULL, remaining_units INTEGER NOT NULL CHECK (remaining_units BETWEEN 0 AND authorized_units),
  realized_units INTEGER NOT NULL CHECK (realized_units BETWEEN 0 AND authorized_units),
  state TEXT NOT NULL CHECK (state IN ('open', 'reconciled', 'released', 'reversed')), CHECK (state = 'open' OR remaining_units = 0),
  FOREIGN KEY (capability_id, grant_index) REFERENCES budgets) STRICT;
CREATE TRIGGER budget_holds_end_once BEFORE UPDATE ON budget_holds WHEN OLD.state <> 'open' BEGIN SELECT RAISE(ABORT, 'a hold ends once'); END;
CREATE TRIGGER budget_holds_refuses_delete BEFORE DELETE ON budget_holds BEGIN SELECT RAISE(ABORT, 'holds are kept'); END;
CREATE TABLE budget_events (event_seq INTEGER PRIMARY KEY, event_id TEXT NOT NULL UNIQUE, event BLOB NOT NULL, outcome BLOB NOT NULL,
  commit_index INTEGER NOT NULL) STRICT;
${appendOnly('budget_events')}`

interface StoredBudget extends BudgetRow, BudgetLimits {}

const BUDGET_COLUMNS = `capability_id AS capabilityId, grant_index AS grantIndex, maximum_invocations AS maximumInvocations,
  maximum_units AS maximumUnits, maximum_units_per_call AS maximumUnitsPerCall, invocations, exposed_units AS exposedUnits,
  realized_units AS realizedUnits, seq`
const HOLD_COLUMNS = `hold_id AS holdId, capability_id AS capabilityId, grant_index AS grantIndex, authorized_units AS authorizedUnits,
  remaining_units AS remainingUnits, realized_units AS realizedUnits, state`

export class BudgetReads {
  readonly #reader: Reader

  constructor(reader: Reader) {
    this.#reader = reader
  }

  /** What was counted under one grant of a token; zeros before its first call. */
  row(capabilityId: string, grantIndex: number): BudgetRow {
    return rowOf(this.stored(capabilityId, grantIndex), { capabilityId, grantIndex })
  }

  hold(holdId: string): BudgetHold | undefined {
    return this.#reader.get(`SELECT ${HOLD_COLUMNS} FROM budget_holds WHERE hold_id = ?`, holdId)
  }

  protected stored(capabilityId: string, grantIndex: number): StoredBudget | undefined {
    const sql = `SELECT ${BUDGET_COLUMNS} FROM budgets WHERE capability_id = ? AND grant_index = ?`
    return this.#reader.get(sql, capabilityId, grantIndex)
  }
}

export class BudgetTables extends BudgetReads {
  readonly #tx: Transaction
  readonly #moment: Moment

  constructor(tx: Transaction, moment: Moment) {
    super(tx)
    this.#tx = tx
    this.#moment = moment
  }

  /**
   * Counts an event, or answers one that was counted before as it was answered then. A denial is kept as well.
   * @throws BrokerError `invariant` for a known event id with another request, and what the rules of budgets refuse.
   */
  apply(eventId: string, event: BudgetEvent): BudgetOutcome {
    const request = encode(BudgetEvent, event)
    const known = this.#known(eventId, request)
    if (known !== undefined) return known
    const before = this.#before(event)
    const { denial, hold, row } = applyBudgetEvent(before, event)
    const eventSeq = this.#nextSeq()
    const counted = denial === null ? { ...row, seq: eventSeq } : row
    if (denial === null) this.#write(before, { hold, row: counted }, event)
    const outcome = { denial, eventSeq, holdState: hold?.state ?? null, row: counted }
    const documents = [request, encode(BudgetOutcome, outcome)]
    insertRow(this.#tx, 'budget_events', eventSeq, eventId, ...documents, this.#moment.head.commitIndex)
    return outcome
  }

  #known(eventId: string, request: Uint8Array): BudgetOutcome | undefined {
    const sql = 'SELECT event, outcome FROM budget_events WHERE event_id = ?'
    const row = this.#tx.get<{ event: Uint8Array; outcome: Uint8Array }>(sql, eventId)
    if (row === undefined) return undefined
    if (Buffer.compare(row.event, request) === 0) return readDocument(BudgetOutcome, row.outcome)
    throw new BrokerError(
      'invariant',
      `budget event ${eventId} refused: expected what it asked the first time, got another request`,
    )
  }

  #before(event: BudgetEvent): Budget {
    const hold = this.hold(event.holdId)
    if (event.kind !== 'authorize') return { hold, row: this.#rowOfHold(hold) }
    const { capabilityId, grantIndex, limits } = event
    const stored = this.stored(capabilityId, grantIndex)
    if (stored !== undefined) assertSameLimits(stored, limits)
    return { hold, row: rowOf(stored, event) }
  }

  /** The rules refuse an event without its hold; until then it has no row. */
  #rowOfHold(hold: BudgetHold | undefined): BudgetRow {
    return this.row(hold?.capabilityId ?? '', hold?.grantIndex ?? 0)
  }

  #write(before: Budget, { hold, row }: Budget, event: BudgetEvent): void {
    const { capabilityId, exposedUnits, grantIndex, invocations, realizedUnits, seq } = row
    const place = [capabilityId, grantIndex]
    const counts = [invocations, exposedUnits, realizedUnits, seq]
    if (event.kind === 'authorize' && before.row.seq === 0) {
      const { maximumInvocations, maximumUnits, maximumUnitsPerCall } = event.limits
      const limits = [maximumInvocations, maximumUnits, maximumUnitsPerCall]
      insertRow(this.#tx, 'budgets', ...place, ...limits, ...counts)
    } else {
      const sql =
        'UPDATE budgets SET invocations = ?, exposed_units = ?, realized_units = ?, seq = ? WHERE capability_id = ? AND grant_index = ?'
      this.#tx.changeOne(sql, ...counts, ...place)
    }
    if (hold !== undefined) this.#writeHold(hold, before.hold !== undefined)
  }

  #writeHold(hold: BudgetHold, isKnown: boolean): void {
    const { authorizedUnits, capabilityId, grantIndex, holdId, realizedUnits, remainingUnits, state } = hold
    if (isKnown) {
      const sql = `UPDATE budget_holds SET remaining_units = ?, realized_units = ?, state = ? WHERE hold_id = ? AND state = 'open'`
      this.#tx.changeOne(sql, remainingUnits, realizedUnits, state, holdId)
      return
    }
    const units = [authorizedUnits, remainingUnits, realizedUnits]
    insertRow(this.#tx, 'budget_holds', holdId, capabilityId, grantIndex, ...units, state)
  }

  #nextSeq(): number {
    const sql = 'SELECT coalesce(max(event_seq), 0) + 1 AS next FROM budget_events'
    return (this.#tx.get(sql) as { next: number }).next
  }
}

function rowOf(
  stored: StoredBudget | undefined,
  { capabilityId, grantIndex }: { readonly capabilityId: string; readonly grantIndex: number },
): BudgetRow {
  const { exposedUnits = 0, invocations = 0, realizedUnits = 0, seq = 0 } = stored ?? {}
  return { capabilityId, exposedUnits, grantIndex, invocations, realizedUnits, seq }
}

/** A token id names one token here, so the limits of its grant never change. */
function assertSameLimits(stored: StoredBudget, limits: BudgetLimits): void {
  const isSame =
    stored.maximumInvocations === limits.maximumInvocations &&
    stored.maximumUnits === limits.maximumUnits &&
    stored.maximumUnitsPerCall === limits.maximumUnitsPerCall
  if (isSame) return
  throw new BrokerError(
    'invariant',
    `budget of ${stored.capabilityId} refused: expected the limits of its first call, got others`,
  )
}
