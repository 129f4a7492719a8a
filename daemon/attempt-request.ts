// Owns the first look at a register, prepare or release: documents, connector, registration, authority signature.
// Must never: touch the slot or the store. What fails here leaves everything as it was.
// Source: the broker protocol, sections 5.11, 5.12 and 8.
import { AuthenticatedAttemptRequest } from '../protocol/attempt-request.js'
import { unixSeconds } from '../protocol/clock.js'
import { decode, decodeSliced } from '../protocol/codec.js'
import type { BrokerExecuteRequest } from '../protocol/execute-request.js'
import { authorityMetadataDigest, revocationAuthorityDomain } from '../protocol/hold.js'
import {
  type AttemptRegistration,
  checkRegistrationOf,
  type RegistrationAction,
  SignedRegisterAttemptAuthorization,
  verifyRegistrationAuthorization,
} from '../protocol/registration.js'
import { assertCaller } from './callers.js'
import { digestsOf, executePart } from './canonical-parts.js'
import type { BrokerExchange, BrokerParts } from './parts.js'
import { Refused, refusing } from './refused.js'
import type { RefusalReason } from './refusals.js'
import { nextSlice } from './turn-of-loop.js'

export interface AuthorizedRequest {
  readonly registration: AttemptRegistration
  readonly execute: BrokerExecuteRequest
  /** Canonical bytes of the execute request: a part of the payload as it came. */
  readonly payload: Uint8Array
}

/** @param malformed reason for a document that does not decode. @throws Refused. */
export async function openAttemptRequest(
  parts: BrokerParts,
  exchange: BrokerExchange,
  action: RegistrationAction,
  malformed: RefusalReason,
): Promise<AuthorizedRequest> {
  const { authorization: authorizationBytes, payload } = exchange.request
  const { registration, request } = await decodeRequest(payload, malformed)
  const authorization = refusing(malformed, () =>
    decode(SignedRegisterAttemptAuthorization, authorizationBytes, 'registration authorization'),
  )
  const { config, clock } = parts
  const pins = {
    action,
    tenantScope: config.tenantScope,
    authority: config.authority.publicKey,
    clockSkewSeconds: config.clockSkewSeconds,
  }
  refusing('authorization_refused', () =>
    verifyRegistrationAuthorization(authorization, registration, pins, unixSeconds(clock)),
  )
  exchange.connection.authenticated()
  assertCaller(config.clients, exchange.peer, request.capability.body.subject)
  const executePayload = executePart(payload, registration)
  const digests = digestsOf(request, executePayload)
  refusing('registration_refused', () => checkRegistrationOf(registration, request, digests))
  checkAuthorityOf(parts, registration)
  checkQuotas(registration, request)
  return { registration, execute: request, payload: executePayload }
}

async function decodeRequest(
  payload: Uint8Array,
  malformed: RefusalReason,
): Promise<AuthenticatedAttemptRequest> {
  try {
    return await decodeSliced(AuthenticatedAttemptRequest, payload, 'attempt request', nextSlice)
  } catch (cause) {
    return refusing(malformed, () => {
      throw cause
    })
  }
}

function checkAuthorityOf({ config }: BrokerParts, registration: AttemptRegistration): void {
  const { publicKey } = config.authority
  if (registration.revocationAuthorityDomain !== revocationAuthorityDomain(publicKey)) {
    throw new Refused('registration_refused', 'another revocation domain')
  }
  if (registration.authorityMetadataDigest !== authorityMetadataDigest(publicKey)) {
    throw new Refused('registration_refused', 'metadata of another authority')
  }
}

/** One execution of the capability, and the grant's own maximum: the broker counts both itself. */
function checkQuotas({ quotas }: AttemptRegistration, { capability }: BrokerExecuteRequest): void {
  const { brokerQuotaKeyId, maximumExecutions, parentCapabilityId } = capability.body
  const own = quotas.find(quota => quota.keyId === brokerQuotaKeyId)
  if (own?.maximumExecutions !== maximumExecutions) {
    throw new Refused('registration_refused', "another count than the capability's")
  }
  if (!quotas.some(quota => quota.keyId === parentCapabilityId)) {
    throw new Refused('registration_refused', 'no quota of the parent capability')
  }
}
