// Owns: the end of an operation by the broker's signed record, whoever brought it.
// Must never: believe a record that is not the pinned broker's over this very request and registration.
// Source: the bindings of the execute response; the captured hold in the execution evidence.
import { BrokerError } from '../../protocol/errors.js'
import { type OutcomeContext, verifyFailureOf, verifyReceiptOf } from '../../protocol/execute-response.js'
import type { BrokerRecord } from '../../protocol/kernel-rpc.js'
import type { RetainedAttempt } from './broker-records.js'
import { judgeDelivered } from '../output/delivered-output.js'
import type { KernelContext } from '../kernel-context.js'
import { repeatsEnding } from '../operation/move-rules.js'
import { type AdmissionOperation, type DispatchCommit, brokeredCall } from '../operation/operation.js'
import { openRequest } from '../sealed-request.js'

/** @throws BrokerError `authorization_denied` for a foreign record, `conflict` for a contradicting one. */
export async function finalize(
  context: KernelContext,
  operation: AdmissionOperation,
  record: BrokerRecord,
): Promise<AdmissionOperation> {
  // A delivered operation keeps its record and no request: only the very same record is known again.
  if (brokeredCall(operation).record !== null && repeatsEnding(operation, record)) return operation
  const attempt = await retainedAttempt(context, operation)
  if (attempt === undefined) {
    throw new BrokerError(
      'operation_state',
      `record refused: expected an operation whose request was retained, got ${operation.state} without one`,
    )
  }
  verifyRecord(record, { ...attempt, receiptSigner: context.config.broker.receiptKey })
  checkCapture(record, operation.commit)
  const judgement = await judgeDelivered(context, attempt, record)
  return context.store.finalize(operation.operationId, record, judgement)
}

/** The exact request and registration, or undefined where none was retained. */
export async function retainedAttempt(
  context: KernelContext,
  operation: AdmissionOperation,
): Promise<RetainedAttempt | undefined> {
  const { operationId } = operation
  const { registration } = operation.call
  if (registration === null) return undefined
  const sealed = await context.store.findRetainedRequest(operationId)
  if (sealed === undefined) return undefined
  return { registration, request: openRequest(context.keys.storage, operationId, sealed) }
}

function verifyRecord(record: BrokerRecord, outcome: OutcomeContext): void {
  if (record.kind === 'receipt') verifyReceiptOf(record.receipt, outcome)
  else verifyFailureOf(record.failure, outcome)
}

/** Evidence names the capture that permitted it: another one would be another operation's. */
function checkCapture(record: BrokerRecord, commit: DispatchCommit | null): void {
  if (record.kind !== 'receipt' || commit === null) return
  const { captured } = commit
  const { evidence } = record.receipt.body
  const holds =
    evidence.authorityCommitIndex === captured.authorityCommitIndex &&
    evidence.budgetCommitIndex === captured.budgetCommitIndex &&
    evidence.revocationCommitIndex === captured.revocationCommitIndex &&
    evidence.leaderEpoch === captured.leaderEpoch &&
    evidence.revocationSetDigest === captured.checkedRevocationSetDigest
  if (holds) return
  throw new BrokerError(
    'authorization_denied',
    'receipt evidence refused: expected the commit indexes of the captured hold, got others',
  )
}
