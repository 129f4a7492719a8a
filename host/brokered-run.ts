// Steps 1 to 8 of one brokered operation. The cage is opened first, so that its start costs nothing
// later; the start is committed before the stream is handed over; the outcome comes from the broker,
// never from the tool. Every way out closes the host's copy of the stream and settles the operation.
import { type CagePolicy, openCage, type WaitingCage } from '../cage/index.js'
import { assertCallFits, MCP_OPENING_MS, McpCall } from './mcp-call.js'
import { prepareRun, type PreparedRun, type RunChoices } from './prepared-run.js'
import {
  type BrokeredRun,
  endRun,
  handOff,
  outcomeBudgetMs,
  type RunProgress,
  type RunState,
  settling,
  startOperation,
} from './run-steps.js'
import type { HostSession } from './session.js'
import { Timeline } from './timeline.js'

export type { BrokeredRun, RunProgress } from './run-steps.js'

/** One run: what to execute, in which cage, and how long to wait for a held slot. */
export interface BrokeredRunRequest extends RunChoices {
  readonly cage: CagePolicy
  /** The tool is an MCP server, whose one call is made here. Its cage needs an input pipe. */
  readonly mcp?: boolean
  /** How long the tool may go on after the outcome was recorded; then its cage is killed. */
  readonly toolGraceMs?: number
  /** Told when the stream is prepared, and again just before the start is sent. It must not throw. */
  readonly onProgress?: (progress: RunProgress) => void
}

/**
 * Runs one brokered operation to its verified end.
 * @throws BrokerError with `outcome`: `not_started` says that nothing was dispatched and the operation was
 * released; `unknown` says that only the broker's record can tell (exit 75).
 */
export async function runBrokered(session: HostSession, request: BrokeredRunRequest): Promise<BrokeredRun> {
  if (request.mcp === true) assertInputPipe(request.cage)
  const timeline = new Timeline(session.clock, session.atMoment)
  const opening = timeline.step('cage', () => openCage(request.cage))
  // Awaited where it is needed; a refusal before that must not be an unhandled rejection.
  opening.catch(() => undefined)
  try {
    const run = await prepareRun(session, request, timeline)
    const state: RunState = { isStarted: false, taken: null }
    return await settling(run, state, () => executeRun(run, state, { request, opening }))
  } finally {
    await opening.then(cage => cage.close()).catch(() => undefined)
  }
}

/** A server is spoken with through its standard input, which a policy has to give it. */
export function assertInputPipe({ input }: CagePolicy): void {
  if (input !== 'pipe') throw new RangeError(`"cage.input" expected 'pipe' for an MCP server, got another`)
}

async function executeRun(
  run: PreparedRun,
  state: RunState,
  { request, opening }: { readonly request: BrokeredRunRequest; readonly opening: Promise<WaitingCage> },
): Promise<BrokeredRun> {
  const { operationId, context } = run.admitted
  const { mcp = false, onProgress, toolGraceMs } = request
  onProgress?.({ operationId, isStarted: false })
  if (mcp) assertCallFits(context.request)
  const cage = await opening
  await startOperation(run, state, request)
  const handed = await handOff(run, cage)
  const bounds = { openingMs: MCP_OPENING_MS, callMs: outcomeBudgetMs(run) }
  const { clock } = run.session
  const call = mcp ? new McpCall(handed.running, { context, clock }, bounds) : null
  return endRun(run, state, { ...handed, call, toolGraceMs })
}
