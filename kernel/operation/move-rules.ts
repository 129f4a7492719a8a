// Owns: what every store checks of a move before it makes it, whichever database it uses.
// Must never: be left out by a store because the code above it checked already.
// Source: the admission state table; the immutability of an operation's commitments.
import type { OperationBinding } from '../../protocol/admission-operation.js'
import {
  type AdmissionState,
  isBeforeDispatch,
  isTerminalState,
  mayMove,
} from '../../protocol/admission-states.js'
import { isSameDocument } from '../../protocol/codec.js'
import { BrokerError } from '../../protocol/errors.js'
import { BrokerRecord } from '../../protocol/kernel-rpc.js'
import { type AttemptRegistration, registrationDigest } from '../../protocol/registration.js'
import { agreesWithEnding } from '../settling/ending.js'
import { LONGEST_DELIBERATION_MS } from '../trusted-clock.js'
import { type AdmissionOperation, type StoredGrant, brokeredCall } from './operation.js'

export function assertLegalMove(binding: OperationBinding, from: AdmissionState, to: AdmissionState): void {
  const { kind, request_binding } = binding
  if (mayMove(kind, request_binding.participant_requirements, from, to)) return
  throw new BrokerError(
    'illegal_transition',
    `move refused: expected one that the state table permits, got ${from} to ${to}`,
  )
}

/** @throws BrokerError `operation_unknown`. */
export function assertFound<T>(found: T | undefined): T {
  if (found !== undefined) return found
  throw new BrokerError(
    'operation_unknown',
    'operation refused: expected one of yours that this kernel holds, got none',
  )
}

/** @throws BrokerError `operation_state` naming the state found and the next step. */
export function assertState(
  operation: AdmissionOperation,
  expected: AdmissionState,
  next: string,
): asserts operation is AdmissionOperation {
  if (operation.state === expected) return
  throw new BrokerError(
    'operation_state',
    `operation ${operation.operationId} refused: expected ${expected}, got ${operation.state}; ${next}`,
    { operationId: operation.operationId },
  )
}

/** @throws BrokerError `operation_state` once an operation may have been dispatched, or has ended. */
export function assertReversible({ operationId, state }: AdmissionOperation): void {
  if (isBeforeDispatch(state)) return
  throw new BrokerError(
    'operation_state',
    `operation ${operationId} refused: expected one that was not started, got ${state}; once started, only its record ends it`,
    { operationId },
  )
}

/** A correction is signed for one state of the clock. @throws BrokerError `conflict`. */
export function assertHighWater({ nowUnixMs }: { readonly nowUnixMs: number }, signedUnixMs: number): void {
  if (nowUnixMs >= signedUnixMs && nowUnixMs - signedUnixMs <= LONGEST_DELIBERATION_MS) return
  throw new BrokerError(
    'conflict',
    'clock correction refused: expected the high water that was looked at, got another; look again: chio clock show',
  )
}

/** @throws BrokerError `execution_nonce_not_adopted` when an earlier owner admitted it and recovery did not adopt it. */
export function assertOwned(
  operation: AdmissionOperation,
  { owner }: { readonly owner: { readonly ownerEpoch: number } },
): void {
  if (operation.leaseEpoch === owner.ownerEpoch) return
  throw new BrokerError(
    'execution_nonce_not_adopted',
    `operation ${operation.operationId} refused: expected one that owner epoch ${owner.ownerEpoch} admitted or adopted, got one of epoch ${operation.leaseEpoch}; cancel it and ask anew`,
    { operationId: operation.operationId, outcome: 'not_started' },
  )
}

/** Nothing is admitted by a clock that is not believed. @throws BrokerError `clock_jumped`. */
export function assertClock({ clockFault }: { readonly clockFault: string | null }): void {
  if (clockFault !== null) throw new BrokerError('clock_jumped', clockFault, { outcome: 'not_started' })
}

/** A start needs what its registration was signed over. @throws BrokerError `operation_state`. */
export function assertStartable(operation: AdmissionOperation): void {
  assertState(operation, 'ready_to_dispatch', 'it can never be started; inspect it')
  if (brokeredCall(operation).registration !== null) return
  throw new BrokerError(
    'operation_state',
    `operation ${operation.operationId} refused: expected a retained registration, got none; authorize the registration first`,
    { operationId: operation.operationId },
  )
}

/**
 * The same request id always finds the operation that committed to it.
 * @throws BrokerError `request_binding_mismatch` for any other request.
 */
export function sameOperation(existing: AdmissionOperation, operationId: string): AdmissionOperation {
  if (existing.operationId === operationId) return existing
  throw new BrokerError(
    'request_binding_mismatch',
    'request_binding_mismatch: reserve refused: expected the request that this invocation id was first used for, got another; the original is unchanged',
  )
}

/** @throws BrokerError `request_binding_mismatch` when another request was retained before. */
export function sameRegistration(
  operation: AdmissionOperation,
  known: AttemptRegistration,
  given: AttemptRegistration,
): AdmissionOperation {
  if (registrationDigest(known) === registrationDigest(given)) return operation
  throw new BrokerError(
    'request_binding_mismatch',
    'request_binding_mismatch: registration refused: expected the request that was retained first, got another; the original is unchanged',
  )
}

/** @throws BrokerError `grant_exhausted`. */
export function assertExecutionLeft({ captured, grant, held }: StoredGrant): void {
  if (held + captured < grant.maximumExecutions) return
  throw new BrokerError(
    'grant_exhausted',
    `grant ${grant.grantId} refused: expected an execution left of ${grant.maximumExecutions}, got ${captured} spent and ${held} held`,
  )
}

/**
 * Whether an ended operation already says what a record says.
 * @throws BrokerError `conflict` when the record contradicts it; an unknown outcome is never overwritten.
 */
export function repeatsEnding(operation: AdmissionOperation, record: BrokerRecord): boolean {
  if (!isTerminalState(operation.state)) return false
  const known = brokeredCall(operation).record
  const isSame =
    known === null ? agreesWithEnding(operation.state, record) : isSameDocument(BrokerRecord, known, record)
  if (isSame) return true
  throw new BrokerError(
    'conflict',
    `record refused: expected the one that ended operation ${operation.operationId} as ${operation.state}, got another; the operation is unchanged`,
    { operationId: operation.operationId },
  )
}
