// Owns the broker's own revocation list, keyed by parent capability id. It works with the kernel silent.
// Must never: lose an entry, or be asked for anything but "is it in".
import type { CapabilityControlCommand } from '../protocol/credential-mutation.js'
import type { Transaction } from '../store/transaction.js'
import type { RowReader } from './attempts.js'
import { Refused } from './refused.js'

const FIND_SQL = 'SELECT commit_index AS commitIndex FROM revocations WHERE parent_capability_id = ?'
const INSERT_SQL = `INSERT INTO revocations (parent_capability_id, revocation_id, authorization_digest,
  revoked_at_unix_ms) VALUES (?, ?, ?, ?)`

/** @throws Refused `revoked_by_broker`. */
export function assertNotRevoked(rows: RowReader, parentCapabilityId: string): void {
  const entry = rows.get<{ commitIndex: number }>(FIND_SQL, parentCapabilityId)
  if (entry !== undefined) throw new Refused('revoked_by_broker', `entry ${entry.commitIndex}`)
}

/** Adds an entry, or finds the one that stands. @returns its commit index. */
export function revoke(
  tx: Transaction,
  command: CapabilityControlCommand,
  authorizationDigest: string,
  revokedAtUnixMs: number,
): number {
  const { capabilityId, revocationId } = command
  const known = tx.get<{ commitIndex: number }>(FIND_SQL, capabilityId)
  if (known !== undefined) return known.commitIndex
  tx.run(INSERT_SQL, capabilityId, revocationId, authorizationDigest, revokedAtUnixMs)
  return tx.get<{ commitIndex: number }>(FIND_SQL, capabilityId)?.commitIndex ?? 0
}
