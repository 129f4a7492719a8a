// Owns: when an operation is due for settling, and how long an attempt that the broker holds can still last.
// Must never: wait longer than the whole interval: a wall clock set back would otherwise stop settling.
// Source: the kernel's settling rules (start + 30 s + timeoutMs + 10 s; nonce expiry; the attempt's deadline).
import { isBeforeDispatch } from '../../protocol/admission-states.js'
import type { SignedExecutionNonce } from '../../protocol/execution-nonce.js'
import type { AttemptStatus } from '../../protocol/status.js'
import type { ToolCallTerms } from '../calls/tool-call-terms.js'
import { type AdmissionOperation, brokeredCall } from '../operation/operation.js'
import { PREPARED_LIFETIME_MS, SETTLEMENT_GRACE_MS } from '../policy.js'

const MS_PER_SECOND = 1_000
/** An attempt is looked at once its deadline has passed, not in the same tick. */
const BEYOND_DEADLINE_MS = 1_000

/** Milliseconds until an open operation is due, by a wall clock that may have stepped meanwhile. */
export function dueInMs(operation: AdmissionOperation, nowUnixMs: number): number {
  const { fromUnixMs, intervalMs } = intervalOf(operation)
  return clamp(fromUnixMs + intervalMs - nowUnixMs, intervalMs)
}

function intervalOf(operation: AdmissionOperation): { fromUnixMs: number; intervalMs: number } {
  const proposal = operation.attachments.threshold_proposal?.body
  const { kind } = operation.call
  if ((kind === 'announced' || kind === 'announced_call') && proposal !== undefined) {
    const { proposalCreatedAt, proposalDeadline } = proposal
    return {
      fromUnixMs: proposalCreatedAt * MS_PER_SECOND,
      intervalMs: (proposalDeadline - proposalCreatedAt) * MS_PER_SECOND,
    }
  }
  if (operation.call.kind === 'tool_call') return ofToolCall(operation, operation.call.terms)
  const { answer, request } = brokeredCall(operation).reservation
  if (operation.commit === null || isBeforeDispatch(operation.state)) {
    return ofNonce(answer.executionNonce)
  }
  return {
    fromUnixMs: operation.commit.startedAtUnixMs,
    intervalMs: PREPARED_LIFETIME_MS + request.timeoutMs + SETTLEMENT_GRACE_MS,
  }
}

/** Once it is captured or reported, what is left to do is this kernel's own. */
function ofToolCall({ commit }: AdmissionOperation, { executionNonce }: ToolCallTerms) {
  if (commit === null) return ofNonce(executionNonce)
  return { fromUnixMs: commit.startedAtUnixMs, intervalMs: 0 }
}

/** Whether nothing is due before somebody else acts: an executor takes its time. */
export function waitsForExecutor({ state }: AdmissionOperation): boolean {
  return state === 'awaiting_caller_report'
}

function ofNonce({ nonce: { expires_at, issued_at } }: SignedExecutionNonce) {
  return { fromUnixMs: issued_at * MS_PER_SECOND, intervalMs: (expires_at - issued_at) * MS_PER_SECOND }
}

/** Milliseconds until the broker must have let go of an attempt that it holds now. */
export function heldForMs(operation: AdmissionOperation, status: AttemptStatus, nowUnixMs: number): number {
  const { registration, reservation } = brokeredCall(operation)
  const { timeoutMs } = reservation.request
  const committedAt = status.dispatchCommittedAtUnixMs
  if (committedAt !== null) {
    return BEYOND_DEADLINE_MS + clamp(committedAt + timeoutMs - nowUnixMs, timeoutMs)
  }
  const nonceEndUnixMs = (registration?.nonceExpiresAtUnixSeconds ?? 0) * MS_PER_SECOND
  return BEYOND_DEADLINE_MS + clamp(nonceEndUnixMs - nowUnixMs, PREPARED_LIFETIME_MS)
}

function clamp(leftMs: number, mostMs: number): number {
  return Math.min(Math.max(leftMs, 0), mostMs)
}
