// Owns: the execution nonces that are reserved with an operation, and the transitions of each; the only place that
// makes a `ReservedNonce`.
// Must never: evict a reservation, forget a transition, or let a nonce through that this owner neither reserved nor
// adopted. Source: the operation-owned nonce reservation and its history.
import { encode } from '../../protocol/codec.js'
import { sha256Hex } from '../../protocol/digest.js'
import { DispatchCommitRecord } from '../../protocol/dispatch-commit.js'
import { BrokerError } from '../../protocol/errors.js'
import { nonceRefusal, type VerifiedNonce } from '../../protocol/execution-nonce.js'
import { encodeNonceReservation, preparationDigest } from '../../protocol/execution-nonce-encoding.js'
import type { PublicKey } from '../../protocol/keys.js'
import { MAXIMUM_NONCE_RESERVATION_BYTES, MAXIMUM_OPERATION_DOCUMENT_BYTES } from '../../protocol/limits.js'
import { appendOnly } from '../../store/schema.js'
import type { Transaction } from '../../store/transaction.js'
import type { Moment } from './owner-table.js'
import { insertRow } from './row-documents.js'

export const NONCE_SQL = `
CREATE TABLE execution_nonces (nonce_id TEXT PRIMARY KEY, operation_id TEXT NOT NULL UNIQUE REFERENCES operations,
  reservation BLOB NOT NULL CHECK (length(reservation) <= ${MAXIMUM_NONCE_RESERVATION_BYTES}), reservation_digest TEXT NOT NULL,
  expires_at_unix_seconds INTEGER NOT NULL, boot_id TEXT NOT NULL, expires_boot_ms INTEGER NOT NULL,
  owner_epoch INTEGER NOT NULL, live INTEGER NOT NULL CHECK (live IN (0, 1))) STRICT;
CREATE TRIGGER execution_nonces_are_fixed BEFORE UPDATE OF nonce_id, operation_id, reservation, reservation_digest,
  expires_at_unix_seconds, boot_id, expires_boot_ms ON execution_nonces BEGIN SELECT RAISE(ABORT, 'a nonce is fixed'); END;
CREATE TRIGGER execution_nonces_end_once BEFORE UPDATE ON execution_nonces WHEN OLD.live = 0
  BEGIN SELECT RAISE(ABORT, 'a nonce ends once'); END;
CREATE TRIGGER execution_nonces_refuses_delete BEFORE DELETE ON execution_nonces BEGIN SELECT RAISE(ABORT, 'nonces are kept'); END;
CREATE TABLE execution_nonce_transitions (operation_id TEXT NOT NULL REFERENCES operations,
  kind TEXT NOT NULL CHECK (kind IN ('capture_pending', 'committed', 'cancelled')), operation_version INTEGER NOT NULL,
  operation_json BLOB NOT NULL CHECK (length(operation_json) <= ${MAXIMUM_OPERATION_DOCUMENT_BYTES}), participant_digest TEXT,
  recorded_at_unix_ms INTEGER NOT NULL, PRIMARY KEY (operation_id, kind),
  CHECK ((participant_digest IS NULL) = (kind = 'cancelled'))) STRICT;
${appendOnly('execution_nonce_transitions')}`

declare const reserved: unique symbol
/** A verified nonce whose live reservation this owner holds. Only this file makes one. */
export type ReservedNonce = VerifiedNonce & { readonly [reserved]: true; readonly reservationDigest: string }

/** Until when a nonce may live on the boot clock: the wall clock may be set back. */
export interface BootEnd {
  readonly bootId: string
  readonly expiresBootMs: number
}

/** Until when a nonce may live on the boot clock, from this moment on. */
export function bootEndOf({ bootId, bootMs, nowUnixMs }: Moment, { signed }: VerifiedNonce): BootEnd {
  return { bootId, expiresBootMs: bootMs + signed.nonce.expires_at * 1_000 - nowUnixMs }
}

interface NonceRow {
  readonly reservation: Uint8Array
  readonly reservation_digest: string
  readonly boot_id: string
  readonly expires_boot_ms: number
  readonly owner_epoch: number
  readonly live: number
}

const TRANSITIONS = `SELECT kind, operation_version AS version, operation_json AS bytes,
  participant_digest AS participantDigest, recorded_at_unix_ms AS recordedAtUnixMs, reservation_digest AS reservationDigest
  FROM execution_nonce_transitions JOIN execution_nonces USING (operation_id) WHERE operation_id = ? ORDER BY version`

export interface NonceTransition extends RetainedOperation {
  readonly kind: 'cancelled' | 'capture_pending' | 'committed'
  readonly participantDigest: string | null
  readonly recordedAtUnixMs: number
  readonly reservationDigest: string
}

/** An operation as a transition retains it: at which version, in its exact bytes. */
export interface RetainedOperation {
  readonly version: number
  readonly bytes: Uint8Array
}

export class NonceTables {
  readonly #tx: Transaction
  readonly #moment: Moment

  constructor(tx: Transaction, moment: Moment) {
    this.#tx = tx
    this.#moment = moment
  }

  /**
   * Reserves a verified nonce with its operation, which stands in this transaction already.
   * @throws BrokerError `execution_nonce_replayed` for an id that was ever reserved; `execution_nonce_capacity`.
   */
  reserve(
    nonce: VerifiedNonce,
    { bootEnd, capacity, issuer }: { bootEnd: BootEnd; capacity: number; issuer: PublicKey },
  ): ReservedNonce {
    const { nonce_id, expires_at } = nonce.signed.nonce
    const known = 'SELECT 1 FROM execution_nonces WHERE nonce_id = ? OR operation_id = ?'
    if (this.#tx.get(known, nonce_id, nonce.operationId) !== undefined) {
      throw nonceRefusal('replayed', 'one that was never reserved before')
    }
    this.#assertRoom(capacity)
    const { operationId: operation_id, signed: signed_nonce } = nonce
    const bytes = encodeNonceReservation({ issuer, operation_id, signed_nonce })
    const digest = sha256Hex(bytes)
    const life = [expires_at, bootEnd.bootId, bootEnd.expiresBootMs, this.#moment.owner.ownerEpoch, 1]
    insertRow(this.#tx, 'execution_nonces', nonce_id, operation_id, bytes, digest, ...life)
    this.#tx.run('UPDATE kernel_state SET live_nonces = live_nonces + 1')
    return { ...nonce, reservationDigest: digest } as ReservedNonce
  }

  /**
   * The live reservation of a verified nonce, held by this owner.
   * @throws BrokerError `execution_nonce_binding`, `execution_nonce_replayed`, `execution_nonce_not_adopted` or
   * `execution_nonce_expired`, in this order.
   */
  reserved(nonce: VerifiedNonce, issuer: PublicKey): ReservedNonce {
    const row = this.#row(nonce.operationId)
    const record = { issuer, operation_id: nonce.operationId, signed_nonce: nonce.signed }
    const bytes = encodeNonceReservation(record)
    if (row === undefined || Buffer.compare(row.reservation, bytes) !== 0) {
      throw nonceRefusal('binding', 'the nonce that was reserved with this operation')
    }
    if (row.live === 0) throw nonceRefusal('replayed', 'a reservation that has not ended')
    const { bootMs, bootId, owner } = this.#moment
    if (row.owner_epoch !== owner.ownerEpoch) throw notAdopted(owner.ownerEpoch, row.owner_epoch)
    if (row.boot_id === bootId && bootMs >= row.expires_boot_ms) {
      throw nonceRefusal('expired', 'a nonce that has not expired; reserve anew')
    }
    return { ...nonce, reservationDigest: row.reservation_digest } as ReservedNonce
  }

  /** What became of an operation's reservation, in order; each beside its line of the operation's history. */
  transitions(operationId: string): NonceTransition[] {
    return this.#tx.all<NonceTransition>(TRANSITIONS, operationId)
  }

  /** Gives a live reservation to the owner of this transaction: recovery does, and nobody else. */
  adopt(operationId: string): void {
    const sql = 'UPDATE execution_nonces SET owner_epoch = ? WHERE operation_id = ? AND live = 1'
    this.#tx.changeOne(sql, this.#moment.owner.ownerEpoch, operationId)
  }

  /** Ends a reservation with the dispatch: two transitions in this commit, each beside its version of the operation. */
  commit(
    nonce: ReservedNonce,
    pending: RetainedOperation,
    committed: RetainedOperation & { readonly commit: DispatchCommitRecord },
  ): void {
    const { nowUnixMs } = this.#moment
    const prepared = preparationDigest({
      operation_digest: sha256Hex(pending.bytes),
      recorded_at_unix_ms: nowUnixMs,
      reservation_digest: nonce.reservationDigest,
    })
    const dispatched = sha256Hex(encode(DispatchCommitRecord, committed.commit))
    this.#record(nonce.operationId, 'capture_pending', pending, prepared)
    this.#record(nonce.operationId, 'committed', committed, dispatched)
    this.#end(nonce.operationId)
  }

  /** Ends the reservation of an operation that is taken back. */
  cancel(operationId: string, retained: RetainedOperation): void {
    this.#record(operationId, 'cancelled', retained, null)
    this.#end(operationId)
  }

  #record(
    operationId: string,
    kind: 'cancelled' | 'capture_pending' | 'committed',
    { bytes, version }: RetainedOperation,
    participantDigest: string | null,
  ): void {
    const row = [kind, version, bytes, participantDigest, this.#moment.nowUnixMs]
    insertRow(this.#tx, 'execution_nonce_transitions', operationId, ...row)
  }

  #end(operationId: string): void {
    this.#tx.changeOne(
      'UPDATE execution_nonces SET live = 0 WHERE operation_id = ? AND live = 1',
      operationId,
    )
    this.#tx.run('UPDATE kernel_state SET live_nonces = live_nonces - 1')
  }

  #row(operationId: string): NonceRow | undefined {
    return this.#tx.get<NonceRow>('SELECT * FROM execution_nonces WHERE operation_id = ?', operationId)
  }

  /** A full store refuses; it never evicts. */
  #assertRoom(capacity: number): void {
    const { live } = this.#tx.get('SELECT live_nonces AS live FROM kernel_state') as { live: number }
    if (live < capacity) return
    throw new BrokerError(
      'execution_nonce_capacity',
      `reserve refused: expected room for one more execution nonce, got ${capacity} reserved; wait for them to be used or to expire`,
      { outcome: 'not_started' },
    )
  }
}

function notAdopted(ownerEpoch: number, reservedEpoch: number): BrokerError {
  return new BrokerError(
    'execution_nonce_not_adopted',
    `execution nonce refused: expected one that owner epoch ${ownerEpoch} reserved or adopted, got one of epoch ${reservedEpoch}; cancel the operation and reserve anew`,
    { outcome: 'not_started' },
  )
}
