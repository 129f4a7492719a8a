// What a kernel freezes when it captures a call for an executor: the frame that names the operation, and inside of it
// the kernel's own context as the text of a canonical object. Its digest enters the dispatch authorization, and what a
// report is ended by is read from nowhere else. Must never hold arguments, an output or a credential: digests, bounds
// and verdicts alone.
// Source: `chio.admission-caller-dispatch-context.v1` and the return context inside of it, third version.
import { CallerExecutor } from './caller-authorization.js'
import {
  array,
  decode,
  digest,
  encode,
  type Infer,
  identifier,
  integer,
  literal,
  nullable,
  object,
  text,
} from './codec.js'
import { sha256Hex } from './digest.js'
import { ProviderAttempt } from './dispatch-commit.js'
import { BrokerError } from './errors.js'
import { GuardEvidence } from './kernel-receipt.js'
import {
  MAXIMUM_CALL_GUARDS_COUNT,
  MAXIMUM_CALLER_CONTEXT_BYTES,
  MAXIMUM_INTEGER,
  MAXIMUM_KERNEL_CONTEXT_BYTES,
} from './limits.js'
import { MonetaryAmount } from './scope.js'
import { Count, UnixMs, UnixSeconds } from './unix-time.js'

export const CALLER_CONTEXT_SCHEMA = 'chio.admission-caller-dispatch-context.v1'
export const RETURN_CONTEXT_SCHEMA = 'chio.kernel-caller-return-context.v3'
const WHAT = 'caller dispatch context'

/** What the kernel has to know again when the report comes, whatever has changed by then. */
export const CallerReturnContext = object({
  capability_expires_at: UnixSeconds,
  /** The most that this call may cost; null under a grant that bounds no cost. */
  cost_bound: nullable(MonetaryAmount),
  executor: CallerExecutor,
  frozen_at_unix_ms: UnixMs,
  guard_evidence: array(GuardEvidence, { max: MAXIMUM_CALL_GUARDS_COUNT }),
  invocation_context_digest: digest(),
  matched_grant_index: Count,
  schema: literal(RETURN_CONTEXT_SCHEMA),
})
export type CallerReturnContext = Infer<typeof CallerReturnContext>

export const CallerDispatchContext = object({
  budget_hold_id: identifier(),
  capture_pending_operation_version: integer({ min: 1, max: MAXIMUM_INTEGER }),
  execution_nonce_id: identifier(),
  kernel_context_json: text({ minBytes: 2, maxBytes: MAXIMUM_KERNEL_CONTEXT_BYTES }),
  operation_id: digest(),
  provider_attempt: ProviderAttempt,
  request_binding_hash: digest(),
  retained_request_digest: digest(),
  schema: literal(CALLER_CONTEXT_SCHEMA),
})
export type CallerDispatchContext = Infer<typeof CallerDispatchContext>

export interface FrozenContext {
  readonly frame: CallerDispatchContext
  readonly context: CallerReturnContext
  /** The exact bytes that are retained. */
  readonly bytes: Uint8Array
  /** SHA-256 of `bytes`, in hex. */
  readonly digest: string
}

/** @throws BrokerError `invalid_request` for a frame over 1,048,576 bytes, or a context over 524,288. */
export function freezeContext(
  members: Omit<CallerDispatchContext, 'kernel_context_json' | 'schema'>,
  context: Omit<CallerReturnContext, 'schema'>,
): FrozenContext {
  const named = { ...context, schema: RETURN_CONTEXT_SCHEMA } as const
  const kernelContext = Buffer.from(encode(CallerReturnContext, named)).toString('utf8')
  const frame = { ...members, kernel_context_json: kernelContext, schema: CALLER_CONTEXT_SCHEMA } as const
  const bytes = encode(CallerDispatchContext, frame)
  assertWithin(bytes)
  return { bytes, context: named, digest: sha256Hex(bytes), frame }
}

/** Reads exactly what was frozen. @throws BrokerError `invalid_request`. */
export function readFrozenContext(bytes: Uint8Array): FrozenContext {
  assertWithin(bytes)
  const frame = decode(CallerDispatchContext, bytes, WHAT)
  const context = decode(CallerReturnContext, Buffer.from(frame.kernel_context_json, 'utf8'), WHAT)
  return { bytes, context, digest: sha256Hex(bytes), frame }
}

function assertWithin({ length }: Uint8Array): void {
  if (length <= MAXIMUM_CALLER_CONTEXT_BYTES) return
  throw new BrokerError(
    'invalid_request',
    `${WHAT} refused: expected at most ${MAXIMUM_CALLER_CONTEXT_BYTES} bytes, got ${length}`,
  )
}
