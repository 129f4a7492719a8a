// Owns: what a committed start says to its executor: the attempt that it announces, and the body of the authorization,
// both made from what the start fixed and from nothing that is true only now.
// Must never: lengthen an interval, or be made of an operation that was not captured for an executor.
// Source: `chio.caller-dispatch-authorization.v1`: its members and their origins.
import {
  CALLER_AUTHORIZATION_SCHEMA,
  type CallerAuthorizationBody,
  type CallerExecutor,
  type CallerInvocation,
  callerTransportId,
} from '../../protocol/caller-authorization.js'
import type { FrozenContext } from '../../protocol/caller-dispatch-context.js'
import type { ProviderAttempt } from '../../protocol/dispatch-commit.js'
import { BrokerError } from '../../protocol/errors.js'
import type { PublicKey } from '../../protocol/keys.js'
import { MAXIMUM_IDENTIFIER_BYTES } from '../../protocol/limits.js'
import { callerAttemptId } from '../calls/tool-call-terms.js'
import { type AdmissionOperation, toolCallOf } from '../operation/operation.js'
import { commitRecord } from '../operation/operation-document.js'

const MS_PER_SECOND = 1_000

/**
 * The attempt by which an executor carries a call out.
 * @throws BrokerError `invalid_request` for a server whose name leaves no room for that of its transport.
 */
export function callerAttemptOf(
  operationId: string,
  { executor, serverId }: { readonly executor: CallerExecutor; readonly serverId: string },
): ProviderAttempt {
  const transport = callerTransportId(serverId)
  if (Buffer.byteLength(transport) > MAXIMUM_IDENTIFIER_BYTES) {
    throw new BrokerError(
      'invalid_request',
      `tool call server_id refused: expected one that names a transport of at most ${MAXIMUM_IDENTIFIER_BYTES} bytes, got a longer one`,
    )
  }
  return {
    attempt_id: callerAttemptId(operationId),
    operation_id: operationId,
    transport_id: transport,
    transport_key_epoch: executor.key_epoch,
  }
}

/** The one call that an operation is about, as whoever verifies names it. */
export function callerInvocationOf(operation: AdmissionOperation): CallerInvocation {
  const { binding, operationId } = operation
  const { parameterHash, serverId, toolName } = toolCallOf(operation).terms
  return {
    capability_digest: binding.authorization_capability_hash,
    capability_id: binding.capability_id,
    operation_id: operationId,
    parameters_digest: parameterHash,
    request_binding_hash: binding.request_binding.request_binding_hash,
    request_id: binding.request_id,
    server_id: serverId,
    tool_name: toolName,
  }
}

/** What is signed: the same body whenever it is asked for, since nothing in it is of now. */
export function authorizationBodyOf(
  operation: AdmissionOperation,
  { context, digest, frame }: FrozenContext,
  kernelKey: PublicKey,
): CallerAuthorizationBody {
  const { terms } = toolCallOf(operation)
  const expiresAtUnixSeconds = Math.min(terms.executionNonce.nonce.expires_at, context.capability_expires_at)
  return {
    committed: {
      budget_hold_id: frame.budget_hold_id,
      dispatch_commit: attemptCommitOf(operation),
      execution_nonce_id: frame.execution_nonce_id,
      frozen_context_digest: digest,
    },
    executor: context.executor,
    expires_at_unix_ms: expiresAtUnixSeconds * MS_PER_SECOND,
    invocation: callerInvocationOf(operation),
    kernel_public_key: kernelKey,
    not_before_unix_ms: context.frozen_at_unix_ms,
    schema: CALLER_AUTHORIZATION_SCHEMA,
  }
}

function attemptCommitOf({ commit, operationId }: AdmissionOperation) {
  const provider_attempt = commit?.provider_attempt ?? null
  if (commit !== null && provider_attempt !== null) return { ...commitRecord(commit), provider_attempt }
  throw new BrokerError(
    'invariant',
    `start of ${operationId} refused: caller start did not retain a commitment`,
    {
      operationId,
    },
  )
}
