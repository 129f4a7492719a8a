// The recorded outcome of an operation whose run is gone: read from the broker, verified against what that run
// retained before its start, kept where it is not kept yet, and told to the kernel. Never dispatches anything.
import { readOutcome } from '../client/outcome.js'
import { AuthenticatedIpcRequest } from '../protocol/envelope.js'
import { decode } from '../protocol/codec.js'
import { BrokerError, isBrokerError } from '../protocol/errors.js'
import { BrokerExecuteRequest } from '../protocol/execute-request.js'
import type { OutcomeContext } from '../protocol/execute-response.js'
import type { OperationView } from '../protocol/kernel-rpc.js'
import { MAXIMUM_PREPARED_LIFETIME_MS } from '../protocol/limits.js'
import { AttemptRegistration, checkRegistrationOf } from '../protocol/registration.js'
import { RetainedJournal } from './retained-journal.js'
import { retainRecord } from './run-record.js'
import type { HostSession } from './session.js'
import { finalize, isSigned, settledBy, type SignedOutcome } from './settlement.js'

const FRAME_LENGTH_BYTES = 4
/** The broker waits a second past the governing deadline; so much more is granted for its answer. */
const OUTCOME_GRACE_MS = 5_000

/** What the record says of an operation of this host. */
export interface RecordedRun {
  readonly operationId: string
  readonly attemptId: string
  readonly outcome: SignedOutcome
  /** The kernel's last word; null when it went away meanwhile. */
  readonly operation: OperationView | null
  readonly journalDirectory: string
}

/**
 * Reads the recorded outcome of one of this host's own operations.
 * @throws BrokerError `attempt_unknown` when nothing was ever prepared, `attempt_pending` before its end.
 */
export async function readRecordedRun(session: HostSession, operationId: string): Promise<RecordedRun> {
  const view = await session.kernel.call('inspect', { operationId })
  const { attemptId } = view
  if (attemptId === null) throw unregistered(operationId)
  const journal = await RetainedJournal.open(session, attemptId)
  const context = await retainedContext(session, journal, operationId)
  const outcome = await signedOutcome(session, context)
  const settle = async () =>
    view.settlesAtUnixMs === null ? view : await tellKernel(session, operationId, outcome)
  try {
    await retainRecord(journal, { attemptId, operationId }, outcome)
  } catch (error) {
    // What the broker did is known, whatever becomes of the journal: nobody may take it for not started.
    await settle().catch(() => undefined)
    throw settledBy(error, operationId, outcome)
  }
  const operation = await settle()
  return { operationId, attemptId, outcome, operation, journalDirectory: journal.directory }
}

async function retainedContext(
  session: HostSession,
  journal: RetainedJournal,
  operationId: string,
): Promise<OutcomeContext> {
  const frame = await journal.readFrame('request.frame')
  const { payload } = decode(AuthenticatedIpcRequest, frame.subarray(FRAME_LENGTH_BYTES), 'request.frame')
  const request = decode(BrokerExecuteRequest, payload, 'request.frame payload')
  const document = await journal.readDocument('registration.json')
  const registration = decode(AttemptRegistration, document, 'registration.json')
  checkRegistrationOf(registration, request)
  if (registration.ids.operationId !== operationId) {
    throw new BrokerError('custody', `journal refused: expected operation ${operationId}, got another`)
  }
  return { registration, request, receiptSigner: session.pins.broker.receiptKey }
}

async function signedOutcome(session: HostSession, context: OutcomeContext): Promise<SignedOutcome> {
  const budgetMs = MAXIMUM_PREPARED_LIFETIME_MS + context.request.request.options.timeoutMs + OUTCOME_GRACE_MS
  const { operationId } = context.registration.ids
  const outcome = await verified(operationId, () => readOutcome(session.broker, context, budgetMs))
  if (isSigned(outcome)) return outcome
  if (outcome.kind === 'attempt_pending') {
    throw new BrokerError('attempt_pending', `operation ${operationId} has no recorded end yet`, {
      operationId,
    })
  }
  throw new BrokerError('attempt_unknown', `the broker holds no record of operation ${operationId}`, {
    operationId,
  })
}

/** The broker was not reached, or is not who the pins say: nothing was said of the operation. */
const NOT_ASKED: ReadonlySet<string> = new Set(['broker_unavailable', 'custody', 'peer_mismatch'])

/** What the broker answers and its key does not vouch for says nothing of the effect. */
async function verified<T>(operationId: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (cause) {
    if (!isBrokerError(cause) || NOT_ASKED.has(cause.code)) throw cause
    throw new BrokerError(
      'outcome_undetermined',
      `operation ${operationId} has no verified outcome: ${cause.message}; never run it again before its record is read`,
      { operationId, cause },
    )
  }
}

/** The record is verified and retained by then: a kernel that went away takes nothing from it. */
async function tellKernel(
  session: HostSession,
  operationId: string,
  outcome: SignedOutcome,
): Promise<OperationView | null> {
  try {
    return await finalize(session, operationId, outcome)
  } catch (error) {
    if (isBrokerError(error) && error.code === 'kernel_unavailable') return null
    throw error
  }
}

function unregistered(operationId: string): BrokerError {
  return new BrokerError(
    'attempt_unknown',
    `operation ${operationId} has no attempt: it ended before one was registered`,
    { operationId },
  )
}
