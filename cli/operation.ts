// chio operation list | show | outcome | cancel: what the kernel keeps of a client's operations, what the broker has
// on record of one, and the one way to take back what was not started. Nothing here is signed or started.
import { type AdmissionState, isTerminalState } from '../protocol/admission-states.js'
import type { OperationView } from '../protocol/kernel-rpc.js'
import { beside } from './columns.js'
import { readRecordedRun } from '../host/recorded-run.js'
import { openHostSession } from './host-session.js'
import { withKernel } from './kernel-call.js'
import { parseLimit, parseOperationId } from './operation-argument.js'
import { type CommonOptions, print } from './output.js'
import { report } from './run-report.js'
import { findState, layoutOfState } from './state.js'

const LABEL_COLUMNS = 12
const LONGEST_BESIDE = 80 - LABEL_COLUMNS

export interface ListOptions extends CommonOptions {
  readonly limit: string
}

/** Lists the newest operations: a client's own; all of them for a peer without a caller key, such as root. */
export async function listOperations(options: ListOptions): Promise<void> {
  const limit = parseLimit(options.limit)
  const { operations } = await withKernel(options, kernel => kernel.call('list', { limit }))
  const lines = operations.flatMap(listLines)
  print(
    options,
    { schema: 'chio.operation-list.v1', operations },
    lines.length > 0 ? lines : ['No operations.'],
  )
}

/** Shows one operation: where it stands, why, and what settles it. */
export async function showOperation(id: string, options: CommonOptions): Promise<void> {
  const operationId = parseOperationId(id)
  const operation = await withKernel(options, kernel => kernel.call('inspect', { operationId }))
  print(options, { schema: 'chio.operation.v1', operation }, showLines(operation))
}

/** Takes back an operation that was not started. One that was is refused: its outcome is to be read. */
export async function cancelOperation(id: string, options: CommonOptions): Promise<void> {
  const operationId = parseOperationId(id)
  const operation = await withKernel(options, kernel => kernel.call('cancel', { operationId }))
  print(options, { schema: 'chio.operation-cancelled.v1', operation }, showLines(operation))
}

/** Reads and verifies the recorded outcome of one of this user's own operations, as its run would have told it. */
export async function showOutcome(id: string, options: CommonOptions): Promise<void> {
  const operationId = parseOperationId(id)
  const session = openHostSession(layoutOfState(findState(options.state)))
  try {
    const recorded = await readRecordedRun(session, operationId)
    await report(session, { ...recorded, tool: null, timeline: [] }, { ...options, ownTool: false })
  } finally {
    session.close()
  }
}

/** The id has a line of its own: it is as long as a line, and is there to be copied. */
function listLines(operation: OperationView): string[] {
  const { lastError, operationId, state, updatedAtUnixMs } = operation
  // A call that waits for its executor is open and due at no time.
  const isOpen = !isTerminalState(state as AdmissionState)
  return [
    operationId,
    `  ${state}  ${dateOf(updatedAtUnixMs)}`,
    ...(isOpen ? beside('', operation.settlement, 2) : []),
    ...(lastError === null ? [] : beside('', `last error: ${lastError}`, 2)),
    ...operation.sharesArgumentsWith.flatMap(other => ['  same arguments as the unresolved', `  ${other}`]),
  ]
}

function showLines(operation: OperationView): string[] {
  const { attemptId, lastError, settlesAtUnixMs } = operation
  const rows: [label: string, text: string | null][] = [
    ['operation', operation.operationId],
    ['state', operation.state],
    ['settlement', operation.settlement],
    ['settles', settlesAtUnixMs === null ? null : dateOf(settlesAtUnixMs)],
    ['last error', lastError],
    ['attempt', attemptId],
    ['grant', operation.grantId],
    ['invocation', operation.invocationId],
    ['request', operation.requestDigest],
    ['created', dateOf(operation.createdAtUnixMs)],
    ['updated', `${dateOf(operation.updatedAtUnixMs)}, version ${operation.version}`],
  ]
  return rows.flatMap(([label, text]) => (text === null ? [] : row(label, text)))
}

/** An id that leaves no room beside its label stands below it. */
function row(label: string, text: string): string[] {
  const isLongId = !text.includes(' ') && text.length > LONGEST_BESIDE
  return isLongId ? [label, ` ${text}`] : beside(label, text, LABEL_COLUMNS)
}

function dateOf(unixMs: number): string {
  return new Date(unixMs).toISOString()
}
