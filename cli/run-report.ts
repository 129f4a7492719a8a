// How the verified outcome of an operation is told, by the run itself or later from the record: text for people,
// one document with --json, and the exit code.
import { escapeForTerminal, type FinishedTool } from '../cage/index.js'
import { refusalRow, REFUSALS, type RefusalReason } from '../daemon/refusals.js'
import type { McpVerdict } from '../host/mcp-call.js'
import { exitCodeOfFailure, isAnswerRefused } from '../host/exit-codes.js'
import type { RecordedRun } from '../host/recorded-run.js'
import { outcomeMembers } from '../host/run-record.js'
import type { HostSession } from '../host/session.js'
import type { TimelineStep } from '../host/timeline.js'
import { ERROR_CODES } from '../protocol/error-codes.js'
import { isBrokerError } from '../protocol/errors.js'
import type { ExecutionFailureReceiptBody } from '../protocol/failure.js'
import { beside } from './columns.js'
import { type CommonOptions, marked, milliseconds, print } from './output.js'

const LABEL_COLUMNS = 10

/** What is told: a run that has just ended, or the record of one that is gone, which has no tool and no steps. */
export interface ToldRun extends RecordedRun {
  readonly tool: FinishedTool | null
  /** What the answer of a server came to, where one was asked. */
  readonly mcp?: McpVerdict | null
  readonly timeline: readonly TimelineStep[]
}

/** How it is told. `ownTool`: whether the tool's words are of interest beside the provider's. */
export interface Telling extends CommonOptions {
  readonly ownTool: boolean
}

/** Prints an outcome and sets the exit code. */
export async function report(session: HostSession, run: ToldRun, telling: Telling): Promise<void> {
  const reason = await reasonOf(session, run)
  if (run.outcome.kind === 'failure') process.exitCode = exitCodeOfFailure(run.outcome.failure.receipt.body)
  else if (withheldBecause(run) !== null) process.exitCode = ERROR_CODES.outcome_undetermined.exitCode
  print(telling, runDocument(run, reason), runLines(run, reason, telling))
}

/** Why an answer that the provider gave is not shown: an output guard of the kernel refused it. */
function withheldBecause({ operation, outcome }: ToldRun): string | null {
  if (outcome.kind === 'failure' || operation?.state !== 'denied_after_delivery') return null
  return operation.lastError ?? 'an output guard refused it'
}

/** The broker's own reason for a failure; the signed receipt carries the code alone. */
async function reasonOf(session: HostSession, run: ToldRun): Promise<string | null> {
  if (run.outcome.kind === 'response') return null
  try {
    return (await session.broker.attemptStatus(run.attemptId)).reason
  } catch (error) {
    if (isBrokerError(error)) return null
    throw error
  }
}

/** The operator's sentence of a reason. A later broker may know one that this program does not. */
export function sentenceOf(reason: string | null): string | null {
  if (reason === null || !Object.hasOwn(REFUSALS, reason)) return null
  const { check, expected } = refusalRow(reason as RefusalReason)
  return `${check}: expected ${expected}`
}

function runDocument(run: ToldRun, reason: string | null) {
  const withheld = withheldBecause(run)
  const response = run.outcome.kind === 'response' && withheld === null ? run.outcome.response : null
  return {
    schema: 'chio.run.v1',
    operationId: run.operationId,
    attemptId: run.attemptId,
    operationState: run.operation?.state ?? null,
    sharesArgumentsWith: run.operation?.sharesArgumentsWith ?? [],
    ...outcomeMembers(run.outcome),
    headers: response?.headers.map(({ name, value }) => [name, Buffer.from(value).toString('latin1')]) ?? [],
    bodyBase64: response === null ? null : Buffer.from(response.body).toString('base64'),
    withheld,
    tool: run.tool === null || withheld !== null ? null : toolMembers(run.tool),
    mcp: run.mcp ?? null,
    journal: run.journalDirectory,
    timeline: run.timeline,
    reason,
    reasonSentence: sentenceOf(reason),
  }
}

function toolMembers({ exitCode, signal, stderr, stdout, truncated }: FinishedTool) {
  return {
    exitCode,
    signal,
    truncated,
    stdoutBase64: Buffer.from(stdout).toString('base64'),
    stderrBase64: Buffer.from(stderr).toString('base64'),
  }
}

function runLines(run: ToldRun, reason: string | null, { ownTool }: Telling): string[] {
  const { timeline, tool } = run
  const withheld = withheldBecause(run)
  const tookMs = timeline.reduce((end, step) => Math.max(end, step.startMs + step.durationMs), 0)
  return [
    ...(ownTool && tool !== null && withheld === null ? toolLines(tool, run.mcp ?? null) : []),
    ...(withheld === null ? outcomeLines(run, reason) : withheldLines(withheld)),
    `operation ${run.operationId}`,
    ...beside('state', run.operation?.state ?? 'left to the kernel, which was away', LABEL_COLUMNS),
    ...sharingLines(run.operation?.sharesArgumentsWith ?? []),
    `journal   ${run.journalDirectory}`,
    '          receipt.json, outcome.json; the frames are encrypted',
    ...(timeline.length === 0 ? [] : [`took      ${milliseconds(tookMs)}`]),
  ]
}

/** The same arguments twice may be one task asked for twice. */
function sharingLines(ids: readonly string[]): string[] {
  if (ids.length === 0) return []
  const warned = 'the same arguments as operations whose effect is not known: see chio explain'
  return [...beside('warning', warned, LABEL_COLUMNS), ...ids.map(id => `          ${id}`)]
}

/** The tool's own words, marked as such and made harmless to a terminal. A server's messages are for its client. */
function toolLines(tool: FinishedTool, mcp: McpVerdict | null): string[] {
  const end = tool.signal === null ? `exit ${tool.exitCode}` : `signal ${tool.signal}`
  return [
    ...(mcp === null ? marked('tool', escapeForTerminal(tool.stdout)) : []),
    ...marked('tool', escapeForTerminal(tool.stderr), 'stderr'),
    ...(tool.truncated ? ['tool said more than is kept: the rest was cut'] : []),
    `tool ended: ${end}`,
    ...(mcp === null ? [] : verdictLines(mcp)),
  ]
}

function verdictLines(mcp: McpVerdict): string[] {
  return mcp.kind === 'verified'
    ? ['server answered: the verified response']
    : ['server answered: nothing that stands', ...beside('', mcp.sentence, 2)]
}

/** The tool had the answer too, so its words are not shown either. */
function withheldLines(why: string): string[] {
  return [
    'verified outcome: an answer that is withheld',
    ...beside('', why, 2),
    ...beside('', 'the provider was reached and has acted; do not repeat', 2),
  ]
}

function outcomeLines({ outcome }: ToldRun, reason: string | null): string[] {
  if (outcome.kind === 'failure') return failureLines(outcome.failure.receipt.body, reason)
  const { status, body } = outcome.response
  return [
    `verified outcome: HTTP ${status}, ${body.length} bytes`,
    ...marked('provider', escapeForTerminal(body)),
  ]
}

function failureLines(body: ExecutionFailureReceiptBody, reason: string | null): string[] {
  const { diagnosticCode, dispatchKnowledge, stage } = body
  const sentence = sentenceOf(reason)
  return [
    'verified outcome: no response',
    ...beside('', `${diagnosticCode} at ${stage}; dispatch ${dispatchKnowledge.replace('_', ' ')}`, 2),
    ...beside('', meaningOf(body, reason), 2),
    ...(reason === null ? [] : beside('reason', `${reason} (docs/refusals.md)`, LABEL_COLUMNS)),
    ...(sentence === null ? [] : beside('', sentence, LABEL_COLUMNS)),
  ]
}

/** What an operator must know before anything is tried again. */
function meaningOf(body: ExecutionFailureReceiptBody, reason: string | null): string {
  if (isAnswerRefused(body)) {
    return `the provider was reached and may have acted; its answer was refused: ${reason ?? body.diagnosticCode}; do not repeat`
  }
  switch (body.dispatchKnowledge) {
    case 'unknown':
      return 'the provider may have acted; do not repeat: ask the provider'
    case 'committed':
      return 'the dispatch was committed and failed before the provider had the request'
    case 'not_committed':
    case 'not_started':
      return 'nothing was sent'
  }
}
