// Owns the valid documents of tool calls that fuzzing begins with: their requests and answers on the kernel's socket,
// and an outcome as it is kept. Signatures in them need not verify.
import { canonicalBytes } from '../../protocol/canonical.js'
import type { JsonValue } from '../../protocol/json.js'

type Document = Readonly<Record<string, JsonValue>>
type Frozen = (name: string) => Document
type Named = readonly [string, JsonValue]

const DIGEST = 'd'.repeat(64)
const CONTEXT = {
  generation: 1,
  labels: ['public', 'team'],
  schema: 'chio.invocation-context.v1',
  session_id: 'session-own',
}
const FENCE = { lease_id: 'lease-own', owner_epoch: 1, store_uuid: 'store-own' }
const CALLED = {
  dispatch_operation_version: 6,
  operation_id: DIGEST,
  request_id: 'call-own',
  tool_name: 'append',
  tool_server: 'notes',
}

export function callRequests(of: Frozen): Named[] {
  const [request, executionNonce] = [of('tool-call-request'), of('execution-nonce')]
  return [
    ['call_preflight', { context: CONTEXT, request }],
    ['call_reserve', { context: CONTEXT, executionNonce, request }],
    ['call_reserve', { context: CONTEXT, executionNonce: null, request }],
    ['call_start', { arguments: { note: 'x' }, context: CONTEXT, credentials: {}, executionNonce }],
    ['call_start', { arguments: null, context: CONTEXT, credentials: { dpop_proof: 'x' }, executionNonce }],
    ['call_reconcile', { authorization: of('caller-authorization'), report: of('caller-report') }],
    ['revoke_capability', { capabilityId: 'capability-own' }],
  ]
}

export function callResults(of: Frozen): Named[] {
  const ready = {
    check: null,
    code: null,
    executionAuthorized: false,
    executionNonce: of('execution-nonce'),
    operationId: DIGEST,
    reason: null,
    receipt: of('kernel-receipt'),
    state: 'ready_to_dispatch',
    verdict: 'allow',
  }
  const denied = {
    ...ready,
    check: 'budget',
    code: 'grant_exhausted',
    executionNonce: null,
    operationId: null,
    reason: 'refused',
    state: null,
    verdict: 'deny',
  }
  return [
    ['call_preflight', denied],
    ['call_reconcile', { ...denied, output: { kind: 'value', value: { written: true } } }],
    ['call_preflight', ready],
    ['call_reserve', ready],
    ['call_start', { ...ready, authorization: of('caller-authorization'), receipt: null }],
    ['revoke_capability', { capabilityId: 'capability-own', commitIndex: 1, newlyRevoked: true }],
  ]
}

const ATTEMPT = {
  attempt_id: 'attempt-own',
  operation_id: DIGEST,
  transport_id: 'caller-report:notes',
  transport_key_epoch: 1,
}

/** What is frozen when a call is captured: the kernel's own context, and the frame that has it as text. */
export function contextDocuments(of: Frozen): JsonValue[] {
  const { executor } = of('caller-authorization')['authorization'] as { executor: JsonValue }
  const returned = {
    capability_expires_at: 1_800_003_600,
    cost_bound: { currency: 'EUR', units: 3 },
    executor,
    frozen_at_unix_ms: 1_800_000_000_000,
    guard_evidence: [{ guard_name: 'egress', verdict: true }],
    invocation_context_digest: DIGEST,
    matched_grant_index: 0,
    schema: 'chio.kernel-caller-return-context.v3',
  }
  const frame = {
    budget_hold_id: 'hold-own',
    capture_pending_operation_version: 7,
    execution_nonce_id: 'nonce-own',
    kernel_context_json: Buffer.from(canonicalBytes(returned)).toString('utf8'),
    operation_id: DIGEST,
    provider_attempt: ATTEMPT,
    request_binding_hash: DIGEST,
    retained_request_digest: DIGEST,
    schema: 'chio.admission-caller-dispatch-context.v1',
  }
  return [returned, frame]
}

/** A raw outcome, and the record that names it. */
export function outcomeDocuments(): JsonValue[] {
  const raw = {
    ...CALLED,
    dispatch_fence: FENCE,
    elapsed_millis: 12,
    matched_grant_index: 0,
    output: { kind: 'value', value: { written: true } },
    pre_invocation_guard_evidence: [{ guard_name: 'egress', verdict: true }],
    provider_attempt: ATTEMPT,
    receipt_metadata_snapshot: null,
    reported_cost: { currency: 'EUR', units: 3 },
    schema: 'chio.raw-invocation-outcome.v1',
    stream_limits: { max_chunks: 1, max_duration_secs: 60, max_total_bytes: 1_048_576 },
    transport_terminal_evidence_digest: DIGEST,
  }
  const outcome = {
    ...CALLED,
    disposition: { state: 'returned' },
    lifecycle_digest: DIGEST,
    outcome_id: DIGEST,
    raw_output: { digest: DIGEST, uri: `sha256:${DIGEST}` },
    raw_output_size_bytes: 512,
    recorded_at_unix_ms: 1_800_000_000_000,
    recording_fence: FENCE,
    schema: 'chio.tool-outcome.v1',
    version: 1,
  }
  return [raw, outcome]
}
