// Owns: the two moves of a start that delivers: the capture with its dispatch commit and all that is frozen then, and,
// apart from it, the signature by which the executor may act.
// Must never: sign before the capture is on disk, capture twice, or sign anything else the second time.
// Source: the caller start of the kernel; capture and dispatch commit in one commit, the signature as a step of its own.
import { signCallerAuthorization } from '../../protocol/caller-authorization.js'
import { freezeContext } from '../../protocol/caller-dispatch-context.js'
import { encode } from '../../protocol/codec.js'
import { sha256Hex } from '../../protocol/digest.js'
import { BrokerError } from '../../protocol/errors.js'
import { contextDigest, type InvocationContext } from '../../protocol/invocation-context.js'
import type { SigningKey } from '../../protocol/keys.js'
import { ToolCallRequest } from '../../protocol/tool-call.js'
import type { CallAllowed } from '../calls/evaluate-call.js'
import type { AuthorizeCallCommand, CallDecision, StartCallCommand } from '../calls/call-store.js'
import { dispatch } from '../operation/dispatch.js'
import * as rules from '../operation/move-rules.js'
import type { AdmissionOperation } from '../operation/operation.js'
import { stepsTo, walk } from '../operation/operation-walk.js'
import type { SqliteMove } from '../sqlite/move.js'
import type { ReservedNonce } from '../sqlite/nonce-tables.js'
import { assertSamePin } from './caller-pin.js'
import { authorizationBodyOf } from './dispatch-authorization.js'

/** A start that was judged under its context. */
export type JudgedStart = StartCallCommand & { readonly context: InvocationContext }

/** A start that was judged and allowed. */
export interface AllowedStart {
  readonly evaluation: CallAllowed
  readonly operation: AdmissionOperation
  readonly reserved: ReservedNonce
}

/**
 * Captures the hold and commits the dispatch. Nobody may act on it yet.
 * @throws BrokerError `executor_unpinned` without a pinned executor, `executor_changed` under another than its own.
 */
export function captureCall(move: SqliteMove, command: JudgedStart, start: AllowedStart): CallDecision {
  const { evaluation, operation, reserved } = start
  const { token } = evaluation
  assertSamePin(operation, command.policy)
  const chain = token.delegation_chain ?? []
  move.contexts.append(operation.operationId, command.context)
  const captured = dispatch(move, operation, {
    attach: pending => ({
      caller_dispatch_context_digest: freeze(move, command, { ...start, operation: pending }),
    }),
    evidence: evaluation.evidence,
    reserved,
    revocationIds: [token.id, ...chain.map(({ capability_id }) => capability_id)],
    storeId: move.storeId,
  })
  return startedDecision(move, captured)
}

/** @returns the digest of what was frozen. */
function freeze(
  move: SqliteMove,
  { context, policy, request }: JudgedStart,
  { evaluation, operation }: AllowedStart,
): string {
  const { attachments, binding, operationId, version } = operation
  const { broker_attempt, budget_hold_id, execution_nonce_id } = attachments
  const { executor } = policy
  if (executor === null || broker_attempt === undefined) throw unpinned(operation)
  const { grant, index } = evaluation.grant
  const frozen = freezeContext(
    {
      budget_hold_id: budget_hold_id as string,
      capture_pending_operation_version: version,
      execution_nonce_id: execution_nonce_id as string,
      operation_id: operationId,
      provider_attempt: broker_attempt,
      request_binding_hash: binding.request_binding.request_binding_hash,
      retained_request_digest: sha256Hex(encode(ToolCallRequest, request)),
    },
    {
      capability_expires_at: evaluation.token.expires_at,
      cost_bound: grant.max_cost_per_invocation ?? null,
      executor,
      frozen_at_unix_ms: move.nowUnixMs,
      guard_evidence: [...evaluation.evidence],
      invocation_context_digest: contextDigest(context),
      matched_grant_index: index,
    },
  )
  move.deliveries.insertContext(operationId, frozen)
  return frozen.digest
}

/**
 * Signs what a captured start permits, once, and lets its operation wait for the report. Again, it is answered as it
 * was signed.
 * @throws BrokerError `executor_changed`, `operation_state`; `invariant` where nothing was frozen.
 */
export function authorizeCall(move: SqliteMove, { operationId, policy }: AuthorizeCallCommand): CallDecision {
  const operation = rules.assertFound(move.operations.find(operationId))
  assertSamePin(operation, policy)
  const known = move.deliveries.authorization(operationId)
  if (known !== undefined) return { ...startedDecision(move, operation), authorization: known }
  rules.assertState(
    operation,
    'dispatch_committed',
    'its start was never authorized, and no executor acts on it',
  )
  return signed(move, operation)
}

function signed(move: SqliteMove, operation: AdmissionOperation): CallDecision {
  const { operationId } = operation
  const frozen = move.deliveries.context(operationId)
  if (frozen === undefined) throw withoutCommitment(operation)
  const key = keyOf(move)
  const authorization = signCallerAuthorization(authorizationBodyOf(operation, frozen, key.publicKey), key)
  move.deliveries.insertAuthorization(operationId, authorization)
  const waiting = walk(move, operation, stepsTo('awaiting_caller_report'), { cause: 'authorized' })
  return { ...startedDecision(move, waiting), authorization }
}

/** The receipt of a start is that of its capture, whatever became of it later. */
function startedDecision(move: SqliteMove, operation: AdmissionOperation): CallDecision {
  const receipt = move.receipts.ofStage(operation.operationId, 'started')?.receipt ?? null
  return { operation, receipt, refusal: null }
}

/** The kernel key, with which decisions are signed into the log as well. */
function keyOf({ log }: SqliteMove): SigningKey {
  if (log !== null) return log.key
  throw new BrokerError(
    'invariant',
    'authorization refused: expected a store that was opened with the kernel key, got one opened without',
  )
}

function withoutCommitment({ operationId }: AdmissionOperation): BrokerError {
  return new BrokerError(
    'invariant',
    `start of ${operationId} refused: caller start did not retain a commitment: expected what was frozen with its capture, got none`,
    { operationId },
  )
}

/** @returns the refusal of a start that nobody could carry out. */
export function unpinned({ operationId }: AdmissionOperation): BrokerError {
  return new BrokerError(
    'executor_unpinned',
    `start of ${operationId} refused: expected a pinned executor to deliver to, got none; the operation is unchanged`,
    { operationId, outcome: 'not_started' },
  )
}
