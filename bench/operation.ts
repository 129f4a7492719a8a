// Owns the steps of one brokered operation as a host takes them, each alone, so that a row can time the part that
// it is about. The tool's part is played in this process: the prepared stream is submitted where it was prepared.
// Must never: leave a step out that a host needs, or take an answer that is not the provider's "created".
import { deadlineAfter } from '../system/deadline.js'
import { readOutcome, type RecordedOutcome, verifyOutcome } from '../client/outcome.js'
import { prepareDispatchConnection } from '../client/prepare.js'
import type { PreparedStream } from '../client/prepared-stream.js'
import { type AdmittedOperation, authorize, buildRequest, reserve } from '../host/admission.js'
import { finalize, isSigned, type SignedOutcome } from '../host/settlement.js'
import type { SignedExecutionReceipt } from '../protocol/receipt.js'
import { requireCreated } from './http-answer.js'
import type { Installation } from './installation.js'
import { issueBody } from './request-body.js'

const BUDGET_MS = 20_000

/** Times one step under its name; the default takes no notice. */
export type StepTimer = <T>(name: string, step: () => Promise<T>) => Promise<T>
const untimed: StepTimer = (_name, step) => step()

/** Steps 1 and 2: reserved, signed, authorized, registered. */
export async function admit(
  { session, grant }: Installation,
  body: Uint8Array = issueBody(),
  timed: StepTimer = untimed,
): Promise<AdmittedOperation> {
  const requested = { grantId: grant.grantId, body, headers: [] }
  const request = buildRequest(grant, requested)
  const reservation = await timed('reserve', () => reserve(session, request, grant.grantId))
  const admitted = await timed('authorize', () => authorize(session, reservation))
  await timed('register', () => session.broker.register(admitted.register))
  return admitted
}

/** Step 3. @throws BrokerError `conflict` while another operation holds the slot. */
export async function prepare(
  { session }: Installation,
  admitted: AdmittedOperation,
): Promise<PreparedStream> {
  const { stream } = await prepareDispatchConnection(session.pins.broker, admitted.prepare, session.clock)
  return stream
}

/** Step 4. */
export async function start({ session }: Installation, admitted: AdmittedOperation): Promise<void> {
  const { executionNonce, operationId } = admitted
  await session.kernel.call('start', { executionNonce, operationId })
}

/** Steps 5 to 7 as the tool sees them: frame written, response read. */
export async function submit(
  { session }: Installation,
  stream: PreparedStream,
): Promise<{ readonly response: Parameters<typeof verifyOutcome>[0]; readonly frame: Uint8Array }> {
  return stream.submit(deadlineAfter(session.clock, BUDGET_MS))
}

/** What a tool read, judged as a host judges it. */
export function verified(
  admitted: AdmittedOperation,
  answer: Awaited<ReturnType<typeof submit>>,
): SignedOutcome {
  return requireResponse(verifyOutcome(answer.response, answer.frame, admitted.context))
}

/** Step 8, first half: the broker's own record. */
export async function outcomeOf(
  { session }: Installation,
  admitted: AdmittedOperation,
): Promise<SignedOutcome> {
  return requireResponse(await readOutcome(session.broker, admitted.context, BUDGET_MS))
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
  const stream = await prepare(installation, admitted)
  await start(installation, admitted)
  return { admitted, stream }
}

/** Times the tool's part alone; what comes before and after is done as in every operation. */
export async function timedExecution(installation: Installation): Promise<number> {
  const { admitted, stream } = await startedOperation(installation)
  const started = process.hrtime.bigint()
  const answer = await submit(installation, stream)
  const took = Number(process.hrtime.bigint() - started) / 1e6
  await finalize(installation.session, admitted.operationId, verified(admitted, answer))
  return took
}

/** The receipt of one operation, as the broker signed it. */
export async function receiptOfOperation(installation: Installation): Promise<SignedExecutionReceipt> {
  const { admitted, stream } = await startedOperation(installation)
  const outcome = verified(admitted, await submit(installation, stream))
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
  timed: StepTimer = untimed,
  body: Uint8Array = issueBody(),
): Promise<string> {
  const admitted = await admit(installation, body, timed)
  const stream = await timed('prepare', () => prepare(installation, admitted))
  await timed('start', () => start(installation, admitted))
  const submitted = timed('execute', () => submit(installation, stream))
  const outcome = timed('outcome', () => outcomeOf(installation, admitted))
  const [, record] = await Promise.all([submitted, outcome])
  await timed('finalize', () => finalize(installation.session, admitted.operationId, record))
  return admitted.operationId
}
