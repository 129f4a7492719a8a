// chio explain: one operation whole: where it stands, who may move it next, until when, what happened to it, whether
// its execution is spent and by which record, what its attempt says at the broker, and what to do. Reads alone.
import { BrokerError } from '../protocol/errors.js'
import type { OperationView } from '../protocol/kernel-rpc.js'
import type { HistoryLine, OperationExplanation, Reconciliation } from '../protocol/operation-rpc.js'
import { beside, wrap } from './columns.js'
import { withKernel } from './kernel-call.js'
import { given, type CommonOptions, print } from './output.js'
import { sentenceOf } from './run-report.js'

const LABEL_COLUMNS = 12
const LONGEST_BESIDE = 80 - LABEL_COLUMNS
const MOVERS: Readonly<Record<OperationExplanation['mover'], string>> = {
  approver: 'the approvers that the kernel names: chio approval show',
  executor: 'its executor, by its original report',
  host: 'its host, by repeating the run or taking it back',
  kernel: 'its kernel, by itself',
  nobody: 'nobody: it has ended',
}

/** Explains an operation by its own id or by its attempt's. */
export async function explainOperation(id: string, options: CommonOptions): Promise<void> {
  if (!/^[A-Za-z0-9_-]{1,128}$/.test(id)) {
    throw new BrokerError(
      'usage',
      `operation refused: expected the id of an operation or of an attempt, got ${given(id)}`,
    )
  }
  const told = await withKernel(options, kernel => kernel.call('explain', { id }))
  print(options, { schema: 'chio.operation-explained.v1', ...told }, lines(told.operation, told.explanation))
}

function lines(operation: OperationView, explanation: OperationExplanation): string[] {
  const { attempt, attemptReason, capture, history, mover, next, reconciliations, sharesArgumentsWith } =
    explanation
  const { settlesAtUnixMs } = operation
  return [
    operation.operationId,
    ...row('state', `${operation.state}, version ${operation.version}`),
    ...row('moved by', MOVERS[mover]),
    ...(settlesAtUnixMs === null ? [] : row('deadline', dateOf(settlesAtUnixMs))),
    ...row('execution', capture),
    ...row('attempt', attempt),
    ...reasonLines(attemptReason),
    ...row('settlement', operation.settlement),
    ...(operation.lastError === null ? [] : row('last error', operation.lastError)),
    ...history.flatMap(historyLines),
    ...sharesArgumentsWith.flatMap(other => ['same arguments as the unresolved', `  ${other}`]),
    ...reconciliations.flatMap(reconciliationLines),
    ...row('next', next),
  ]
}

/** As a run tells it: the row of the refusal table, and its sentence. */
function reasonLines(reason: string | null): string[] {
  if (reason === null) return []
  const sentence = sentenceOf(reason)
  return [...row('reason', `${reason} (docs/refusals.md)`), ...(sentence === null ? [] : row('', sentence))]
}

function historyLines({ cause, recordedAtUnixMs, to, version }: HistoryLine): string[] {
  return row(version === 1 ? 'history' : '', `${dateOf(recordedAtUnixMs)}  ${to}: ${cause}`)
}

function reconciliationLines({ recordedAtUnixMs, stated }: Reconciliation): string[] {
  const deed = stated.provider.replaceAll('_', ' ')
  return row('stated', `${dateOf(recordedAtUnixMs)}  provider ${deed}: ${stated.statement}`)
}

/** An id that leaves no room beside its label stands below it, there to be copied. */
function row(label: string, text: string): string[] {
  const hasLongId = text.split(' ').some(word => word.length > LONGEST_BESIDE)
  return hasLongId ? [label, ...wrap(text, 79).map(line => ` ${line}`)] : beside(label, text, LABEL_COLUMNS)
}

function dateOf(unixMs: number): string {
  return new Date(unixMs).toISOString()
}
