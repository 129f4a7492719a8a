// Owns: finding the operation that a caller may read or move on.
// Must never: tell a caller that another caller's operation exists.
// Source: "a client may reserve, read and finalize only under its own caller key".
import type { Caller, KernelContext } from '../kernel-context.js'
import { assertFound } from './move-rules.js'
import type { AdmissionOperation } from './operation.js'

/** The caller's own operation. @throws BrokerError `operation_unknown`. */
export async function ownOperation(
  context: KernelContext,
  caller: Caller,
  operationId: string,
): Promise<AdmissionOperation> {
  const operation = await context.store.findOperation(operationId)
  return assertFound(operation !== undefined && isOwn(caller, operation) ? operation : undefined)
}

/** The same for reading: a peer without a caller key (root, administrators) reads all. */
export async function readableOperation(
  context: KernelContext,
  caller: Caller,
  operationId: string,
): Promise<AdmissionOperation> {
  const operation = await context.store.findOperation(operationId)
  const mayRead = operation !== undefined && (caller.callerPublicKey === null || isOwn(caller, operation))
  return assertFound(mayRead ? operation : undefined)
}

function isOwn(caller: Caller, operation: AdmissionOperation): boolean {
  return caller.callerPublicKey === operation.callerPublicKey
}
