// Owns the steps of one brokered operation as a host takes them, each alone, so that a row can time the part that
// it is about. The tool's part is played in this process: the prepared stream is submitted where it was prepared.
// Must never: leave a step out that a host needs, or take an answer that is not the provider's "created".
import type { PreparedStream } from '../client/prepared-stream.js'
import type { RecordedOutcome } from '../client/outcome.js'
import type { AdmittedOperation } from '../host/admission.js'
import { finalize, isSigned, type SignedOutcome } from '../host/settlement.js'
import type { SignedExecutionReceipt } from '../protocol/receipt.js'
import * as plain from '../selftest/plain-operation.js'
import { requireCreated } from './http-answer.js'
import type { Installation } from './installation.js'
import { issueBody } from './request-body.js'

export { prepare, start, type StepTimer, submit } from '../selftest/plain-operation.js'

/** Steps 1 and 2: reserved, signed, authorized, registered. */
export function admit(
  installation: Installation,
  body: Uint8Array = issueBody(),
  timed: plain.StepTimer = plain.untimed,
): Promise<AdmittedOperation> {
  return plain.admit(installation, body, timed)
}

/** What a tool read, judged as a host judges it. */
export function verified(
  admitted: AdmittedOperation,
  answer: Awaited<ReturnType<typeof plain.submit>>,
): SignedOutcome {
  return requireResponse(plain.judged(admitted, answer))
}

/** Step 8, first half: the broker's own record. */
export async function outcomeOf(
  installation: Installation,
  admitted: AdmittedOperation,
): Promise<SignedOutcome> {
  return requireResponse(await plain.recordOf(installation, admitted))
}

export function requireResponse(outcome: RecordedOutcome): SignedOutcome {
  if (!isSigned(outcome) || outcome.kind !== 'response') {
    throw new Error(`operation: expected a response, got ${outcome.kind}`)
  }
  requireCreated(outcome.response.status)
  return outcome
}

export interface StartedOperation {
  readonly admitted: AdmittedOperation
  readonly stream: PreparedStream
}

/** Steps 1 to 4: a stream that can be submitted at once. */
export async function startedOperation(installation: Installation): Promise<StartedOperation> {
  const admitted = await admit(installation)
  const stream = await plain.prepare(installation, admitted)
  await plain.start(installation, admitted)
  return { admitted, stream }
}

/** Times the tool's part alone; what comes before and after is done as in every operation. */
export async function timedExecution(installation: Installation): Promise<number> {
  const { admitted, stream } = await startedOperation(installation)
  const started = process.hrtime.bigint()
  const answer = await plain.submit(installation, stream)
  const took = Number(process.hrtime.bigint() - started) / 1e6
  await finalize(installation.session, admitted.operationId, verified(admitted, answer))
  return took
}

/** The receipt of one operation, as the broker signed it. */
export async function receiptOfOperation(installation: Installation): Promise<SignedExecutionReceipt> {
  const { admitted, stream } = await startedOperation(installation)
  const outcome = verified(admitted, await plain.submit(installation, stream))
  await finalize(installation.session, admitted.operationId, outcome)
  if (outcome.kind !== 'response') throw new TypeError('operation: expected a response')
  return outcome.response.receipt
}

/**
 * Steps 1 to 8 in order; the record is awaited while the stream is submitted, as a host does it.
 * @returns the id of the finalized operation.
 */
export async function wholeOperation(
  installation: Installation,
  timed: plain.StepTimer = plain.untimed,
  body: Uint8Array = issueBody(),
): Promise<string> {
  const admitted = await admit(installation, body, timed)
  const stream = await timed('prepare', () => plain.prepare(installation, admitted))
  await timed('start', () => plain.start(installation, admitted))
  const submitted = timed('execute', () => plain.submit(installation, stream))
  const outcome = timed('outcome', () => outcomeOf(installation, admitted))
  const [, record] = await Promise.all([submitted, outcome])
  await timed('finalize', () => finalize(installation.session, admitted.operationId, record))
  return admitted.operationId
}
