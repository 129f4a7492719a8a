// Owns the checks between claim and acknowledgement, in their order, and what they fix: request, binding, deadline.
// Must never: compute the deadline before all else is known, or twice.
// Source: the broker protocol, sections 8.2 and 9.
import type { LiveParent } from '../protocol/authority-rpc.js'
import { unixSeconds } from '../protocol/clock.js'
import type { BrokerCapabilityBody } from '../protocol/capability.js'
import { type BrokerExecuteRequest, verifyExecuteRequest } from '../protocol/execute-request.js'
import { placementHeader } from '../protocol/placement.js'
import { registrationDigest } from '../protocol/registration.js'
import type { Verified } from '../protocol/verified.js'
import { type AttemptRecord, findAttempt } from './attempts.js'
import { judgeLiveParent, judgeRevocation, revocationIdsOf } from './authority-judgement.js'
import { bindFrame, type FrameBinding } from './binding.js'
import type { StoredCredential } from './credentials.js'
import { askingUntil, fixDeadline } from './deadline.js'
import { executePins } from './execute-pins.js'
import type { BrokerParts } from './parts.js'
import type { Preparation, PreparedTerms } from './preparation.js'
import { admitProviderRequest } from './provider/request-writer.js'
import { routeTo } from './provider/route.js'
import { Refused, refusing } from './refused.js'
import { assertNotRevoked } from './revocations.js'

/** One byte of a response takes at most 13 in its frame (decimals twice); the rest of the frame fits in this. */
const FRAME_BYTES_PER_RESPONSE_BYTE = 13
const FRAME_OVERHEAD_BYTES = 64 * 1024

/** @throws Refused with the first check that fails. */
export async function preparedTerms(parts: BrokerParts, preparation: Preparation): Promise<PreparedTerms> {
  const { execute, payload, registration } = preparation.candidate
  const { body } = execute.capability
  preparation.attempt = registeredAttempt(parts, preparation)
  const { parent, revocationIds } = await currentAuthority(parts, preparation, body)
  assertNotRevoked(parts.store, body.parentCapabilityId)
  const request = verifiedRequest(parts, execute)
  const credential = usableCredential(parts, body)
  const route = refusing('destination_refused', () =>
    routeTo(request.request.destination, parts.localProviders),
  )
  const providerRequest = refusing('request_refused', () =>
    admitProviderRequest({ ...request.request, placement: credential.placement }),
  )
  const binding = await bindFrame(request, payload, parts.config.tenantScope)
  assertFits(parts, request, binding)
  const deadline = fixDeadline(parts.clock, {
    capabilityExpiresAtUnixSeconds: body.expiresAtUnixSeconds,
    nonceExpiresAtUnixSeconds: registration.nonceExpiresAtUnixSeconds,
  })
  return { request, deadline, binding, parent, revocationIds, credential, route, providerRequest }
}

function registeredAttempt(parts: BrokerParts, { attemptId, candidate }: Preparation): AttemptRecord {
  const attempt = findAttempt(parts.store, attemptId)
  if (attempt === undefined) throw new Refused('attempt_unregistered', 'none')
  if (attempt.registrationDigest !== registrationDigest(candidate.registration)) {
    throw new Refused('attempt_differs', 'another registration of this attempt')
  }
  if (attempt.state !== 'registered' || parts.recorder.pendingOf(attemptId) !== undefined) {
    throw new Refused('attempt_ended', attempt.state)
  }
  return attempt
}

async function currentAuthority(
  parts: BrokerParts,
  preparation: Preparation,
  body: BrokerCapabilityBody,
): Promise<{ parent: LiveParent; revocationIds: readonly string[] }> {
  const { authority, config, clock } = parts
  const deadlineBootNs = askingUntil(preparation.governingBootNs)
  const { audience, parentCapabilityId: capabilityId, subject } = body
  const own = revocationIdsOf(body, [])
  const [liveParent, revocation] = await authority.ask(
    [
      { kind: 'verify_live_parent', request: { audience, capabilityId, subject } },
      { kind: 'check_broker_revocation', request: { revocationIds: own } },
    ],
    deadlineBootNs,
  )
  const parent = judgeLiveParent(liveParent, body, config, unixSeconds(clock))
  judgeRevocation(revocation, config, unixSeconds(clock))
  const revocationIds = revocationIdsOf(body, parent.delegationAncestorIds)
  if (revocationIds.length > own.length) {
    const [whole] = await authority.ask(
      [{ kind: 'check_broker_revocation', request: { revocationIds } }],
      deadlineBootNs,
    )
    judgeRevocation(whole, config, unixSeconds(clock))
  }
  return { parent, revocationIds }
}

function verifiedRequest(parts: BrokerParts, execute: BrokerExecuteRequest): Verified<BrokerExecuteRequest> {
  return refusing('request_refused', () =>
    verifyExecuteRequest(execute, executePins(parts.config), unixSeconds(parts.clock)),
  )
}

/** Reads the reference alone; the secret stays sealed until the dispatch is committed. */
function usableCredential(parts: BrokerParts, body: BrokerCapabilityBody): StoredCredential {
  const credential = parts.credentials.find(parts.store, body.credential)
  if (credential?.enabled !== true) {
    throw new Refused(
      'credential_unavailable',
      credential === undefined ? 'no such version' : 'a disabled version',
    )
  }
  const owned = body.constraints.providerOwnedHeaders
  if (owned.length !== 1 || owned[0] !== placementHeader(credential.placement)) {
    throw new Refused('placement_mismatch', 'other headers than those of its placement')
  }
  return credential
}

/** Both frames must fit what the configuration allows, before anything is held for them. */
function assertFits({ config }: BrokerParts, { request }: BrokerExecuteRequest, binding: FrameBinding): void {
  if (binding.frameBytes > config.requestFrameBytes) {
    throw new Refused('request_refused', `a frame of ${binding.frameBytes} bytes`)
  }
  const responseBytes =
    request.options.responseLimitBytes * FRAME_BYTES_PER_RESPONSE_BYTE + FRAME_OVERHEAD_BYTES
  if (responseBytes > config.responseFrameBytes) {
    throw new Refused('request_refused', `a response limit of ${request.options.responseLimitBytes} bytes`)
  }
}
