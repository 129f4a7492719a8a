// chio run: one brokered operation from grant to verified outcome, with the tool in its cage.
import { escapeForTerminal } from '../cage/index.js'
import { buildRequest, type RequestedExecution, readGrant } from '../host/admission.js'
import { type BrokeredRun, type RunProgress, runBrokered } from '../host/brokered-run.js'
import { outcomeMembers } from '../host/run-record.js'
import type { HostSession } from '../host/session.js'
import { isBrokerError } from '../protocol/errors.js'
import { requestDigest } from '../protocol/execute-request.js'
import { readIdentities } from '../system/identities.js'
import { parseSeconds } from './duration.js'
import { openHostSession } from './host-session.js'
import { tellInterruption } from './interruption.js'
import { namedText } from './named-text.js'
import { type CommonOptions, marked, milliseconds, print, visible } from './output.js'
import { placementText } from './credential.js'
import { parseHeader, readBody } from './request-input.js'
import { findState, layoutOfState } from './state.js'
import { toolCage } from './tool-cage.js'

/** As the kernel bounds the ids of its grants. */
const MAXIMUM_GRANT_ID_BYTES = 128

export interface RunOptions extends CommonOptions {
  readonly capability: string
  readonly body?: string
  readonly header: readonly string[]
  readonly wait?: string
  readonly exec: 'allowed' | 'once'
  readonly dryRun?: boolean
}

/** Runs one operation and prints its verified outcome. Exit 1 when the provider was not reached or refused. */
export async function runTool(command: readonly string[], options: RunOptions): Promise<void> {
  const layout = layoutOfState(findState(options.state))
  let progress: RunProgress | undefined
  const listenNoMore = tellInterruption(() => progress, options.json === true)
  const session = openHostSession(layout)
  const requested = {
    grantId: namedText(options.capability, '--capability', MAXIMUM_GRANT_ID_BYTES),
    body: readBody(options.body),
    headers: options.header.map(parseHeader),
  }
  try {
    if (options.dryRun === true) return await showRequest(session, requested, options)
    const cage = toolCage({ command, exec: options.exec }, readIdentities(layout.identities))
    const waitForSlotMs = options.wait === undefined ? 0 : parseSeconds(options.wait, '--wait') * 1_000
    const run = await runBrokered(session, {
      ...requested,
      cage,
      waitForSlotMs,
      onProgress: now => (progress = now),
    })
    report(run, { ...options, reason: await reasonOf(session, run), ownTool: command.length > 0 })
  } finally {
    listenNoMore()
    session.close()
  }
}

/** What would be sent, with a hole where the credential goes; nothing is reserved and nothing decrypted. */
async function showRequest(
  session: HostSession,
  requested: RequestedExecution,
  options: CommonOptions,
): Promise<void> {
  const view = await readGrant(session, requested.grantId)
  const request = buildRequest(view.grant, requested)
  const { destination } = request
  const credential = `[credential ${view.grant.credential.credentialId}, ${placementText(view.grant.placement)}]`
  const document = {
    schema: 'chio.run-dry.v1',
    destination,
    headers: request.headers.map(field => field.name),
    bodyBytes: request.body.length,
    requestDigest: requestDigest(request),
    credential,
    executionsLeft: view.grant.maximumExecutions - view.executions - view.held,
    revoked: view.revoked,
  }
  print(options, document, [
    `${destination.method} ${destination.exactPathAndQuery} HTTP/1.1`,
    `host: ${destination.normalizedHost}:${destination.explicitPort}`,
    ...request.headers.map(field => `${field.name}: ${visible(Buffer.from(field.value).toString('latin1'))}`),
    credential,
    `body: ${request.body.length} bytes; request digest ${document.requestDigest}`,
    'Nothing was reserved, decrypted or sent.',
  ])
}

/** How a run is told: why it failed, as the broker recorded it, and whether the tool's words are of interest. */
interface Telling extends CommonOptions {
  readonly reason: string | null
  readonly ownTool: boolean
}

/** The broker's own reason for a failure; the signed receipt carries the code alone. */
async function reasonOf(session: HostSession, run: BrokeredRun): Promise<string | null> {
  if (run.outcome.kind === 'response') return null
  try {
    return (await session.broker.attemptStatus(run.attemptId)).reason
  } catch (error) {
    if (isBrokerError(error)) return null
    throw error
  }
}

function report(run: BrokeredRun, telling: Telling): void {
  if (run.outcome.kind !== 'response') process.exitCode = exitCodeOf(run)
  print(telling, { ...runDocument(run), reason: telling.reason }, runLines(run, telling))
}

function exitCodeOf(run: BrokeredRun): number {
  return run.outcome.kind === 'failure' && run.outcome.failure.receipt.body.dispatchKnowledge === 'unknown'
    ? 75
    : 1
}

function runDocument(run: BrokeredRun) {
  const response = run.outcome.kind === 'response' ? run.outcome.response : null
  return {
    schema: 'chio.run.v1',
    operationId: run.operationId,
    attemptId: run.attemptId,
    operationState: run.operation?.state ?? null,
    ...outcomeMembers(run.outcome),
    headers: response?.headers.map(({ name, value }) => [name, Buffer.from(value).toString('latin1')]) ?? [],
    bodyBase64: response === null ? null : Buffer.from(response.body).toString('base64'),
    tool: { exitCode: run.tool.exitCode, signal: run.tool.signal, truncated: run.tool.truncated },
    journal: run.journalDirectory,
    timeline: run.timeline,
  }
}

function runLines(run: BrokeredRun, { reason, ownTool }: Telling): string[] {
  return [
    ...(ownTool ? toolLines(run) : []),
    ...outcomeLines(run),
    ...(reason === null ? [] : [`reason    ${reason} (docs/refusals.md)`]),
    `operation ${run.operationId} ${run.operation?.state ?? 'left to the kernel, which was away'}`,
    `receipt   ${run.journalDirectory}/receipt.json`,
    `journal   ${run.journalDirectory} (frames encrypted)`,
    `took      ${milliseconds(run.timeline.reduce((end, step) => Math.max(end, step.startMs + step.durationMs), 0))}`,
  ]
}

/** The tool's own words, marked as such and made harmless to a terminal. */
function toolLines({ tool }: BrokeredRun): string[] {
  const end = tool.signal === null ? `exit ${tool.exitCode}` : `signal ${tool.signal}`
  const words = [tool.stdout, tool.stderr].flatMap(bytes => marked('tool', escapeForTerminal(bytes)))
  return [...words, `tool ended: ${end}`]
}

function outcomeLines(run: BrokeredRun): string[] {
  if (run.outcome.kind === 'failure') {
    const { diagnosticCode, dispatchKnowledge, stage } = run.outcome.failure.receipt.body
    return [
      `verified outcome: no response (${diagnosticCode} at ${stage}; dispatch ${dispatchKnowledge.replace('_', ' ')})`,
    ]
  }
  const { status, body } = run.outcome.response
  return [
    `verified outcome: HTTP ${status}, ${body.length} bytes`,
    ...marked('provider', escapeForTerminal(body)),
  ]
}
