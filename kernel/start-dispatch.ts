// Owns: the start: the one moment in which an operation is authorized, against what lives now.
// Must never: start twice, or answer a second start with anything but the first answer.
// Source: the caller start of the kernel (a committed original is answered again); the nonce's order of checks.
import { unixSeconds } from '../protocol/clock.js'
import { encode } from '../protocol/codec.js'
import { BrokerError } from '../protocol/errors.js'
import { SignedExecutionNonce, verifyNonce } from '../protocol/execution-nonce.js'
import type { StartResult } from '../protocol/kernel-rpc.js'
import { ownOperation } from './find-operation.js'
import type { Caller, KernelContext } from './kernel-context.js'
import { type AdmissionOperation, brokeredCall } from './operation.js'

/** @throws BrokerError with the code of what refuses it; nothing was captured then. */
export async function startDispatch(
  context: KernelContext,
  caller: Caller,
  request: { readonly executionNonce: SignedExecutionNonce; readonly operationId: string },
): Promise<StartResult> {
  const operation = await ownOperation(context, caller, request.operationId)
  const { executionNonce: reserved } = brokeredCall(operation).reservation.answer
  // A committed start is answered again, whatever the time is now: the nonce was judged when it was committed.
  if (operation.commit !== null && isSame(reserved, request.executionNonce)) return startResultOf(operation)
  const issuer = context.keys.kernel.publicKey
  const nonce = verifyNonce(request.executionNonce, {
    boundTo: reserved.nonce.bound_to,
    issuer,
    nowUnixSeconds: unixSeconds(context.clock),
    operationId: operation.operationId,
  })
  return startResultOf(await context.store.start({ issuer, nonce }))
}

function isSame(reserved: SignedExecutionNonce, presented: SignedExecutionNonce): boolean {
  const [one, other] = [reserved, presented].map(nonce => encode(SignedExecutionNonce, nonce))
  return Buffer.compare(one as Uint8Array, other as Uint8Array) === 0
}

function startResultOf({ commit, operationId }: AdmissionOperation): StartResult {
  if (commit === null) {
    throw new BrokerError('invariant', 'start refused: expected a dispatch commit in the store, got none')
  }
  return { captured: commit.captured, operationId, startedAtUnixMs: commit.startedAtUnixMs }
}
