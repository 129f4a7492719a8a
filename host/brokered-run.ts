// Steps 1 to 8 of one brokered operation. The cage is opened first, so that its start costs nothing
// later; the start is committed before the stream is handed over; the outcome comes from the broker,
// never from the tool. Every way out closes the host's copy of the stream and settles the operation.
import {
  type ArmedCage,
  type CagePolicy,
  type Census,
  type FinishedTool,
  openCage,
  type RunningCage,
  type WaitingCage,
} from '../cage/index.js'
import { readOutcome } from '../client/outcome.js'
import type { PreparedStream } from '../client/prepared-stream.js'
import { closeDescriptor } from '../native/index.js'
import { BrokerError, isBrokerError } from '../protocol/errors.js'
import type { OperationView } from '../protocol/kernel-rpc.js'
import { MAXIMUM_PREPARED_LIFETIME_MS } from '../protocol/limits.js'
import type { AdmittedOperation } from './admission.js'
import { prepareRun, type PreparedRun, type RunChoices } from './prepared-run.js'
import { retainOutcome } from './run-record.js'
import type { HostSession } from './session.js'
import { finalize, isSigned, type SignedOutcome, settledBy, settledError } from './settlement.js'
import { Timeline, type TimelineStep } from './timeline.js'

/** One run: what to execute, in which cage, and how long to wait for a held slot. */
export interface BrokeredRunRequest extends RunChoices {
  readonly cage: CagePolicy
  /** How long the tool may go on after the outcome was recorded; then its cage is killed. */
  readonly toolGraceMs?: number
  /** Told when the stream is prepared, and again just before the start is sent. It must not throw. */
  readonly onProgress?: (progress: RunProgress) => void
}

/** How far a run has got. Before its start nothing can have been dispatched; from then on it may have been. */
export interface RunProgress {
  readonly operationId: string
  readonly isStarted: boolean
}

/** A finished run. `outcome` was verified against the host's own pins and the retained request. */
export interface BrokeredRun {
  readonly operationId: string
  readonly attemptId: string
  readonly outcome: SignedOutcome
  /** The kernel's last word; null when it was away. It then settles the operation from the broker's record. */
  readonly operation: OperationView | null
  readonly tool: FinishedTool
  readonly census: Census
  readonly journalDirectory: string
  readonly timeline: readonly TimelineStep[]
}

/** A tool has its answer by then; what it still does is tidying up. */
const TOOL_GRACE_MS = 5_000

/** The broker waits a second past the governing deadline; so much more is granted for its answer. */
const OUTCOME_GRACE_MS = 5_000

/**
 * Runs one brokered operation to its verified end.
 * @throws BrokerError with `outcome`: `not_started` says that nothing was dispatched and the operation was
 * released; `unknown` says that only the broker's record can tell (exit 75).
 */
export async function runBrokered(session: HostSession, request: BrokeredRunRequest): Promise<BrokeredRun> {
  const timeline = new Timeline(session.clock)
  const opening = timeline.step('cage', () => openCage(request.cage))
  // Awaited where it is needed; a refusal before that must not be an unhandled rejection.
  opening.catch(() => undefined)
  try {
    const run = await prepareRun(session, request, timeline)
    return await executeRun(run, opening, request)
  } finally {
    await opening.then(cage => cage.close()).catch(() => undefined)
  }
}

async function executeRun(
  run: PreparedRun,
  opening: Promise<WaitingCage>,
  request: BrokeredRunRequest,
): Promise<BrokeredRun> {
  const { session, timeline, admitted, stream } = run
  const { operationId } = admitted
  let isStarted = false
  let taken: SignedOutcome | undefined
  try {
    request.onProgress?.({ operationId, isStarted })
    const cage = await opening
    await timeline.step('start', async () => {
      isStarted = true
      request.onProgress?.({ operationId, isStarted })
      await startOperation(session, admitted)
    })
    const { running, census } = await timeline.step('handoff', () => handOff(cage, stream))
    const outcome = (taken = await takeOutcome(run))
    await retainOutcome(run.journal, admitted, outcome, census)
    const operation = await timeline.step('finalize', () => tellKernel(session, admitted, outcome))
    const tool = await timeline.step('tool', () => running.finish(request.toolGraceMs ?? TOOL_GRACE_MS))
    return finishedRun(run, { outcome, operation, tool, census })
  } catch (error) {
    stream.close()
    if (taken === undefined) throw await settledError(session, admitted, error, isStarted)
    await tellKernel(session, admitted, taken).catch(() => undefined)
    throw settledBy(error, operationId, taken)
  }
}

/** Step 4: the kernel's live check, capture and dispatch commit. Never called a second time for one operation. */
async function startOperation(session: HostSession, admitted: AdmittedOperation): Promise<void> {
  await session.kernel.call('start', {
    executionNonce: admitted.executionNonce,
    operationId: admitted.operationId,
  })
}

/** The outcome is verified and retained by then: a kernel that is away takes nothing from it. */
async function tellKernel(
  session: HostSession,
  { operationId }: AdmittedOperation,
  outcome: SignedOutcome,
): Promise<OperationView | null> {
  try {
    return await finalize(session, operationId, outcome)
  } catch (error) {
    if (isBrokerError(error) && error.code === 'kernel_unavailable') return null
    throw error
  }
}

function finishedRun(
  run: PreparedRun,
  ended: Pick<BrokeredRun, 'outcome' | 'operation' | 'tool' | 'census'>,
): BrokeredRun {
  const { operationId, attemptId } = run.admitted
  return {
    operationId,
    attemptId,
    ...ended,
    journalDirectory: run.journal.directory,
    timeline: run.timeline.steps,
  }
}

/** Step 5: the stream leaves the host here; its copy is closed whatever comes of the handoff. */
async function handOff(
  cage: WaitingCage,
  stream: PreparedStream,
): Promise<{ running: RunningCage; census: Census }> {
  const descriptor = stream.takeDescriptor()
  let armed: ArmedCage
  try {
    armed = await cage.handOff(descriptor, stream.frame)
  } finally {
    closeDescriptor(descriptor)
  }
  return { census: armed.census, running: armed.go() }
}

/** Step 8: waits for the broker's record; the tool's own word is never asked for. */
async function takeOutcome(run: PreparedRun): Promise<SignedOutcome> {
  const { session, admitted } = run
  const { timeoutMs } = admitted.context.request.request.options
  const budgetMs = MAXIMUM_PREPARED_LIFETIME_MS + timeoutMs + OUTCOME_GRACE_MS
  const outcome = await run.timeline.step('outcome', () =>
    readOutcome(session.broker, admitted.context, budgetMs),
  )
  if (isSigned(outcome)) return outcome
  throw new BrokerError(
    'outcome_undetermined',
    `the broker has no record of the outcome yet: ${outcome.kind}`,
  )
}
