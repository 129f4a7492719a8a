// Owns the rows of a ledger: its executor, its claims, its reports. What is written is in the caller's transaction.
// Must never: change a row, or decide anything. Source: the tables of the caller execution ledger.
import { encode } from '../protocol/codec.js'
import { CallerExecutor } from '../protocol/caller-authorization.js'
import { sha256Hex } from '../protocol/digest.js'
import type { FirstRows } from '../store/provision.js'
import type { Store } from '../store/store.js'
import type { Transaction } from '../store/transaction.js'
import { appendLine, claimContent } from './ledger-history.js'
import { notAsWritten } from './ledger-refusals.js'
import type { FirstSegment } from './ledger-segments.js'

/** One claim, as it is kept. */
export interface ClaimRow {
  readonly authorization: Uint8Array
  readonly authorizationDigest: string
  readonly claimId: string
  readonly claimedAtUnixMs: number
  readonly kernelKey: string
  readonly operationId: string
}

/** Which operation of which kernel. */
export type ClaimKey = Pick<ClaimRow, 'kernelKey' | 'operationId'>

type Reads = Pick<Transaction, 'get'>

export function executorBytes(executor: CallerExecutor): Uint8Array {
  return encode(CallerExecutor, executor)
}

export function insertConfiguration(rows: FirstRows, { identity, maxOperations }: FirstSegment): void {
  rows.run('INSERT INTO caller_executor_configuration VALUES (1, ?, ?)', identity, maxOperations)
}

/** @throws BrokerError `store_replaced` for a ledger without one. */
export function readConfiguration(store: Store): FirstSegment {
  const row = store.get<FirstSegment>(
    'SELECT identity, max_operations AS maxOperations FROM caller_executor_configuration',
  )
  if (row === undefined) throw notAsWritten('a configuration', 'none')
  return row
}

const CLAIMS = `SELECT kernel_key AS kernelKey, operation_id AS operationId, authorization_digest AS authorizationDigest,
  claim_id AS claimId, claimed_at_unix_ms AS claimedAtUnixMs`

export function findClaim(rows: Reads, { kernelKey, operationId }: ClaimKey): ClaimRow | undefined {
  const own = `${CLAIMS}, authorization FROM caller_executor_claims WHERE kernel_key = ? AND operation_id = ?`
  return rows.get<ClaimRow>(own, kernelKey, operationId)
}

export function findReport(rows: Reads, { kernelKey, operationId }: ClaimKey): Uint8Array | undefined {
  const own = 'SELECT report FROM caller_executor_reports WHERE kernel_key = ? AND operation_id = ?'
  return rows.get<{ report: Uint8Array }>(own, kernelKey, operationId)?.report
}

export function countClaims(rows: Reads): number {
  return rows.get<{ count: number }>('SELECT count(*) AS count FROM caller_executor_claims')?.count ?? 0
}

export function countReports(rows: Reads): number {
  return rows.get<{ count: number }>('SELECT count(*) AS count FROM caller_executor_reports')?.count ?? 0
}

export function insertClaim(tx: Transaction, storeId: string, claim: ClaimRow): void {
  const { authorization, authorizationDigest, claimId, claimedAtUnixMs, kernelKey, operationId } = claim
  tx.run(
    'INSERT INTO caller_executor_claims VALUES (?, ?, ?, ?, ?, ?)',
    kernelKey,
    operationId,
    authorizationDigest,
    authorization,
    claimId,
    claimedAtUnixMs,
  )
  appendLine(tx, storeId, 'claim', claimContent(claim))
}

export function insertReport(tx: Transaction, storeId: string, key: ClaimKey, report: Uint8Array): void {
  const digest = sha256Hex(report)
  tx.run(
    'INSERT INTO caller_executor_reports VALUES (?, ?, ?, ?)',
    key.kernelKey,
    key.operationId,
    report,
    digest,
  )
  appendLine(tx, storeId, 'report', digest)
}

export function insertSegment(
  tx: Transaction,
  storeId: string,
  { header, segment }: { readonly header: Uint8Array; readonly segment: number },
): void {
  tx.run('INSERT INTO caller_executor_segments VALUES (?, ?)', segment, header)
  appendLine(tx, storeId, 'segment', sha256Hex(header))
}

/** What the lines of the claims are about, and those of the reports. */
export function contentsOf(store: Store): { readonly claims: string[]; readonly reports: string[] } {
  const claims = store.all<Omit<ClaimRow, 'authorization'>>(`${CLAIMS} FROM caller_executor_claims`)
  const reports = store.all<{ digest: string }>('SELECT report_digest AS digest FROM caller_executor_reports')
  return { claims: claims.map(claimContent), reports: reports.map(({ digest }) => digest) }
}
