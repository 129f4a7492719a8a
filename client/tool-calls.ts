// Owns: a host's side of the tool-call sequence: preflight, reserve of the same request under a refreshed context, start.
// Must never: change the request between its steps, or go on after an answer that allows nothing.
// Source: the caller API of the kernel (preflight -> refreshed context -> reserve with the nonce -> start).
import { BrokerError } from '../protocol/errors.js'
import type { InvocationContext } from '../protocol/invocation-context.js'
import type { ToolCallRequest } from '../protocol/tool-call.js'
import type { CallAnswer, CallCredentials } from '../protocol/tool-call-rpc.js'
import type { KernelClient } from './kernel-client.js'

/** Judges a call and has the nonce of its operation issued. It authorizes nothing. */
export function preflightCall(
  kernel: KernelClient,
  request: ToolCallRequest,
  context: InvocationContext,
): Promise<CallAnswer> {
  return kernel.call('call_preflight', { context, request })
}

/**
 * Reserves the call of a preflight: the same request, its nonce, and the context as the host reads it now.
 * @throws BrokerError `operation_state` when the preflight answered no nonce.
 */
export function reserveAfterPreflight(
  kernel: KernelClient,
  request: ToolCallRequest,
  preflight: CallAnswer,
  refreshed: InvocationContext,
): Promise<CallAnswer> {
  const executionNonce = nonceOf(preflight, 'preflight')
  return kernel.call('call_reserve', { context: refreshed, executionNonce, request })
}

/** Starts a reserved call with its own arguments, the context of this moment and the credentials that it needs. */
export function startReserved(
  kernel: KernelClient,
  request: ToolCallRequest,
  reservation: CallAnswer,
  {
    context,
    credentials = {},
  }: { readonly context: InvocationContext; readonly credentials?: CallCredentials },
): Promise<CallAnswer> {
  const executionNonce = nonceOf(reservation, 'reserve')
  return kernel.call('call_start', { arguments: request.params, context, credentials, executionNonce })
}

function nonceOf({ executionNonce, operationId }: CallAnswer, step: string) {
  if (executionNonce !== null) return executionNonce
  throw new BrokerError(
    'operation_state',
    `durable admission failed: ${step} returned no nonce; inspect its decision`,
    { operationId: operationId ?? undefined, outcome: 'not_started' },
  )
}
