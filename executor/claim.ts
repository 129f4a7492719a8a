// Owns the claim of one authorized execution: either it is made now, once and for ever, or what stands of an earlier one is
// given back.
// Must never: begin anything, or take a claim away. Source: execute_once of the caller execution ledger, steps 3 to 11.
import { randomUUID } from 'node:crypto'
import { claimableAt, type HistoricalAuthorization } from '../protocol/caller-authorization.js'
import {
  decodeCallerReport,
  type VerifiedCallerReport,
  verifyCallerReport,
} from '../protocol/caller-report.js'
import { BrokerError } from '../protocol/errors.js'
import type { SigningKey } from '../protocol/keys.js'
import type { ClockRow } from '../protocol/trusted-clock.js'
import type { Transaction } from '../store/transaction.js'
import { capacityReached, notAsWritten, outcomeUnknown } from './ledger-refusals.js'
import {
  type ClaimKey,
  type ClaimRow,
  countClaims,
  findClaim,
  findReport,
  insertClaim,
} from './ledger-rows.js'
import { advanceClock, assertBelieved, judgedNow } from './ledger-time.js'
import { type LedgerPlace, type LedgerVisit, visitLedger } from './ledger-visit.js'

/** A durable claim: who holds one may call the effect, once. */
export interface Claim {
  readonly claimId: string
  readonly claimedAtUnixMs: number
  readonly operationId: string
}

export type ClaimOutcome =
  | { readonly kind: 'claimed'; readonly claim: Claim; readonly clock: ClockRow }
  | { readonly kind: 'replayed'; readonly report: VerifiedCallerReport }

export function claimKeyOf({ signed }: HistoricalAuthorization): ClaimKey {
  const { invocation, kernel_public_key: kernelKey } = signed.authorization
  return { kernelKey, operationId: invocation.operation_id }
}

/**
 * @throws BrokerError `executor_redelivery_changed`, `executor_outcome_unknown`, `caller_delivery_expired`,
 * `clock_jumped`, `executor_capacity`, or why the ledger could not be visited.
 */
export function claimOnce(
  place: LedgerPlace,
  known: HistoricalAuthorization,
  key: SigningKey,
): Promise<ClaimOutcome> {
  return visitLedger(place, async visit => {
    visit.follow(key)
    const outcome = await visit.store.transaction('claim_recorded', tx =>
      claimIn(tx, { known, place, visit }),
    )
    if (outcome.kind === 'claimed') {
      assertReadBack(visit, claimKeyOf(known), outcome.claim)
      visit.follow(key)
    }
    return outcome
  })
}

interface ClaimTerms {
  readonly known: HistoricalAuthorization
  readonly place: LedgerPlace
  readonly visit: LedgerVisit
}

function claimIn(tx: Transaction, { known, place: { time }, visit }: ClaimTerms): ClaimOutcome {
  const now = advanceClock(tx, time)
  const own = claimKeyOf(known)
  const earlier = findClaim(tx, own)
  if (earlier !== undefined) return { kind: 'replayed', report: reportOf(tx, earlier, known) }
  assertBelieved(now)
  claimableAt(known, now.nowUnixMs)
  const { capacity } = visit.segments
  if (countClaims(tx) >= capacity) throw capacityReached(capacity, own.operationId)
  const claim = { ...own, claimId: randomUUID(), claimedAtUnixMs: now.nowUnixMs }
  const { bytes: authorization, digest: authorizationDigest } = known
  insertClaim(tx, visit.store.storeId, { ...claim, authorization, authorizationDigest })
  // Asked again at the last moment: the transaction may have waited for its file.
  const fresh = judgedNow(time, now.row)
  assertBelieved(fresh)
  claimableAt(known, fresh.nowUnixMs)
  return { claim, clock: fresh.row, kind: 'claimed' }
}

/** What an earlier claim left: its report, exactly as it was retained, also when the authorization has expired since. */
function reportOf(tx: Transaction, earlier: ClaimRow, known: HistoricalAuthorization): VerifiedCallerReport {
  if (Buffer.compare(earlier.authorization, known.bytes) !== 0) {
    throw new BrokerError(
      'executor_redelivery_changed',
      'redelivery refused: expected the original authorization of this operation, got changed bytes',
      { operationId: earlier.operationId, outcome: 'not_started' },
    )
  }
  const bytes = findReport(tx, earlier)
  if (bytes === undefined) throw outcomeUnknown(earlier)
  const report = verifiedReport(bytes, known)
  if (report.signed.report.claim_id === earlier.claimId) return report
  throw notAsWritten('the report of this claim', "another claim's")
}

/** A report that does not verify any more says nothing. */
export function verifiedReport(bytes: Uint8Array, known: HistoricalAuthorization): VerifiedCallerReport {
  try {
    return verifyCallerReport(decodeCallerReport(bytes), known)
  } catch (cause) {
    throw notAsWritten('the report that this executor signed', 'another', cause)
  }
}

function assertReadBack({ store }: LedgerVisit, key: ClaimKey, { claimId }: Claim): void {
  if (findClaim(store, key)?.claimId !== claimId) throw notAsWritten('the claim of a moment ago', 'another')
}
