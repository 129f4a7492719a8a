// Owns one execution under one authorization: claim, act, retain, in this order and never twice. Nothing is locked and no
// transaction is open while the callback runs.
// Must never: call back without a claim on disk, call again where a claim stands, or invent a result.
// Source: execute_once of the caller execution ledger, steps 1 to 15.
import {
  type CallerAuthorization,
  type CallerInvocation,
  claimableAt,
  type HistoricalAuthorization,
  verifyHistorical,
} from '../protocol/caller-authorization.js'
import {
  CALLER_REPORT_SCHEMA,
  type CallerObservation,
  signCallerReport,
  type VerifiedCallerReport,
  verifyCallerReport,
} from '../protocol/caller-report.js'
import type { PublicKey, SigningKey } from '../protocol/keys.js'
import type { ClockRow } from '../protocol/trusted-clock.js'
import { type Claim, claimKeyOf, claimOnce, verifiedReport } from './claim.js'
import { notAsWritten, otherExecutor, outcomeUnknown } from './ledger-refusals.js'
import { findClaim, findReport, insertReport } from './ledger-rows.js'
import { advanceClock, assertBelieved, judgedNow } from './ledger-time.js'
import { type LedgerPlace, visitLedger } from './ledger-visit.js'

/** What the effect is waited for with: it has happened, so its report is worth more patience than a question. */
const RETAIN_WAIT_MS = 60_000

/** What the executor knows from its own records, never from the authorization. */
export interface ExecutionTerms {
  /** The executor's own, of the epoch that the ledger was provisioned for. */
  readonly key: SigningKey
  readonly kernelKey: PublicKey
  /** The call that it was told to expect. */
  readonly invocation: CallerInvocation
}

/** Performs the effect and says what was observed. Called at most once for one authorization, whatever it does. */
export type ExecutorCallback = (claim: Claim) => CallerObservation | Promise<CallerObservation>

/**
 * Carries an authorization out, or gives back what was retained of it, byte for byte.
 * @throws BrokerError `executor_mismatch`; `caller_delivery_shape`, `_binding`, `_signature`, `_expired`; `clock_jumped`;
 * `executor_capacity`; `executor_redelivery_changed`; `executor_outcome_unknown` for a claim without a report, also when
 * the callback throws; or why the ledger could not be used.
 */
export async function executeOnce(
  place: LedgerPlace,
  authorization: CallerAuthorization,
  terms: ExecutionTerms,
  callback: ExecutorCallback,
): Promise<VerifiedCallerReport> {
  const { executor } = place
  assertOwnKey(place, terms.key)
  const { invocation, kernelKey } = terms
  const known = verifyHistorical(authorization, { executor, invocation, kernelKey })
  const outcome = await claimOnce(place, known, terms.key)
  if (outcome.kind === 'replayed') return outcome.report
  const { claim, clock } = outcome
  const startedAtUnixMs = startOf(place, known, { claim, clock })
  try {
    const observation = await callback(claim)
    const endedAtUnixMs = Math.max(startedAtUnixMs, judgedNow(place.time, clock).nowUnixMs)
    const observed = { ...observation, claim, endedAtUnixMs, startedAtUnixMs }
    return await retain(place, known, signedReport(known, observed, terms.key), terms.key)
  } catch (cause) {
    throw outcomeUnknown(claim, cause)
  }
}

/** @throws BrokerError `executor_mismatch` for another key than the ledger was provisioned for. */
export function assertOwnKey({ executor }: Pick<LedgerPlace, 'executor'>, key: SigningKey): void {
  if (key.publicKey !== executor.public_key) throw otherExecutor('the key that the ledger is pinned to')
}

/** The last look at the time before the effect; whoever fails here has acted on nothing, and the claim stands. */
function startOf(
  { time }: LedgerPlace,
  known: HistoricalAuthorization,
  { claim, clock }: { readonly claim: Claim; readonly clock: ClockRow },
): number {
  const now = judgedNow(time, clock)
  assertBelieved(now)
  const startedAtUnixMs = Math.max(claim.claimedAtUnixMs, now.nowUnixMs)
  return claimableAt(known, startedAtUnixMs).claimableAtUnixMs
}

interface Observed extends CallerObservation {
  readonly claim: Claim
  readonly startedAtUnixMs: number
  readonly endedAtUnixMs: number
}

function signedReport(
  known: HistoricalAuthorization,
  observed: Observed,
  key: SigningKey,
): VerifiedCallerReport {
  const { claim, endedAtUnixMs, output, realized_cost, startedAtUnixMs } = observed
  const report = {
    authorization_digest: known.digest,
    claim_id: claim.claimId,
    completed_at_unix_ms: endedAtUnixMs,
    execution_started_at_unix_ms: startedAtUnixMs,
    executor: known.signed.authorization.executor,
    output,
    realized_cost,
    schema: CALLER_REPORT_SCHEMA,
  } as const
  return verifyCallerReport(signCallerReport(report, key), known)
}

/** On disk, and read back from it, before anybody is told. */
function retain(
  place: LedgerPlace,
  known: HistoricalAuthorization,
  report: VerifiedCallerReport,
  key: SigningKey,
): Promise<VerifiedCallerReport> {
  const own = claimKeyOf(known)
  const claimId = report.signed.report.claim_id
  const act: Parameters<typeof visitLedger<VerifiedCallerReport>>[1] = async visit => {
    visit.follow(key)
    const { store } = visit
    await store.transaction('report_retained', tx => {
      if (findClaim(tx, own)?.claimId !== claimId) throw notAsWritten('the claim of this report', 'another')
      advanceClock(tx, place.time)
      insertReport(tx, store.storeId, own, report.bytes)
    })
    visit.follow(key)
    const kept = findReport(store, own)
    if (kept === undefined || Buffer.compare(kept, report.bytes) !== 0) {
      throw notAsWritten('the report of a moment ago', 'another')
    }
    return verifiedReport(kept, known)
  }
  return visitLedger(place, act, Math.max(place.lockWaitMs, RETAIN_WAIT_MS))
}
