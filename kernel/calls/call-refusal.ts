// Owns: a refusal of a tool call as a value: which check refused, by which code, in which words.
// Must never: swallow a fault: only what a check says of the request becomes a value, everything else is thrown on.
// Source: the order of checks of the kernel's call surface; "refusals are values, faults are thrown".
import type { ErrorCode } from '../../protocol/error-codes.js'
import { BrokerError, isBrokerError } from '../../protocol/errors.js'
import { KERNEL_GUARD } from '../../protocol/kernel-receipt.js'
import { saysOfMachine } from '../fault-fields.js'

/**
 * The checks of a call in their order. `admission` is the durable operation itself: its identity, state, nonce, context;
 * `output` is what was delivered.
 */
export const CALL_CHECKS = [
  'admission',
  'token',
  'revocation',
  'delegation',
  'subject',
  'grant',
  'proof_of_possession',
  'target',
  'snapshot',
  'budget',
  'approval',
  'guard',
  'output',
] as const
export type CallCheck = (typeof CALL_CHECKS)[number]

export interface CallRefusal {
  readonly verdict: 'deny'
  readonly check: CallCheck
  readonly code: ErrorCode
  /** Who refused, as receipts name it. */
  readonly guard: string
  readonly reason: string
}

/** Begins every refusal that the durable operation gives. */
export const DURABLE_ADMISSION_FAILED = 'durable admission failed: '

export function callRefusal(
  check: CallCheck,
  code: ErrorCode,
  reason: string,
  guard: string = KERNEL_GUARD,
): CallRefusal {
  return { check, code, guard, reason, verdict: 'deny' }
}

/** What a check found, or its refusal. @throws what is no refusal of a request. */
export function judged<T>(check: CallCheck, ask: () => T): T | CallRefusal {
  try {
    return ask()
  } catch (error) {
    return refusalOfError(check, error)
  }
}

/** @throws the error itself when it is a fault. */
export function refusalOfError(check: CallCheck, error: unknown): CallRefusal {
  if (!isBrokerError(error) || saysOfMachine(error)) throw error
  const reason = check === 'admission' ? `${DURABLE_ADMISSION_FAILED}${error.message}` : error.message
  return callRefusal(check, error.code, reason)
}

/** A start with other arguments than its reserve. */
export function otherArguments(operationId: string): BrokerError {
  return new BrokerError(
    'request_binding_mismatch',
    `request_binding_mismatch: start of ${operationId} refused: expected the arguments that were reserved, got others; the original is unchanged`,
    { operationId, outcome: 'not_started' },
  )
}

export function isRefusal(value: unknown): value is CallRefusal {
  return typeof value === 'object' && value !== null && 'verdict' in value && value.verdict === 'deny'
}
