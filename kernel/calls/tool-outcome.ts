// Owns: the recording of what a tool returned: once an operation, before anything is made of it; the same again is
// answered, anything else is refused.
// Must never: keep an output readable, or take a second one for an operation that has one.
// Source: `record_tool_returned` of the tool-outcome store (inserted or exact replay).
import { decode, encode } from '../../protocol/codec.js'
import { BrokerError } from '../../protocol/errors.js'
import {
  isOutcomeOf,
  RawInvocationOutcome,
  type ToolOutcome,
  toolOutcomeOf,
} from '../../protocol/tool-outcome.js'
import type { AdmissionOperation, SealedRequest } from '../operation/operation.js'
import { walk } from '../operation/operation-walk.js'
import { openBytes, sealBytes } from '../sealed-bytes.js'
import type { SqliteMove } from '../sqlite/move.js'
import type { StoredOutcome } from '../sqlite/outcome-tables.js'

const DOMAIN = 'chio.kernel-tool-outcome.v1'

/** A raw outcome that was sealed before the transaction that records it. */
export interface ReturnedOutcome {
  readonly raw: RawInvocationOutcome
  readonly sealed: SealedRequest
}

export interface RecordedOutcome {
  readonly kind: 'exact_replay' | 'inserted'
  readonly operation: AdmissionOperation
  readonly outcome: ToolOutcome
}

export function sealOutcome(storageKey: Uint8Array, raw: RawInvocationOutcome): ReturnedOutcome {
  const purpose = { domain: DOMAIN, operationId: raw.operation_id }
  return { raw, sealed: sealBytes(storageKey, purpose, encode(RawInvocationOutcome, raw)) }
}

/** @throws BrokerError `storage` when key, operation or bytes do not belong together. */
export function openOutcome(
  storageKey: Uint8Array,
  { outcome, sealed }: StoredOutcome,
): RawInvocationOutcome {
  try {
    const purpose = { domain: DOMAIN, operationId: outcome.operation_id }
    const raw = decode(RawInvocationOutcome, openBytes(storageKey, purpose, sealed), 'raw outcome')
    if (isOutcomeOf(outcome, raw)) return raw
  } catch (cause) {
    throw unreadable(cause)
  }
  throw unreadable(undefined)
}

/**
 * Keeps what a dispatched operation returned, and moves it on to its finalizing in the same commit.
 * @throws BrokerError `conflict` for another outcome of an operation that has one, or one of another dispatch;
 * `operation_state` for an operation that was not dispatched.
 */
export function recordToolReturned(
  move: SqliteMove,
  operation: AdmissionOperation,
  { raw, sealed }: ReturnedOutcome,
): RecordedOutcome {
  const known = move.outcomes.ofOperation(operation.operationId)
  if (known !== undefined) {
    if (isOutcomeOf(known.outcome, raw)) return { kind: 'exact_replay', operation, outcome: known.outcome }
    conflict('the outcome that was recorded first', operation)
  }
  assertOutcomeOf(raw, operation)
  const { nowUnixMs, owner } = move
  const fence = { ...raw.dispatch_fence, lease_id: owner.leaseId, owner_epoch: owner.ownerEpoch }
  const outcome = toolOutcomeOf(raw, { fence, nowUnixMs })
  move.outcomes.insert({ outcome, sealed })
  const step = { attach: { tool_outcome_id: outcome.outcome_id }, to: 'finalizing' } as const
  return { kind: 'inserted', operation: walk(move, operation, [step], { cause: 'returned' }), outcome }
}

/** An outcome belongs to the one dispatch that it answers. */
function assertOutcomeOf(raw: RawInvocationOutcome, operation: AdmissionOperation): void {
  const { commit, operationId, state } = operation
  if (commit === null || (state !== 'dispatch_committed' && state !== 'awaiting_caller_report')) {
    throw new BrokerError(
      'operation_state',
      `outcome of ${operationId} refused: expected an operation that was dispatched and has not ended, got ${state}; inspect it`,
      { operationId },
    )
  }
  const isOwn =
    raw.operation_id === operationId &&
    raw.request_id === operation.binding.request_id &&
    raw.dispatch_operation_version === commit.committed_version &&
    raw.dispatch_fence.lease_id === commit.store_fence.lease_id &&
    raw.dispatch_fence.store_uuid === commit.store_fence.store_uuid &&
    raw.provider_attempt.attempt_id === commit.provider_attempt?.attempt_id
  if (!isOwn) conflict('one of this dispatch', operation)
}

function unreadable(cause: unknown): BrokerError {
  const expected = 'expected one sealed for this operation under this storage key'
  return new BrokerError('storage', `tool outcome refused: ${expected}`, { cause })
}

function conflict(expected: string, { operationId }: AdmissionOperation): never {
  throw new BrokerError(
    'conflict',
    `outcome of ${operationId} refused: expected ${expected}, got another; the operation is unchanged`,
    { operationId },
  )
}
