// Owns: which refusals are decisions of the kernel, and that each of them leaves a signed receipt before it is told.
// Must never: take a fault of the machine for a decision, or tell a refusal whose receipt is not on disk.
// Source: "every denial is a signed receipt"; refusals are values, faults are thrown.
import { BrokerError, type ErrorCode, isBrokerError } from '../../protocol/errors.js'
import type { JsonValue } from '../../protocol/json.js'
import type { KernelReceipt } from '../../protocol/kernel-receipt.js'
import type { ReserveRequest } from '../../protocol/kernel-rpc.js'
import type { Caller, KernelContext } from '../kernel-context.js'
import type { AdmissionOperation } from '../operation/operation.js'
import { brokeredSubject } from './receipt-subject.js'

/** What is said of a request and of authority. Everything else says something of the machine, or of its wording. */
const DECISIONS: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'approval_expired',
  'approval_mismatch',
  'approval_unavailable',
  'authorization_denied',
  'clock_jumped',
  'conflict',
  'execution_nonce_binding',
  'execution_nonce_capacity',
  'execution_nonce_encoding',
  'execution_nonce_expired',
  'execution_nonce_not_yet_valid',
  'execution_nonce_replayed',
  'execution_nonce_schema',
  'execution_nonce_signature',
  'execution_nonce_window',
  'grant_exceeded',
  'grant_exhausted',
  'grant_expired',
  'grant_revoked',
  'grant_unknown',
  'operation_shares_arguments',
  'operation_state',
  'request_binding_mismatch',
])

/** A refusal with its receipt. */
export class RefusedDecision extends BrokerError {
  readonly receipt: KernelReceipt

  constructor(refusal: BrokerError, receipt: KernelReceipt) {
    const { cause, code, message, operationId, outcome } = refusal
    super(code, message, { cause, operationId, outcome, receiptId: receipt.id })
    this.receipt = receipt
  }
}

/** What was asked, as the receipt of a refusal says it. */
export interface Asked {
  readonly capabilityId: string
  readonly parameters: JsonValue
  readonly operation: AdmissionOperation | null
}

/** Acts; a refusal that is a decision is recorded before it is thrown on. */
export async function decided<T>(
  context: KernelContext,
  caller: Caller,
  asked: () => Promise<Asked>,
  act: () => Promise<T>,
): Promise<T> {
  try {
    return await act()
  } catch (error) {
    if (!isBrokerError(error) || !DECISIONS.has(error.code)) throw error
    const { callerPublicKey } = caller
    const { code, message: sentence } = error
    const refusal = { ...(await asked()), callerPublicKey, code, sentence }
    throw new RefusedDecision(error, await context.store.receipts.refused(refusal))
  }
}

export function askedToReserve(request: ReserveRequest): Asked {
  return {
    capabilityId: request.grantId,
    operation: null,
    parameters: brokeredSubject(request).parameters,
  }
}

/** @param step what the operation was asked to do. */
export async function askedOf(
  { store }: KernelContext,
  step: 'authorize_registration' | 'start',
  operationId: string,
): Promise<Asked> {
  const operation = (await store.findOperation(operationId)) ?? null
  return {
    capabilityId: operation?.binding.capability_id ?? '',
    operation,
    parameters: { operation_id: operationId, step },
  }
}
