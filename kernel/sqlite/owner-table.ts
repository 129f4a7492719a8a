// Owns: who serves the store (one row, one lease, an epoch that rises with every opening), the fence that every
// commit goes through, and the store's counters.
// Must never: let a commit of an earlier owner through. Source: the admission store's owner lease and mutation fence.
import { BrokerError } from '../../protocol/errors.js'
import { appendOnly } from '../../store/schema.js'
import type { Transaction } from '../../store/transaction.js'

export const OWNER_SQL = `
CREATE TABLE kernel_state (singleton INTEGER PRIMARY KEY CHECK (singleton = 1), owner_epoch INTEGER NOT NULL, lease_id TEXT NOT NULL,
  commit_index INTEGER NOT NULL, revocation_index INTEGER NOT NULL, live_nonces INTEGER NOT NULL CHECK (live_nonces >= 0),
  boot_id TEXT, anchor_unix_ms INTEGER, anchor_boot_ms INTEGER, high_water_unix_ms INTEGER) STRICT;
CREATE TABLE owner_leases (owner_epoch INTEGER PRIMARY KEY, lease_id TEXT NOT NULL, opened_at_unix_ms INTEGER NOT NULL) STRICT;
${appendOnly('owner_leases')}`

/** Who holds the store: fixed at its opening, compared by every write. */
export interface Owner {
  readonly ownerEpoch: number
  readonly leaseId: string
}

/** The store's counters, as the open transaction sees them. */
export interface Head {
  readonly commitIndex: number
  readonly revocationIndex: number
  readonly liveNonces: number
}

/** When a commit happens, and whose it is: what its rows are stamped with. */
export interface Moment {
  /** The store's own time: it never goes back. */
  readonly nowUnixMs: number
  readonly bootId: string
  readonly bootMs: number
  /** What stops admission; null while the clock is believed. */
  readonly clockFault: string | null
  readonly head: Head
  readonly owner: Owner
  readonly storeId: string
}

export const HEAD_SQL =
  'SELECT commit_index AS commitIndex, revocation_index AS revocationIndex, live_nonces AS liveNonces FROM kernel_state'
const FENCE_SQL =
  'UPDATE kernel_state SET commit_index = commit_index + 1 WHERE owner_epoch = ? AND lease_id = ?'

/** Makes the caller the store's next owner and returns its epoch. */
export function takeOver(tx: Transaction, leaseId: string, nowUnixMs: number): number {
  const next = 'ON CONFLICT DO UPDATE SET owner_epoch = owner_epoch + 1, lease_id = excluded.lease_id'
  tx.run(`INSERT INTO kernel_state VALUES (1, 1, ?, 0, 0, 0, NULL, NULL, NULL, NULL) ${next}`, leaseId)
  tx.run('INSERT INTO owner_leases SELECT owner_epoch, lease_id, ? FROM kernel_state', nowUnixMs)
  return tx.get<{ epoch: number }>('SELECT owner_epoch AS epoch FROM kernel_state')?.epoch as number
}

/** Takes the next commit index. @throws BrokerError `fenced` once another owner has the store. */
export function passFence(tx: Transaction, { leaseId, ownerEpoch }: Owner): Head {
  if (tx.run(FENCE_SQL, ownerEpoch, leaseId) !== 1) {
    const expected = `expected owner epoch ${ownerEpoch}, got a later one`
    throw new BrokerError('fenced', `write refused: ${expected}; this process must end`)
  }
  return tx.get<Head>(HEAD_SQL) as Head
}
