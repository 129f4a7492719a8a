// What a run leaves behind: the response frame, the receipt and one outcome document, durable before the
// result is used. The census in it is the host's own statement of the cage, not part of the receipt.
import type { Census } from '../cage/index.js'
import { encode } from '../protocol/codec.js'
import { encodeFrame } from '../protocol/frame.js'
import { SignedExecutionFailureReceipt } from '../protocol/failure.js'
import type { JsonValue } from '../protocol/json.js'
import { SignedExecutionReceipt } from '../protocol/receipt.js'
import type { AdmittedOperation } from './admission.js'
import type { Journal } from './journal.js'
import type { RetainedJournal } from './retained-journal.js'
import type { SignedOutcome } from './settlement.js'

export const OUTCOME_SCHEMA = 'chio.host-outcome.v1'

/** Retains frame, receipt and outcome of one run. */
export async function retainOutcome(
  journal: Journal,
  admitted: AdmittedOperation,
  outcome: SignedOutcome,
  census: Census,
): Promise<void> {
  await journal.retain(
    { name: 'response.frame', frame: encodeFrame(outcome.frame) },
    { name: 'receipt.json', document: receiptBytes(outcome) },
    { name: 'outcome.json', document: outcomeDocument(admitted, outcome, census) },
  )
}

/** Completes what a run that is gone did not live to retain. Nobody saw its cage: there is no census. */
export async function retainRecord(
  journal: RetainedJournal,
  ids: Pick<AdmittedOperation, 'attemptId' | 'operationId'>,
  outcome: SignedOutcome,
): Promise<void> {
  await journal.completeFrame('response.frame', encodeFrame(outcome.frame))
  await journal.completeDocument('receipt.json', receiptBytes(outcome))
  await journal.completeDocument('outcome.json', outcomeDocument(ids, outcome, null))
}

function receiptBytes(outcome: SignedOutcome): Uint8Array {
  return outcome.kind === 'response'
    ? encode(SignedExecutionReceipt, outcome.response.receipt)
    : encode(SignedExecutionFailureReceipt, outcome.failure.receipt)
}

function outcomeDocument(
  { attemptId, operationId }: Pick<AdmittedOperation, 'attemptId' | 'operationId'>,
  outcome: SignedOutcome,
  census: Census | null,
): JsonValue {
  return {
    schema: OUTCOME_SCHEMA,
    attemptId,
    census: census as unknown as JsonValue,
    operationId,
    ...outcomeMembers(outcome),
  }
}

/** What an outcome says in a few members, for documents and commands. */
export function outcomeMembers(outcome: SignedOutcome) {
  if (outcome.kind === 'response') {
    const { receiptReference, status } = outcome.response
    return {
      diagnosticCode: null,
      dispatchKnowledge: 'committed',
      kind: 'response',
      receiptReference,
      status,
    }
  }
  const { body } = outcome.failure.receipt
  return {
    diagnosticCode: body.diagnosticCode,
    dispatchKnowledge: body.dispatchKnowledge,
    kind: 'failure',
    receiptReference: outcome.failure.receiptReference,
    status: null,
  }
}
