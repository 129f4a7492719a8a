// Owns: the start: the one moment in which an operation is authorized, against what lives now.
// Must never: start twice, or answer a second start with anything but the first answer.
// Source: the caller start of the kernel (a committed original is answered again); the nonce's order of checks.
import { encode } from '../protocol/codec.js'
import { BrokerError } from '../protocol/errors.js'
import { isNonceOfOperation, SignedExecutionNonce } from '../protocol/execution-nonce.js'
import type { StartResult } from '../protocol/kernel-rpc.js'
import { ownOperation } from './find-operation.js'
import type { Caller, KernelContext } from './kernel-context.js'
import { nonceSentence } from './liveness.js'
import type { NonceLifetimes } from './nonce-lifetimes.js'
import { type AdmissionOperation, brokeredCall } from './operation.js'

/** @throws BrokerError with the code of what refuses it; nothing was captured then. */
export async function startDispatch(
  context: KernelContext & { readonly nonces: NonceLifetimes },
  caller: Caller,
  request: { readonly executionNonce: SignedExecutionNonce; readonly operationId: string },
): Promise<StartResult> {
  const operation = await ownOperation(context, caller, request.operationId)
  assertReservedNonce(context, operation, request.executionNonce)
  if (operation.commit !== null) return startResultOf(operation)
  context.nonces.assertWithin(operation.operationId)
  return startResultOf(await context.store.start(operation.operationId))
}

function assertReservedNonce(
  context: KernelContext,
  operation: AdmissionOperation,
  presented: SignedExecutionNonce,
): void {
  if (!isNonceOfOperation(presented, operation.operationId, context.keys.kernel.publicKey)) {
    refuseNonce('signature', "this kernel's signature over the nonce and this operation")
  }
  const reserved = encode(SignedExecutionNonce, brokeredCall(operation).reservation.answer.executionNonce)
  if (Buffer.compare(reserved, encode(SignedExecutionNonce, presented)) !== 0) {
    refuseNonce('binding', 'the nonce that was reserved with this operation')
  }
}

function startResultOf({ commit, operationId }: AdmissionOperation): StartResult {
  if (commit === null) {
    throw new BrokerError('invariant', 'start refused: expected a dispatch commit in the store, got none')
  }
  return { captured: commit.captured, operationId, startedAtUnixMs: commit.startedAtUnixMs }
}

function refuseNonce(name: string, expected: string): never {
  throw new BrokerError('execution_nonce_binding', nonceSentence(name, expected))
}
