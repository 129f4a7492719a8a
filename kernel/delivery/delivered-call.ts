// Owns: what a verified report becomes: the raw outcome that is kept, what guards judge of it, and what its receipt
// says: who attested it, by which observation, with which content by digest.
// Must never: put an output into a receipt, or call the executor's word the provider's.
// Source: `chio.raw-invocation-outcome.v1`; the caller observation and content hash of the kernel's receipts.
import type { FrozenContext } from '../../protocol/caller-dispatch-context.js'
import type { VerifiedCallerReport } from '../../protocol/caller-report.js'
import { canonicalBytes } from '../../protocol/canonical.js'
import { BrokerError } from '../../protocol/errors.js'
import { valueHash } from '../../protocol/kernel-receipt.js'
import { MAXIMUM_TOOL_OUTPUT_BYTES } from '../../protocol/limits.js'
import { RAW_OUTCOME_SCHEMA, type RawInvocationOutcome } from '../../protocol/tool-outcome.js'
import type { DecisionReason } from '../log/decision-receipt.js'
import { type AdmissionOperation, toolCallOf } from '../operation/operation.js'
import { judgeOutput, type OutputGuard, type OutputJudgement } from '../output/output-guards.js'
import type { RetainedReport } from './retained-report.js'

/** A value is delivered as a body without headers: guards know one form alone. */
const VALUE_STATUS = 200

/** The same raw outcome whenever the same report comes: nothing in it is of now. */
export function rawOutcomeOf(
  operation: AdmissionOperation,
  { context }: FrozenContext,
  { digest, signed: { report } }: VerifiedCallerReport,
): RawInvocationOutcome {
  const { binding, commit, operationId } = operation
  const { executionNonce, serverId, toolName } = toolCallOf(operation).terms
  const attempt = commit?.provider_attempt ?? null
  if (commit === null || attempt === null) throw withoutAttempt(operationId)
  const { expires_at, issued_at } = executionNonce.nonce
  return {
    dispatch_fence: commit.store_fence,
    dispatch_operation_version: commit.committed_version,
    elapsed_millis: report.completed_at_unix_ms - report.execution_started_at_unix_ms,
    matched_grant_index: context.matched_grant_index,
    operation_id: operationId,
    output: { kind: 'value', value: report.output },
    pre_invocation_guard_evidence: context.guard_evidence,
    provider_attempt: attempt,
    receipt_metadata_snapshot: null,
    reported_cost: report.realized_cost,
    request_id: binding.request_id,
    schema: RAW_OUTCOME_SCHEMA,
    stream_limits: {
      max_chunks: 1,
      max_duration_secs: expires_at - issued_at,
      max_total_bytes: MAXIMUM_TOOL_OUTPUT_BYTES,
    },
    tool_name: toolName,
    tool_server: serverId,
    transport_terminal_evidence_digest: digest,
  }
}

/** What the guards over outputs say of a value. */
export function judgeValue(
  guards: readonly OutputGuard[],
  { output }: RawInvocationOutcome,
): OutputJudgement {
  return judgeOutput(guards, { body: canonicalBytes(output.value), headers: [], status: VALUE_STATUS })
}

/** What the receipt of the end says. The content hash of what guards withheld is that of nothing. */
export function deliveredReason(
  { output, reported_cost }: RawInvocationOutcome,
  { observation }: RetainedReport,
  { evidence, refusal }: OutputJudgement,
): Omit<DecisionReason, 'cause'> {
  const cost = reported_cost === null ? {} : { realized_cost: { ...reported_cost } }
  const metadata = { attested_by: 'executor', caller_delivery: { ...observation }, ...cost }
  return {
    delivery: { contentHash: refusal === null ? valueHash(output.value) : null, metadata },
    deniedBy: refusal?.guard,
    evidence,
  }
}

function withoutAttempt(operationId: string): BrokerError {
  return new BrokerError(
    'invariant',
    `outcome of ${operationId} refused: expected a committed attempt, got none`,
  )
}
