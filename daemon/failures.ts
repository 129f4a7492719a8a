// Owns the signed failure of an attempt: what ended it, and what is known of its dispatch.
// Must never: claim more than the moment can know: before the hold query nothing was started, between it and the
// dispatch commit nothing was committed, after it only what was seen.
// Source: the broker protocol's failure receipt, section 5.17.
import {
  type BrokerExecuteFailure,
  type DispatchKnowledge,
  FAILURE_SCHEMA,
  type FailureOutcome,
  type FailureStage,
  failureReceiptId,
  signFailure,
} from '../protocol/failure.js'
import type { SigningKey } from '../protocol/keys.js'
import type { AttemptRecord } from './attempts.js'
import { refusalRow, type RefusalReason } from './refusals.js'

/** How far an attempt had come when it ended. */
export type Progress = 'before_hold_query' | 'before_commit' | 'committed'

/** After the commit only what an ending is about says where it happened. */
const RESPONSE_REASONS: ReadonlySet<RefusalReason> = new Set([
  'credential_reflected',
  'response_too_large',
  'response_rejected',
])

export function signAttemptFailure(
  attempt: AttemptRecord,
  reason: RefusalReason,
  progress: Progress,
  signing: { readonly nowUnixSeconds: number; readonly key: SigningKey },
): BrokerExecuteFailure {
  const { code, attempt: state } = refusalRow(reason)
  const knowledge = knowledgeOf(progress, state === 'unknown_outcome')
  const body = {
    attemptId: attempt.attemptId,
    brokerCapabilityId: attempt.brokerCapabilityId,
    capabilityDigest: attempt.capabilityDigest,
    diagnosticCode: `chio.broker.${code}`,
    dispatchKnowledge: knowledge,
    holdId: attempt.holdId,
    invocationId: attempt.invocationId,
    issuedAtUnixSeconds: issuedAt(attempt, signing.nowUnixSeconds),
    outcome: outcomeOf(knowledge, code),
    parentCapabilityId: attempt.parentCapabilityId,
    receiptId: failureReceiptId(attempt.requestCanonicalDigest),
    requestDigest: attempt.requestDigest,
    schema: FAILURE_SCHEMA,
    stage: stageOf(progress, reason),
  } as const
  return signFailure(body, signing.key)
}

function stageOf(progress: Progress, reason: RefusalReason): FailureStage {
  if (progress === 'before_hold_query') return 'admission'
  if (progress === 'before_commit') return 'capture'
  return RESPONSE_REASONS.has(reason) ? 'response' : 'dispatch'
}

function knowledgeOf(progress: Progress, isUnknown: boolean): DispatchKnowledge {
  if (progress === 'before_hold_query') return 'not_started'
  if (progress === 'before_commit') return 'not_committed'
  return isUnknown ? 'unknown' : 'committed'
}

function outcomeOf(knowledge: DispatchKnowledge, code: string): FailureOutcome {
  if (knowledge === 'unknown') return 'unknown'
  if (knowledge === 'committed') return 'failed'
  return code === 'authorization_denied' ? 'denied' : 'failed'
}

/** Never before what it is about, whatever the wall clock did since. */
function issuedAt(attempt: AttemptRecord, nowUnixSeconds: number): number {
  const registeredAtUnixSeconds = Math.floor(attempt.registeredAtUnixMs / 1000)
  return Math.max(nowUnixSeconds, registeredAtUnixSeconds, attempt.proofIssuedAtUnixSeconds, 1)
}
