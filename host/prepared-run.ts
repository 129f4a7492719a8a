// Steps 1 to 3 of a run: reserve, register, prepare. Until its stream is prepared nothing was started, and whatever
// fails gives the reservation back. Never starts, and holds at most one stream.
import type { PreparedStream } from '../client/prepared-stream.js'
import { encode } from '../protocol/codec.js'
import type { BrokerRequest } from '../protocol/execute-request.js'
import type { StartWarning } from '../protocol/operation-rpc.js'
import { AttemptRegistration } from '../protocol/registration.js'
import {
  type AdmittedOperation,
  authorize,
  buildRequest,
  type RequestedExecution,
  type ReservedOperation,
  readGrant,
} from './admission.js'
import { reserveApproved } from './approval-wait.js'
import { preparing } from './failed-preparation.js'
import { Journal } from './journal.js'
import type { HostSession } from './session.js'
import { cancel, settledError, unregisteredError } from './settlement.js'
import { prepareWithin, SlotWait } from './slot-wait.js'
import type { Timeline } from './timeline.js'

/** What is executed, and how long to wait for approvers and for a slot that another holds. */
export interface RunChoices extends RequestedExecution {
  readonly waitForSlotMs?: number
  /** Told once, with the operation that waits for its approvers. It must not throw. */
  readonly onApprovalAwaited?: (operationId: string) => void
  /** Told of each warning in the answer to the start, before anything is handed over. It must not throw. */
  readonly onWarning?: (warning: StartWarning) => void
}

/** A run whose stream is prepared, and whose exact request is retained. */
export interface PreparedRun {
  readonly session: HostSession
  readonly timeline: Timeline
  readonly admitted: AdmittedOperation
  readonly journal: Journal
  readonly stream: PreparedStream
}

/** Waits for a held slot across reservations: each lives for seconds, the wait may be longer. */
export async function prepareRun(
  session: HostSession,
  request: RunChoices,
  timeline: Timeline,
): Promise<PreparedRun> {
  const { grant } = await timeline.step('grant', () => readGrant(session, request.grantId))
  const exact = { grantId: request.grantId, request: buildRequest(grant, request) }
  const { onApprovalAwaited: onAwaited } = request
  const wait = new SlotWait(session.clock, request.waitForSlotMs ?? 0)
  for (;;) {
    try {
      return await prepareOnce(session, exact, { onAwaited, timeline, wait })
    } catch (error) {
      if (!wait.goesOnAfter(error)) throw error
    }
    await wait.pause()
  }
}

interface RunPatience {
  readonly timeline: Timeline
  readonly wait: SlotWait
  readonly onAwaited: RunChoices['onApprovalAwaited']
}

async function prepareOnce(
  session: HostSession,
  exact: { readonly grantId: string; readonly request: BrokerRequest },
  { onAwaited, timeline, wait }: RunPatience,
): Promise<PreparedRun> {
  const reservation = await timeline.step('reserve', () =>
    reserveApproved(session, exact, { isOver: () => wait.isOver, onAwaited }),
  )
  const admitted = await register(session, reservation, timeline)
  try {
    const { stream } = await timeline.step('prepare', () =>
      preparing(session, admitted.operationId, () => prepareWithin(session, reservation, admitted, wait)),
    )
    return { session, timeline, admitted, stream, journal: await journalOf(session, admitted, stream) }
  } catch (error) {
    throw await settledError(session, admitted, error, false)
  }
}

async function register(
  session: HostSession,
  reservation: ReservedOperation,
  timeline: Timeline,
): Promise<AdmittedOperation> {
  try {
    const admitted = await timeline.step('authorize', () => authorize(session, reservation))
    await timeline.step('register', () => session.broker.register(admitted.register))
    return admitted
  } catch (error) {
    await cancel(session, reservation.operationId).catch(() => undefined)
    throw unregisteredError(error, reservation.operationId)
  }
}

/** The exact request and its registration are on disk before anything is started under them. */
export async function openJournal(
  session: HostSession,
  admitted: AdmittedOperation,
  frame: Uint8Array,
): Promise<Journal> {
  const { attemptId, register } = admitted
  const journal = await Journal.open(session.runsDirectory, attemptId, session.journalKey)
  const document = encode(AttemptRegistration, register.registration)
  await journal.retain({ name: 'request.frame', frame }, { name: 'registration.json', document })
  return journal
}

async function journalOf(
  session: HostSession,
  admitted: AdmittedOperation,
  stream: PreparedStream,
): Promise<Journal> {
  try {
    return await openJournal(session, admitted, stream.frame)
  } catch (error) {
    stream.close()
    throw error
  }
}
