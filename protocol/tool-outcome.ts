// What a tool call brought back, as the kernel keeps it: the raw outcome, exactly as it was reported, and the record that
// names it by digest. Must never be read as a verdict: whether the output is delivered is decided after it is kept.
// Source: `chio.raw-invocation-outcome.v1` and `chio.tool-outcome.v1` of the tool-outcome store.
import {
  array,
  type Codec,
  digest,
  encode,
  type Infer,
  identifier,
  integer,
  json,
  literal,
  nullable,
  object,
  tagged,
  text,
} from './codec.js'
import { ProviderAttempt, StoreFence } from './dispatch-commit.js'
import { sha256Hex } from './digest.js'
import { GuardEvidence } from './kernel-receipt.js'
import {
  MAXIMUM_CALL_GUARDS_COUNT,
  MAXIMUM_INTEGER,
  MAXIMUM_TOOL_OUTCOME_BYTES,
  MAXIMUM_TOOL_OUTPUT_BYTES,
} from './limits.js'
import { MonetaryAmount } from './scope.js'
import { Count, UnixMs } from './unix-time.js'

export const RAW_OUTCOME_SCHEMA = 'chio.raw-invocation-outcome.v1'
export const TOOL_OUTCOME_SCHEMA = 'chio.tool-outcome.v1'
const positive = integer({ min: 1, max: MAXIMUM_INTEGER })
const URI_PREFIX = 'sha256:'

/** One value: whoever reports reports it whole. */
export const ToolOutput = tagged('kind', {
  value: object({ value: json({ maxBytes: MAXIMUM_TOOL_OUTPUT_BYTES }) }),
})
export type ToolOutput = Infer<typeof ToolOutput>

/** The bounds under which the output was taken; a value is one chunk. */
export const StreamLimits = object({
  max_chunks: positive,
  max_duration_secs: positive,
  max_total_bytes: positive,
})

export const RawInvocationOutcome = object({
  dispatch_fence: StoreFence,
  dispatch_operation_version: positive,
  elapsed_millis: Count,
  matched_grant_index: Count,
  operation_id: digest(),
  output: ToolOutput,
  pre_invocation_guard_evidence: array(GuardEvidence, { max: MAXIMUM_CALL_GUARDS_COUNT }),
  provider_attempt: ProviderAttempt,
  receipt_metadata_snapshot: nullable(json({ maxBytes: MAXIMUM_TOOL_OUTPUT_BYTES })),
  reported_cost: nullable(MonetaryAmount),
  request_id: identifier(),
  schema: literal(RAW_OUTCOME_SCHEMA),
  stream_limits: StreamLimits,
  tool_name: identifier(),
  tool_server: identifier(),
  transport_terminal_evidence_digest: digest(),
})
export type RawInvocationOutcome = Infer<typeof RawInvocationOutcome>

const BlobReference = object({
  digest: digest(),
  uri: text({ minBytes: URI_PREFIX.length + 64, maxBytes: URI_PREFIX.length + 64 }),
})

/** What was fixed when the outcome was recorded; its raw bytes rest beside it, sealed. */
const identity = {
  dispatch_operation_version: positive,
  operation_id: digest(),
  request_id: identifier(),
  tool_name: identifier(),
  tool_server: identifier(),
}
const lifecycle = {
  ...identity,
  disposition: object({ state: literal('returned') }),
  outcome_id: digest(),
  raw_output: BlobReference,
  raw_output_size_bytes: integer({ min: 1, max: MAXIMUM_TOOL_OUTCOME_BYTES }),
  recorded_at_unix_ms: UnixMs,
  recording_fence: StoreFence,
  schema: literal(TOOL_OUTCOME_SCHEMA),
  version: positive,
}
const Lifecycle = object(lifecycle)
export const ToolOutcome = object({ ...lifecycle, lifecycle_digest: digest() })
export type ToolOutcome = Infer<typeof ToolOutcome>

const OutcomeIdentity = object({ ...identity, raw_output: BlobReference })

/** SHA-256 of a value under the name of what it is digested for. */
function namedDigest<T>(domain: string, codec: Codec<T>, value: T): string {
  const named = object({ domain: literal(domain), value: codec })
  return sha256Hex(encode(named, { domain, value }))
}

/** Who recorded an outcome, and when. */
export interface Recording {
  readonly fence: Infer<typeof StoreFence>
  readonly nowUnixMs: number
}

/** The record of a raw outcome: its id follows from the operation and the exact bytes. */
export function toolOutcomeOf(raw: RawInvocationOutcome, { fence, nowUnixMs }: Recording): ToolOutcome {
  const bytes = encode(RawInvocationOutcome, raw)
  const digestHex = sha256Hex(bytes)
  const { dispatch_operation_version, operation_id, request_id, tool_name, tool_server } = raw
  const named = {
    dispatch_operation_version,
    operation_id,
    raw_output: { digest: digestHex, uri: `${URI_PREFIX}${digestHex}` },
    request_id,
    tool_name,
    tool_server,
  }
  const recorded = {
    ...named,
    disposition: { state: 'returned' },
    outcome_id: namedDigest('chio.tool-outcome.id.v1', OutcomeIdentity, named),
    raw_output_size_bytes: bytes.length,
    recorded_at_unix_ms: nowUnixMs,
    recording_fence: fence,
    schema: TOOL_OUTCOME_SCHEMA,
    version: 1,
  } as const
  return {
    ...recorded,
    lifecycle_digest: namedDigest('chio.tool-outcome.lifecycle.v1', Lifecycle, recorded),
  }
}

/** Whether a stored record is the one of these raw bytes: the same report, whenever it comes again. */
export function isOutcomeOf(outcome: ToolOutcome, raw: RawInvocationOutcome): boolean {
  return outcome.raw_output.digest === sha256Hex(encode(RawInvocationOutcome, raw))
}
