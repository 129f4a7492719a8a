// chio run: one brokered operation from grant to verified outcome, with the tool in its cage.
import { type RunProgress, runBrokered } from '../host/brokered-run.js'
import type { StartWarning } from '../protocol/operation-rpc.js'
import { readIdentities } from '../system/identities.js'
import { showRequest } from './dry-run.js'
import { parseSeconds } from './duration.js'
import { openHostSession } from './host-session.js'
import { tellInterruption } from './interruption.js'
import { namedText } from './named-text.js'
import { type CommonOptions, jsonLine } from './output.js'
import { parseHeader, readBody } from './request-input.js'
import { report } from './run-report.js'
import { findState, layoutOfState } from './state.js'
import { serverCage, toolCage } from './tool-cage.js'

/** As the kernel bounds the ids of its grants. */
const MAXIMUM_GRANT_ID_BYTES = 128

export interface RunOptions extends CommonOptions {
  readonly capability: string
  readonly body?: string
  readonly header: readonly string[]
  readonly wait?: string
  readonly exec: 'allowed' | 'once'
  readonly mcp?: boolean
  readonly dryRun?: boolean
}

/** Said at once, on standard error: the answer may take as long as people do. */
function tellWait(operationId: string, { json, wait }: RunOptions): void {
  const document = { schema: 'chio.run-waits.v1', operationId, waitsFor: 'approvals' }
  const text = `waits ${wait} for the approvers of operation\n${operationId}\nthey see it with: chio approval show ${operationId}`
  console.error(json === true ? jsonLine(document) : text)
}

/** Said before the tool has the request, on standard error: what was started may have been done before. */
function tellWarning({ operationIds, sentence }: StartWarning, { json }: RunOptions): void {
  const document = { schema: 'chio.run-warning.v1', operationIds, sentence }
  console.error(json === true ? jsonLine(document) : `warning: ${sentence}`)
}

/** Runs one operation and prints its verified outcome. Exit 1 when the provider was not reached or refused. */
export async function runTool(command: readonly string[], options: RunOptions): Promise<void> {
  const layout = layoutOfState(findState(options.state))
  const session = openHostSession(layout)
  const requested = {
    grantId: namedText(options.capability, '--capability', MAXIMUM_GRANT_ID_BYTES),
    body: readBody(options.body),
    headers: options.header.map(parseHeader),
  }
  // Not before: the body may be waited for, and nothing could be heard meanwhile. Until here a signal ends us by itself.
  let progress: RunProgress | undefined
  const listenNoMore = tellInterruption(() => progress, options.json === true)
  try {
    if (options.dryRun === true) return await showRequest(session, requested, options)
    const { exec, mcp = false } = options
    const identities = readIdentities(layout.identities)
    const cage = mcp
      ? serverCage({ command, exec }, identities, session.pins.broker)
      : toolCage({ command, exec }, identities)
    const waitForSlotMs = options.wait === undefined ? 0 : parseSeconds(options.wait, '--wait') * 1_000
    const run = await runBrokered(session, {
      ...requested,
      cage,
      mcp,
      waitForSlotMs,
      onApprovalAwaited: operationId => tellWait(operationId, options),
      onProgress: now => (progress = now),
      onWarning: warning => tellWarning(warning, options),
    })
    await report(session, run, { ...options, ownTool: mcp || command.length > 0 })
  } finally {
    listenNoMore()
    session.close()
  }
}
