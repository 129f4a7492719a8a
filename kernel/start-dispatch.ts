// Owns: the start: the one moment in which an operation is authorized, against what lives now.
// Must never: start twice, or answer a second start with anything but the first answer.
// Source: the caller start of the kernel (a committed original is answered again); the nonce's order of checks.
import { unixSeconds } from '../protocol/clock.js'
import { isSameDocument } from '../protocol/codec.js'
import { BrokerError } from '../protocol/errors.js'
import { SignedExecutionNonce, verifyNonce } from '../protocol/execution-nonce.js'
import type { StartResult } from '../protocol/kernel-rpc.js'
import { ownOperation } from './operation/find-operation.js'
import type { Caller, KernelContext } from './kernel-context.js'
import { type AdmissionOperation, brokeredCall } from './operation/operation.js'

/** @throws BrokerError with the code of what refuses it; nothing was captured then. */
export async function startDispatch(
  context: KernelContext,
  caller: Caller,
  request: { readonly executionNonce: SignedExecutionNonce; readonly operationId: string },
): Promise<StartResult> {
  const operation = await ownOperation(context, caller, request.operationId)
  const { executionNonce: reserved } = brokeredCall(operation).reservation.answer
  // A committed start is answered again, whatever the time is now: the nonce was judged when it was committed.
  if (operation.commit !== null && isSameDocument(SignedExecutionNonce, reserved, request.executionNonce))
    return startResultOf(operation)
  await judgeSharing(context, operation)
  const issuer = context.keys.kernel.publicKey
  const nonce = verifyNonce(request.executionNonce, {
    boundTo: reserved.nonce.bound_to,
    issuer,
    nowUnixSeconds: unixSeconds(context.clock),
    operationId: operation.operationId,
  })
  return startResultOf(await context.store.start({ issuer, nonce }))
}

/**
 * Two operations with the same arguments may be one task asked for twice. An agent that was told nothing of the first
 * must not find out by doing it again, so the log says it, and the configuration may forbid it.
 */
export async function judgeSharing(context: KernelContext, operation: AdmissionOperation): Promise<void> {
  const [other] = await context.store.findSharing(operation)
  if (other === undefined) return
  const { operationId } = operation
  if (context.config.onSharedArguments === 'refuse') {
    throw new BrokerError(
      'operation_shares_arguments',
      `start of ${operationId} refused: expected arguments that no unresolved operation has, got those of ${other}; see what became of it first: chio explain ${other}`,
      { operationId, outcome: 'not_started' },
    )
  }
  context.log({ level: 'warn', event: 'arguments_shared', operationId, other })
}

function startResultOf({ commit, operationId }: AdmissionOperation): StartResult {
  if (commit === null) {
    throw new BrokerError('invariant', 'start refused: expected a dispatch commit in the store, got none')
  }
  return { captured: commit.captured, operationId, startedAtUnixMs: commit.startedAtUnixMs }
}
