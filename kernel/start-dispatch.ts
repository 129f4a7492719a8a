// Owns: the start: the one moment in which an operation is authorized, against what lives now.
// Must never: start twice, or answer a second start with anything but the first answer.
// Source: the caller start of the kernel (a committed original is answered again); the nonce's order of checks.
import { unixSeconds } from '../protocol/clock.js'
import { isSameDocument } from '../protocol/codec.js'
import { BrokerError } from '../protocol/errors.js'
import { SignedExecutionNonce, verifyNonce } from '../protocol/execution-nonce.js'
import type { StartResult } from '../protocol/kernel-rpc.js'
import { MAXIMUM_SHARING, type StartWarning } from '../protocol/operation-rpc.js'
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
    return startResultOf(operation, await sharingWarnings(context, operation))
  const warnings = await judgeSharing(context, operation)
  const issuer = context.keys.kernel.publicKey
  const nonce = verifyNonce(request.executionNonce, {
    boundTo: reserved.nonce.bound_to,
    issuer,
    nowUnixSeconds: unixSeconds(context.clock),
    operationId: operation.operationId,
  })
  return startResultOf(await context.store.start({ issuer, nonce }), warnings)
}

/**
 * Two operations with the same arguments may be one task asked for twice. An agent that was told nothing of the first
 * must not find out by doing it again, so the log and the answer say it, and the configuration may forbid it.
 * @returns what the answer to the start warns of.
 */
export async function judgeSharing(
  context: KernelContext,
  operation: AdmissionOperation,
): Promise<readonly StartWarning[]> {
  const sharing = await sharedWith(context, operation)
  const [other] = sharing
  if (other === undefined) return []
  const { operationId } = operation
  if (context.config.onSharedArguments === 'refuse') {
    throw new BrokerError(
      'operation_shares_arguments',
      `start of ${operationId} refused: expected arguments that no unresolved operation has, got those of ${other}; see what became of it first: chio explain ${other}`,
      { operationId, outcome: 'not_started' },
    )
  }
  context.log({ level: 'warn', event: 'arguments_shared', operationId, other })
  return warningsOf(sharing)
}

/** What is so at this moment of an operation that was started before; it refuses nothing any more. */
export async function sharingWarnings(
  context: KernelContext,
  operation: AdmissionOperation,
): Promise<readonly StartWarning[]> {
  return warningsOf(await sharedWith(context, operation))
}

async function sharedWith(context: KernelContext, operation: AdmissionOperation): Promise<readonly string[]> {
  return (await context.store.findSharing(operation)).slice(0, MAXIMUM_SHARING)
}

function warningsOf(operationIds: readonly string[]): readonly StartWarning[] {
  if (operationIds.length === 0) return []
  const sentence = `started with the arguments of ${operationIds.length} operations whose effect is not known; see what became of them: chio explain ${operationIds[0]}`
  return [{ code: 'operation_shares_arguments', operationIds: [...operationIds], sentence }]
}

function startResultOf(
  { commit, operationId }: AdmissionOperation,
  warnings: readonly StartWarning[],
): StartResult {
  if (commit === null) {
    throw new BrokerError('invariant', 'start refused: expected a dispatch commit in the store, got none')
  }
  const { captured, startedAtUnixMs } = commit
  return { captured, operationId, startedAtUnixMs, ...(warnings.length > 0 && { warnings: [...warnings] }) }
}
