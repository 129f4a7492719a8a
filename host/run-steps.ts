// The steps from the start of an operation to its verified end, in whatever order a host takes them: start, handoff,
// outcome, finalize. Nothing here starts or hands over twice; every way out settles the operation.
import type { ArmedCage, Census, FinishedTool, RunningCage, WaitingCage } from '../cage/index.js'
import { readOutcome } from '../client/outcome.js'
import { closeDescriptor } from '../native/index.js'
import { BrokerError, isBrokerError } from '../protocol/errors.js'
import type { OperationView } from '../protocol/kernel-rpc.js'
import type { StartWarning } from '../protocol/operation-rpc.js'
import { MAXIMUM_PREPARED_LIFETIME_MS } from '../protocol/limits.js'
import { endedPreparation } from './decline.js'
import { preparing } from './failed-preparation.js'
import type { McpCall, McpVerdict } from './mcp-call.js'
import type { PreparedRun } from './prepared-run.js'
import { retainOutcome } from './run-record.js'
import { finalize, isSigned, type SignedOutcome, settledBy, settledError } from './settlement.js'
import type { TimelineStep } from './timeline.js'

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
  /** What the answer of an MCP server came to; null where none was asked by us. */
  readonly mcp: McpVerdict | null
  readonly census: Census
  readonly journalDirectory: string
  readonly timeline: readonly TimelineStep[]
}

/** What settling has to know of a run that fails. */
export interface RunState {
  isStarted: boolean
  taken: SignedOutcome | null
}

/** A cage that has the stream, and the session with its server where we hold one. */
export interface HandedOver {
  readonly running: RunningCage
  readonly census: Census
}

/** A tool has its answer by then; what it still does is tidying up. */
const TOOL_GRACE_MS = 5_000

/** The broker waits a second past the governing deadline; so much more is granted for its answer. */
const OUTCOME_GRACE_MS = 5_000

/** Runs steps of a prepared run; a failure closes its stream and settles its operation before it is thrown on. */
export async function settling<T>(run: PreparedRun, state: RunState, steps: () => Promise<T>): Promise<T> {
  const { session, admitted, stream } = run
  try {
    return await steps()
  } catch (error) {
    stream.close()
    if (state.taken === null) throw await settledError(session, admitted, error, state.isStarted)
    await tellKernel(run, state.taken).catch(() => undefined)
    throw settledBy(error, admitted.operationId, state.taken)
  }
}

/** Who is told of a start. */
export interface StartListeners {
  readonly onProgress?: (progress: RunProgress) => void
  readonly onWarning?: (warning: StartWarning) => void
}

/** Step 4: the kernel's live check, capture and dispatch commit. Never called a second time for one operation. */
export async function startOperation(
  { session, stream, timeline, admitted }: PreparedRun,
  state: RunState,
  { onProgress, onWarning }: StartListeners,
): Promise<void> {
  const { executionNonce, operationId } = admitted
  await timeline.step('start', async () => {
    if (stream.isEndedByBroker())
      await preparing(session, operationId, async () => {
        throw await endedPreparation(session, admitted)
      })
    state.isStarted = true
    onProgress?.({ operationId, isStarted: true })
    const { warnings = [] } = await session.kernel.call('start', { executionNonce, operationId })
    for (const warning of warnings) onWarning?.(warning)
  })
}

/** Step 5: the stream leaves the host here; its copy is closed whatever comes of the handoff. */
export async function handOff(run: PreparedRun, cage: WaitingCage): Promise<HandedOver> {
  return run.timeline.step('handoff', () => handOver(cage, run))
}

async function handOver(cage: WaitingCage, { stream, timeline }: PreparedRun): Promise<HandedOver> {
  const descriptor = stream.takeDescriptor()
  let armed: ArmedCage
  try {
    armed = await cage.handOff(descriptor, stream.frame)
  } finally {
    closeDescriptor(descriptor)
  }
  await timeline.reach('armed')
  return { census: armed.census, running: armed.go() }
}

/** Step 8: the record, the journal, the kernel; then the tool's own end, which decides nothing. */
export async function endRun(
  run: PreparedRun,
  state: RunState,
  ending: HandedOver & { readonly call: McpCall | null; readonly toolGraceMs: number | undefined },
): Promise<BrokeredRun> {
  const { admitted, journal, timeline } = run
  const { running, census, call, toolGraceMs = TOOL_GRACE_MS } = ending
  const outcome = (state.taken = await takeOutcome(run))
  await retainOutcome(journal, admitted, outcome, census)
  const operation = await timeline.step('finalize', () => tellKernel(run, outcome))
  const tool = await timeline.step('tool', () => running.finish(toolGraceMs))
  return {
    operationId: admitted.operationId,
    attemptId: admitted.attemptId,
    outcome,
    operation,
    tool,
    mcp: call === null ? null : await call.verdict,
    census,
    journalDirectory: journal.directory,
    timeline: timeline.steps,
  }
}

/** The outcome is verified and retained by then: a kernel that is away takes nothing from it. */
async function tellKernel(
  { session, admitted }: PreparedRun,
  outcome: SignedOutcome,
): Promise<OperationView | null> {
  try {
    return await finalize(session, admitted.operationId, outcome)
  } catch (error) {
    if (isBrokerError(error) && error.code === 'kernel_unavailable') return null
    throw error
  }
}

/** Waits for the broker's record; the tool's own word is never asked for. */
async function takeOutcome(run: PreparedRun): Promise<SignedOutcome> {
  const { session, admitted } = run
  const outcome = await run.timeline.step('outcome', () =>
    readOutcome(session.broker, admitted.context, outcomeBudgetMs(run)),
  )
  if (isSigned(outcome)) return outcome
  throw new BrokerError(
    'outcome_undetermined',
    `the broker has no record of the outcome yet: ${outcome.kind}`,
  )
}

/** By then the broker has a record, or never will without us. */
export function outcomeBudgetMs({ admitted }: PreparedRun): number {
  const { timeoutMs } = admitted.context.request.request.options
  return MAXIMUM_PREPARED_LIFETIME_MS + timeoutMs + OUTCOME_GRACE_MS
}
