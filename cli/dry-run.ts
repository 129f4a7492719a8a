// What a run would send, with a hole where the credential goes, and whether its grant would let it. Nothing is
// reserved, decrypted or sent.
import { buildRequest, type RequestedExecution, readGrant } from '../host/admission.js'
import type { HostSession } from '../host/session.js'
import { unixSeconds } from '../protocol/clock.js'
import type { ErrorCode } from '../protocol/error-codes.js'
import { requestDigest } from '../protocol/execute-request.js'
import type { Grant } from '../protocol/grant.js'
import type { GrantView } from '../protocol/kernel-rpc.js'
import { placementText } from './credential.js'
import { wrap } from './columns.js'
import { grantEnd } from './grant-state.js'
import { type CommonOptions, print, visible } from './output.js'

/** Shows the request. Exit 1 when the kernel would refuse the run. */
export async function showRequest(
  session: HostSession,
  requested: RequestedExecution,
  options: CommonOptions,
): Promise<void> {
  const view = await readGrant(session, requested.grantId)
  const request = buildRequest(view.grant, requested)
  const refusal = refusalOf(view, unixSeconds(session.clock))
  const { destination } = request
  const credential = `[credential ${view.grant.credential.credentialId}, ${placementText(view.grant.placement)}]`
  const document = {
    schema: 'chio.run-dry.v1',
    destination,
    headers: request.headers.map(field => field.name),
    bodyBytes: request.body.length,
    requestDigest: requestDigest(request),
    credential,
    requiredApprovals: view.grant.requiredApprovals,
    executionsLeft: view.grant.maximumExecutions - view.executions - view.held,
    revoked: view.revoked,
    refusal,
  }
  if (refusal !== null) process.exitCode = 1
  print(options, document, [
    `${destination.method} ${destination.exactPathAndQuery} HTTP/1.1`,
    `host: ${destination.normalizedHost}:${destination.explicitPort}`,
    ...request.headers.map(field => `${field.name}: ${visible(Buffer.from(field.value).toString('latin1'))}`),
    credential,
    `body: ${request.body.length} bytes; request digest`,
    document.requestDigest,
    ...approvalLines(view.grant),
    ...(refusal === null ? [] : wrap(refusal.sentence, 80)),
    'Nothing was reserved, decrypted or sent.',
  ])
}

/** A run that has to be approved takes as long as people do. */
function approvalLines({ requiredApprovals }: Grant): string[] {
  if (requiredApprovals === 0) return []
  return [`A run would wait for ${requiredApprovals} of the kernel's approvers: --wait 15m`]
}

/** Why the kernel would refuse a run under this grant now. */
function refusalOf(
  view: GrantView,
  nowUnixSeconds: number,
): { readonly code: ErrorCode; readonly sentence: string } | null {
  const end = grantEnd(view, nowUnixSeconds)
  return end === null
    ? null
    : { code: end.code, sentence: `A run would be refused: the grant ${end.reason}.` }
}
