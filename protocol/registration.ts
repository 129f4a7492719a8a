// The attempt registration that the kernel derives for one execute request, and the authority's
// signature that lets the host register, prepare or release it.
import {
  array,
  digest,
  encode,
  type Infer,
  identifier,
  integer,
  literal,
  object,
  oneOf,
  publicKeyHex,
} from './codec.js'
import { UnixSeconds } from './unix-time.js'
import { domainDigestHex } from './digest.js'
import { BrokerError } from './errors.js'
import {
  type BrokerExecuteRequest,
  proofDigest,
  requestCanonicalDigest,
  requestDigest,
} from './execute-request.js'
import type { PublicKey, SigningKey } from './keys.js'
import { MAXIMUM_QUOTAS, MAXIMUM_INTEGER } from './limits.js'
import { signEnvelope, signedEnvelope, verifyEnvelope } from './signing.js'
import { markVerified, type Verified } from './verified.js'

const IDENTIFIER_DOMAIN = 'chio.broker-attempt-identifiers.v1'
export const AUTHORIZATION_SCHEMA = 'chio.broker-register-attempt-authorization.v1'

export const AttemptIds = object({
  attemptId: identifier(),
  authorizeEventId: identifier(),
  captureEventId: identifier(),
  holdId: identifier(),
  operationId: identifier(),
  reverseEventId: identifier(),
})
export type AttemptIds = Infer<typeof AttemptIds>

/** How often one key may be executed in all; counted by the broker itself. */
export const Quota = object({
  keyId: identifier(),
  maximumExecutions: integer({ min: 1, max: MAXIMUM_INTEGER }),
})
export type Quota = Infer<typeof Quota>
export const Quotas = array(Quota, { min: 1, max: MAXIMUM_QUOTAS })

export const AttemptRegistration = object({
  authorityMetadataDigest: digest(),
  brokerCapabilityId: identifier(),
  ids: AttemptIds,
  invocationId: identifier(),
  nonceExpiresAtUnixSeconds: UnixSeconds,
  parentCapabilityId: identifier(),
  proofDigest: digest(),
  proofKeyId: publicKeyHex(),
  proofNonce: identifier(),
  quotas: Quotas,
  requestCanonicalDigest: digest(),
  requestDigest: digest(),
  revocationAuthorityDomain: identifier(),
})
export type AttemptRegistration = Infer<typeof AttemptRegistration>

/** What the six attempt identifiers are derived from. */
export const AttemptIdentity = object({
  brokerCapabilityId: identifier(),
  invocationId: identifier(),
  proofNonce: identifier(),
  requestDigest: digest(),
})
export type AttemptIdentity = Infer<typeof AttemptIdentity>

/** Derives the attempt's identifiers; only `operationId` may be replaced by the kernel's own. */
export function deriveAttemptIds(identity: AttemptIdentity, operationId?: string): AttemptIds {
  const canonical = encode(AttemptIdentity, identity)
  const id = (label: string): string =>
    `broker-${label}-${domainDigestHex(IDENTIFIER_DOMAIN, labelled(label, canonical))}`
  return {
    attemptId: id('attempt'),
    authorizeEventId: id('authorize'),
    captureEventId: id('capture'),
    holdId: id('hold'),
    operationId: operationId ?? id('operation'),
    reverseEventId: id('reverse'),
  }
}

function labelled(label: string, canonical: Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.from(`${label}\0`, 'utf8'), canonical])
}

/** Sorts quotas by key and drops exact duplicates; the same key with another maximum is refused. */
export function canonicalQuotas(quotas: readonly Quota[]): Quota[] {
  const byKey = new Map<string, number>()
  for (const { keyId, maximumExecutions } of quotas) {
    const known = byKey.get(keyId)
    if (known !== undefined && known !== maximumExecutions) {
      throw new BrokerError(
        'invariant',
        'quotas refused: expected one maximum a key, got two for the same key',
      )
    }
    byKey.set(keyId, maximumExecutions)
  }
  return [...byKey]
    .map(([keyId, maximumExecutions]) => ({ keyId, maximumExecutions }))
    .sort((a, b) => (a.keyId < b.keyId ? -1 : 1))
}

/** What the authority adds to a request to make its registration. */
export interface RegistrationContext {
  readonly operationId?: string
  readonly quotas: readonly Quota[]
  readonly authorityMetadataDigest: string
  readonly revocationAuthorityDomain: string
  /** Taken over the canonical bytes that the request was decoded from, where these are at hand. */
  readonly digests?: RequestDigests
}

/** The two digests of an execute request, so that a large body is not encoded again for each. */
export interface RequestDigests {
  readonly requestDigest: string
  readonly requestCanonicalDigest: string
}

/** Derives the one registration of an execute request. */
export function buildRegistration(
  execute: BrokerExecuteRequest,
  context: RegistrationContext,
): AttemptRegistration {
  const { capability, proof, request } = execute
  const identity: AttemptIdentity = {
    brokerCapabilityId: capability.body.capabilityId,
    invocationId: execute.invocationId,
    proofNonce: proof.body.nonce,
    requestDigest: context.digests?.requestDigest ?? requestDigest(request),
  }
  return {
    authorityMetadataDigest: context.authorityMetadataDigest,
    brokerCapabilityId: identity.brokerCapabilityId,
    ids: deriveAttemptIds(identity, context.operationId),
    invocationId: identity.invocationId,
    nonceExpiresAtUnixSeconds: proof.body.issuedAtUnixSeconds + capability.body.proof.nonceTtlSeconds,
    parentCapabilityId: capability.body.parentCapabilityId,
    proofDigest: proofDigest(proof),
    proofKeyId: proof.body.authorityKey,
    proofNonce: identity.proofNonce,
    quotas: canonicalQuotas(context.quotas),
    requestCanonicalDigest: context.digests?.requestCanonicalDigest ?? requestCanonicalDigest(execute),
    requestDigest: identity.requestDigest,
    revocationAuthorityDomain: context.revocationAuthorityDomain,
  }
}

export function registrationDigest(registration: AttemptRegistration): string {
  return domainDigestHex('chio.broker-register-attempt.v1', encode(AttemptRegistration, registration))
}

/** Refuses identifiers or quotas that are not the ones derived from the registration itself. */
export function checkRegistration(registration: AttemptRegistration): void {
  const { brokerCapabilityId, invocationId, proofNonce, requestDigest: digestOfRequest } = registration
  const derived = deriveAttemptIds(
    { brokerCapabilityId, invocationId, proofNonce, requestDigest: digestOfRequest },
    registration.ids.operationId,
  )
  const rebound = (Object.keys(derived) as (keyof AttemptIds)[]).find(
    id => derived[id] !== registration.ids[id],
  )
  if (rebound !== undefined) refuse(`ids.${rebound}`, 'the identifier derived from this registration')
  if (!sameQuotas(canonicalQuotas(registration.quotas), registration.quotas)) {
    refuse('quotas', 'keys strictly ascending, none twice')
  }
}

/** Refuses a registration that is not the one of this exact request. */
export function checkRegistrationOf(
  registration: AttemptRegistration,
  execute: BrokerExecuteRequest,
  digests?: RequestDigests,
): void {
  checkRegistration(registration)
  const expected = buildRegistration(execute, {
    ...(digests && { digests }),
    operationId: registration.ids.operationId,
    quotas: registration.quotas,
    authorityMetadataDigest: registration.authorityMetadataDigest,
    revocationAuthorityDomain: registration.revocationAuthorityDomain,
  })
  if (registrationDigest(expected) !== registrationDigest(registration)) {
    refuse('registration', 'the registration of this exact request')
  }
  if (!registration.quotas.some(quota => quota.keyId === execute.capability.body.brokerQuotaKeyId)) {
    refuse('quotas', "the capability's own quota key among them")
  }
}

function sameQuotas(left: readonly Quota[], right: readonly Quota[]): boolean {
  return (
    left.length === right.length &&
    left.every((quota, index) => {
      const other = right[index]
      return quota.keyId === other?.keyId && quota.maximumExecutions === other.maximumExecutions
    })
  )
}

function refuse(member: string, expected: string): never {
  throw new BrokerError('invalid_request', `registration ${member} refused: expected ${expected}`)
}

export const REGISTRATION_ACTIONS = ['prepare', 'register', 'release'] as const
export type RegistrationAction = (typeof REGISTRATION_ACTIONS)[number]

export const RegisterAttemptAuthorizationBody = object({
  action: oneOf(...REGISTRATION_ACTIONS),
  authority: publicKeyHex(),
  issuedAtUnixSeconds: integer({ min: 1, max: MAXIMUM_INTEGER }),
  registrationDigest: digest(),
  schema: literal(AUTHORIZATION_SCHEMA),
  tenantScope: identifier(),
})
export type RegisterAttemptAuthorizationBody = Infer<typeof RegisterAttemptAuthorizationBody>

export const SignedRegisterAttemptAuthorization = signedEnvelope(RegisterAttemptAuthorizationBody)
export type SignedRegisterAttemptAuthorization = Infer<typeof SignedRegisterAttemptAuthorization>

/** Signs one action over one registration with the authority key. */
export function signRegistrationAuthorization(
  statement: {
    readonly action: RegistrationAction
    readonly registrationDigest: string
    readonly tenantScope: string
    readonly issuedAtUnixSeconds: number
  },
  key: SigningKey,
): SignedRegisterAttemptAuthorization {
  const body: RegisterAttemptAuthorizationBody = {
    ...statement,
    authority: key.publicKey,
    schema: AUTHORIZATION_SCHEMA,
  }
  return signEnvelope(AUTHORIZATION_SCHEMA, RegisterAttemptAuthorizationBody, body, key)
}

/** What the broker knows independently of an authorization. */
export interface RegistrationPins {
  readonly action: RegistrationAction
  readonly tenantScope: string
  readonly authority: PublicKey
  readonly clockSkewSeconds: number
}

/**
 * Verifies an authorization for exactly this registration and action.
 * @throws BrokerError `authorization_denied` naming the member.
 */
export function verifyRegistrationAuthorization(
  authorization: SignedRegisterAttemptAuthorization,
  registration: AttemptRegistration,
  pins: RegistrationPins,
  nowUnixSeconds: number,
): Verified<SignedRegisterAttemptAuthorization> {
  const { body } = authorization
  if (body.action !== pins.action) deny('action', pins.action)
  if (body.tenantScope !== pins.tenantScope) deny('tenantScope', "this broker's tenant")
  if (body.authority !== pins.authority) deny('authority', 'the pinned authority key')
  if (body.registrationDigest !== registrationDigest(registration))
    deny('registrationDigest', 'this registration')
  if (Math.abs(nowUnixSeconds - body.issuedAtUnixSeconds) > pins.clockSkewSeconds) {
    deny('time', 'an issue within the clock skew; ask the kernel to sign anew')
  }
  if (
    !verifyEnvelope(AUTHORIZATION_SCHEMA, RegisterAttemptAuthorizationBody, authorization, pins.authority)
  ) {
    deny('signature', "the authority's signature over this body")
  }
  return markVerified(authorization)
}

function deny(member: string, expected: string): never {
  throw new BrokerError(
    'authorization_denied',
    `registration authorization ${member} refused: expected ${expected}`,
  )
}
