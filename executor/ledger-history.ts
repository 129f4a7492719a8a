// Owns the history of a ledger: one line for every claim, report, segment and correction, in order, each with a digest over all before
// it. It is what the head signs, so that nothing of it can be taken away or exchanged unnoticed.
// Must never: repair a line. Source: the immutable rows of the caller execution ledger.
import { canonicalBytes } from '../protocol/canonical.js'
import { domainDigestHex, sha256Hex } from '../protocol/digest.js'
import type { Store } from '../store/store.js'
import type { Transaction } from '../store/transaction.js'
import { notAsWritten } from './ledger-refusals.js'

const HISTORY_DOMAIN = 'chio.caller-executor-history.v1'
const LINES = 'SELECT sequence, kind, content_digest AS contentDigest, digest FROM caller_executor_history'

export type HistoryKind = 'claim' | 'clock' | 'report' | 'segment'

export interface HistoryLine {
  readonly sequence: number
  readonly kind: HistoryKind
  readonly contentDigest: string
  /** Over this line and, by the one before it, over all. */
  readonly digest: string
}

/** Where the history of a ledger stands. */
export interface HistoryMark {
  readonly sequence: number
  readonly digest: string
}

/** Before the first line. */
export function genesisOf(storeId: string): HistoryMark {
  return { digest: domainDigestHex(HISTORY_DOMAIN, Buffer.from(storeId)), sequence: 0 }
}

function lineAfter(
  { digest: previous, sequence }: HistoryMark,
  kind: HistoryKind,
  contentDigest: string,
): HistoryLine {
  const line = { contentDigest, kind, sequence: sequence + 1 }
  return { ...line, digest: domainDigestHex(HISTORY_DOMAIN, canonicalBytes({ ...line, previous })) }
}

/** Adds a line in the transaction that writes what it is about. */
export function appendLine(tx: Transaction, storeId: string, kind: HistoryKind, contentDigest: string): void {
  const last = tx.get<HistoryLine>(`${LINES} ORDER BY sequence DESC LIMIT 1`) ?? genesisOf(storeId)
  const line = lineAfter(last, kind, contentDigest)
  tx.run(
    'INSERT INTO caller_executor_history VALUES (?, ?, ?, ?)',
    line.sequence,
    kind,
    contentDigest,
    line.digest,
  )
}

/**
 * Every line, the chain recomputed.
 * @throws BrokerError `store_replaced` for a line that is missing or another.
 */
export function readHistory(store: Store): readonly HistoryLine[] {
  const lines = store.all<HistoryLine>(`${LINES} ORDER BY sequence`)
  let last = genesisOf(store.storeId)
  for (const { contentDigest, digest, kind, sequence } of lines) {
    const expected = lineAfter(last, kind, contentDigest)
    if (sequence !== expected.sequence || digest !== expected.digest) {
      throw notAsWritten(`line ${expected.sequence} of its history as it was written`, 'another')
    }
    last = expected
  }
  return lines
}

/** What a claim's line is the digest of. */
export function claimContent(claim: {
  readonly authorizationDigest: string
  readonly claimId: string
  readonly claimedAtUnixMs: number
  readonly kernelKey: string
  readonly operationId: string
}): string {
  const { authorizationDigest, claimId, claimedAtUnixMs, kernelKey, operationId } = claim
  return sha256Hex(canonicalBytes({ authorizationDigest, claimId, claimedAtUnixMs, kernelKey, operationId }))
}

/** @throws BrokerError `store_replaced` unless the lines of this kind are about exactly these contents. */
export function assertContents(
  lines: readonly HistoryLine[],
  kind: HistoryKind,
  contents: readonly string[],
): void {
  const told = lines.filter(line => line.kind === kind).map(line => line.contentDigest)
  if (told.length !== contents.length) {
    throw notAsWritten(`${told.length} rows of kind ${kind}, as its history tells`, `${contents.length}`)
  }
  const found = new Set(contents)
  if (told.some(content => !found.has(content))) {
    throw notAsWritten(`every ${kind} as its history tells it`, 'another')
  }
}
