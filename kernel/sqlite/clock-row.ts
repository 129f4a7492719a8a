// Owns: the clock's high water in the store, and the corrections that administrators signed.
// Must never: decide whether a clock is believed. Source: the admission store's clock.
import type { AdminOperation } from '../../protocol/administration.js'
import { appendOnly } from '../../store/schema.js'
import type { Transaction } from '../../store/transaction.js'
import type { ClockReading, ClockRow } from '../trusted-clock.js'
import { insertRow } from './row-documents.js'

export const CLOCK_SQL = `
CREATE TABLE clock_corrections (authorization_digest TEXT PRIMARY KEY, from_unix_ms INTEGER NOT NULL, to_unix_ms INTEGER NOT NULL,
  boot_id TEXT NOT NULL, boot_ms INTEGER NOT NULL, commit_index INTEGER NOT NULL) STRICT;
${appendOnly('clock_corrections')}`

const READ = `SELECT boot_id AS bootId, anchor_unix_ms AS anchorUnixMs, anchor_boot_ms AS anchorBootMs,
  high_water_unix_ms AS highWaterUnixMs FROM kernel_state WHERE boot_id IS NOT NULL`
const WRITE =
  'UPDATE kernel_state SET boot_id = ?, anchor_unix_ms = ?, anchor_boot_ms = ?, high_water_unix_ms = ?'

export function readClock(tx: Pick<Transaction, 'get'>): ClockRow | undefined {
  return tx.get<ClockRow>(READ)
}

export function writeClock(tx: Transaction, row: ClockRow): void {
  tx.run(WRITE, row.bootId, row.anchorUnixMs, row.anchorBootMs, row.highWaterUnixMs)
}

/** One correction, kept for ever beside the authorization under which it was made. */
export function recordCorrection(
  tx: Transaction,
  operation: AdminOperation,
  {
    commitIndex,
    fromUnixMs,
    reading,
  }: { readonly commitIndex: number; readonly fromUnixMs: number; readonly reading: ClockReading },
): void {
  const { bootId, bootMs, unixMs } = reading
  const { authorizationDigest } = operation
  insertRow(tx, 'clock_corrections', authorizationDigest, fromUnixMs, unixMs, bootId, bootMs, commitIndex)
}
