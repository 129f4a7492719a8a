// chio capability issue | revoke | list: grants in the kernel, and their revocation, which tells the
// broker first (it works with the kernel silent), then the kernel.
import { randomBytes } from 'node:crypto'
import type { StoredCredential } from '../client/administrator.js'
import { systemClock } from '../native/clock.js'
import { unixSeconds } from '../protocol/clock.js'
import { type BrokerDestination, destinationFromUrl, METHODS } from '../protocol/destination.js'
import { BrokerError } from '../protocol/errors.js'
import { GRANT_SCHEMA, type Grant } from '../protocol/grant.js'
import type { GrantView } from '../protocol/kernel-rpc.js'
import {
  MAXIMUM_APPROVALS,
  MAXIMUM_BODY_BYTES,
  MAXIMUM_RESPONSE_BYTES,
  MAXIMUM_TIMEOUT_MS,
} from '../protocol/limits.js'
import { asAdministrator } from './administrator.js'
import { beside } from './columns.js'
import { parseSeconds } from './duration.js'
import { grantEnd } from './grant-state.js'
import { readPins } from './host-session.js'
import { judgeDestination } from './issue-destination.js'
import { fromOption } from './named-text.js'
import { withKernel } from './kernel-call.js'
import { given, type CommonOptions, print, visible } from './output.js'
import { findState, layoutOfState } from './state.js'
import { callerKeyOf, findUser } from './users.js'

const MAXIMUM_LISTED = 1_000

export interface IssueOptions extends CommonOptions {
  readonly credential: string
  readonly url: string
  readonly method: string
  readonly client?: string
  readonly header: readonly string[]
  readonly max: string
  readonly approvals: string
  readonly expires: string
  readonly maxBody: string
  readonly maxResponse: string
  readonly timeout: string
}

/** Issues a grant for one credential, one endpoint and one client, and prints its id. */
export async function issueCapability(options: IssueOptions): Promise<void> {
  const destination = destinationOf(options)
  const headers = options.header.map(headerName)
  const layout = layoutOfState(findState(options.state))
  readPins(layout)
  const uid = options.client === undefined ? (process.geteuid?.() ?? 0) : findUser(options.client).uid
  const callerPublicKey = callerKeyOf(layout, uid)
  const warning = await judgeDestination(layout, destination)
  const grant = await asAdministrator(layout, async administrator => {
    const { tenantScope } = administrator
    const stored = newestVersion(await administrator.credentials(), options.credential)
    const wanted = grantOf({ options, callerPublicKey, destination, headers, tenantScope, stored })
    await administrator.issue(wanted)
    return wanted
  })
  // Apart from the id, which is all of standard output.
  if (warning !== null && options.json !== true) console.error(`chio: warning: ${visible(warning)}`)
  print(options, { schema: 'chio.capability-issued.v1', grant, warning }, [grant.grantId])
}

/** The newest version of a credential; a grant pins it, so that a rotation is noticed. */
function newestVersion(credentials: readonly StoredCredential[], id: string): StoredCredential {
  const versions = credentials.filter(({ credential }) => credential.credentialId === id)
  const newest = versions.sort((a, b) => b.credential.version - a.credential.version)[0]
  if (newest?.enabled === true) return newest
  const got = newest === undefined ? id : `${id} version ${newest.credential.version}, which is disabled`
  throw new BrokerError(
    'credential_unavailable',
    `credential refused: expected one that is stored and enabled, got ${got}`,
  )
}

function grantOf(from: {
  options: IssueOptions
  callerPublicKey: string
  destination: BrokerDestination
  headers: readonly string[]
  tenantScope: string
  stored: StoredCredential
}): Grant {
  const { options, stored } = from
  const now = unixSeconds(systemClock)
  return {
    allowedCallerHeaders: [...new Set(from.headers)].sort(),
    callerPublicKey: from.callerPublicKey,
    credential: stored.credential,
    destination: from.destination,
    expiresAtUnixSeconds: now + parseSeconds(options.expires, '--expires'),
    grantId: `grant-${randomBytes(12).toString('hex')}`,
    issuedAtUnixSeconds: now,
    maximumBodyBytes: wholeNumber(options.maxBody, '--max-body', 0, MAXIMUM_BODY_BYTES),
    maximumExecutions: wholeNumber(options.max, '--max', 1, Number.MAX_SAFE_INTEGER),
    maximumResponseBytes: wholeNumber(options.maxResponse, '--max-response', 1, MAXIMUM_RESPONSE_BYTES),
    maximumTimeoutMs: parseSeconds(options.timeout, '--timeout', MAXIMUM_TIMEOUT_MS / 1_000) * 1_000,
    placement: stored.placement,
    requiredApprovals: wholeNumber(options.approvals, '--approvals', 0, MAXIMUM_APPROVALS),
    schema: GRANT_SCHEMA,
    tenantScope: from.tenantScope,
  }
}

function destinationOf({ method, url }: IssueOptions): BrokerDestination {
  const known = METHODS.find(name => name === method.toUpperCase())
  if (known !== undefined) return fromOption('--url', () => destinationFromUrl(url, known))
  throw new BrokerError(
    'usage',
    `--method refused: expected one of ${METHODS.join(' ')}, got ${given(method)}`,
  )
}

function headerName(text: string): string {
  const name = text.toLowerCase()
  if (/^[a-z0-9-]{1,128}$/.test(name)) return name
  throw new BrokerError(
    'usage',
    `--header refused: expected a name of letters, digits and hyphens, got ${given(text)}`,
  )
}

function wholeNumber(text: string, option: string, minimum: number, maximum: number): number {
  const value = /^[0-9]{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (value >= minimum && value <= maximum) return value
  throw new BrokerError(
    'usage',
    `${option} refused: expected a whole number from ${minimum} to ${maximum}, got ${given(text)}`,
  )
}

/** Lists grants: a client's own; all of them for a peer without a caller key, such as root. */
export async function listCapabilities(options: CommonOptions): Promise<void> {
  const { grants } = await withKernel(options, kernel =>
    kernel.call('list_grants', { limit: MAXIMUM_LISTED }),
  )
  const now = unixSeconds(systemClock)
  const lines = grants.flatMap(view => listLines(view, now))
  print(
    options,
    { schema: 'chio.capability-list.v1', grants },
    lines.length > 0 ? lines : ['No capabilities.'],
  )
}

/** What is left of a grant stands beside its id, what it permits below. */
function listLines(view: GrantView, nowUnixSeconds: number): string[] {
  const { credential, destination, expiresAtUnixSeconds, grantId, maximumExecutions, requiredApprovals } =
    view.grant
  const end = grantEnd(view, nowUnixSeconds)
  const origin = `${destination.method} https://${destination.normalizedHost}:${destination.explicitPort}`
  const until = new Date(expiresAtUnixSeconds * 1_000).toISOString().slice(0, 19)
  const used = `${view.executions} of ${maximumExecutions} used`
  return [
    `${grantId}  ${end === null ? used : `${used}, ${end.word}`}`,
    ...beside('', `${origin}${destination.exactPathAndQuery}`, 2),
    ...beside('', `${credential.credentialId}, until ${until}Z${approvalsText(requiredApprovals)}`, 2),
  ]
}

/** What a run under a grant waits for. */
export function approvalsText(requiredApprovals: number): string {
  if (requiredApprovals === 0) return ''
  return `, needs ${requiredApprovals} ${requiredApprovals === 1 ? 'approval' : 'approvals'}`
}
