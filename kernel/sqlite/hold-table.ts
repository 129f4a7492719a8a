// Owns: the holds of executions: reserved with an operation, then captured or reversed, once.
// Must never: forget a hold or end it twice: the table refuses both by itself.
// Source: budget holds of the kernel's wire (authorize, capture, reverse).
import type { Transaction } from '../../store/transaction.js'
import type { AdmissionOperation, Announcement } from '../operation/operation.js'
import type { Moment } from './owner-table.js'
import { insertRow } from './row-documents.js'

export const HOLD_SQL = `
CREATE TABLE holds (hold_id TEXT PRIMARY KEY, operation_id TEXT NOT NULL UNIQUE REFERENCES operations,
  grant_id TEXT NOT NULL REFERENCES grants, authorize_event_id TEXT NOT NULL UNIQUE,
  capture_event_id TEXT NOT NULL UNIQUE, reverse_event_id TEXT NOT NULL UNIQUE,
  state TEXT NOT NULL CHECK (state IN ('reserved', 'captured', 'reversed')), commit_index INTEGER NOT NULL) STRICT;
CREATE TRIGGER holds_end_once BEFORE UPDATE ON holds WHEN OLD.state <> 'reserved' BEGIN SELECT RAISE(ABORT, 'a hold ends once'); END;
CREATE TRIGGER holds_refuses_delete BEFORE DELETE ON holds BEGIN SELECT RAISE(ABORT, 'holds are kept'); END;
`

export class HoldTable {
  readonly #tx: Transaction
  readonly #moment: Moment

  constructor(tx: Transaction, moment: Moment) {
    this.#tx = tx
    this.#moment = moment
  }

  insert({ binding, ids, request }: Announcement): void {
    const owner = [binding.operation_id, request.grantId]
    const events = [ids.authorizeEventId, ids.captureEventId, ids.reverseEventId]
    const { commitIndex } = this.#moment.head
    insertRow(this.#tx, 'holds', ids.holdId, ...owner, ...events, 'reserved', commitIndex)
    this.#tx.changeOne('UPDATE grants SET held = held + 1 WHERE grant_id = ?', request.grantId)
  }

  /** Captures or reverses the one hold. */
  end(operation: AdmissionOperation, state: 'captured' | 'reversed'): void {
    const end = `UPDATE holds SET state = ?, commit_index = ? WHERE operation_id = ? AND state = 'reserved'`
    this.#tx.changeOne(end, state, this.#moment.head.commitIndex, operation.operationId)
    const give = 'UPDATE grants SET held = held - 1, captured = captured + ? WHERE grant_id = ?'
    this.#tx.changeOne(give, state === 'captured' ? 1 : 0, operation.binding.capability_id)
  }
}
