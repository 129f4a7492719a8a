// chio run: one brokered operation from grant to verified outcome, with the tool in its cage.
import { buildRequest, type RequestedExecution, readGrant } from '../host/admission.js'
import { type RunProgress, runBrokered } from '../host/brokered-run.js'
import type { HostSession } from '../host/session.js'
import { requestDigest } from '../protocol/execute-request.js'
import { readIdentities } from '../system/identities.js'
import { parseSeconds } from './duration.js'
import { openHostSession } from './host-session.js'
import { tellInterruption } from './interruption.js'
import { namedText } from './named-text.js'
import { type CommonOptions, print, visible } from './output.js'
import { placementText } from './credential.js'
import { parseHeader, readBody } from './request-input.js'
import { report } from './run-report.js'
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
    await report(session, run, { ...options, ownTool: command.length > 0 })
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
