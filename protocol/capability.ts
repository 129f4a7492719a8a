// The broker capability: what one use of one stored credential may do, signed by the issuer.
// It never chooses its own trusted issuer: the pin comes from the verifier's configuration.
import {
  array,
  boolean,
  digest,
  encode,
  type Infer,
  identifier,
  integer,
  literal,
  nullable,
  object,
  oneOf,
  publicKeyHex,
  text,
} from './codec.js'
import { BrokerDestination, CredentialRef, checkDestination, checkHeaderNames } from './destination.js'
import { sha256Hex } from './digest.js'
import { BrokerError } from './errors.js'
import { admitPublicKey, type PublicKey, type SigningKey } from './keys.js'
import {
  MAXIMUM_BODY_BYTES,
  MAXIMUM_HEADER_COUNT,
  MAXIMUM_HEADER_NAME_BYTES,
  MAXIMUM_NONCE_TTL_SECONDS,
  MAXIMUM_RESPONSE_BYTES,
  MAXIMUM_TIMEOUT_MS,
} from './limits.js'
import { signEnvelope, signedEnvelope, verifyEnvelope } from './signing.js'
import { UnixSeconds } from './unix-time.js'
import { markVerified, type Verified } from './verified.js'

export const CAPABILITY_SCHEMA = 'chio.broker-capability.v1'
const SIGNATURE_DOMAIN = 'chio.broker-capability-signature.v1'

const headerNames = array(text({ minBytes: 1, maxBytes: MAXIMUM_HEADER_NAME_BYTES }), {
  max: MAXIMUM_HEADER_COUNT,
})
const u32 = integer({ min: 1, max: 0xffff_ffff })

/** Bounds that the request and its response must keep. */
export const RequestConstraints = object({
  allowedCallerHeaders: headerNames,
  maximumBodyBytes: integer({ min: 0, max: MAXIMUM_BODY_BYTES }),
  maximumResponseBytes: integer({ min: 1, max: MAXIMUM_RESPONSE_BYTES }),
  maximumTimeoutMs: integer({ min: 1, max: MAXIMUM_TIMEOUT_MS }),
  providerOwnedHeaders: headerNames,
  redirectPolicy: literal('disabled'),
  requiredBodySha256: nullable(digest()),
  requiredPreviewSha256: nullable(digest()),
  streamingAllowed: boolean(),
})
export type RequestConstraints = Infer<typeof RequestConstraints>

export const ProofBinding = object({
  callerPublicKey: publicKeyHex(),
  mode: oneOf('public_key'),
  nonceTtlSeconds: integer({ min: 1, max: MAXIMUM_NONCE_TTL_SECONDS }),
})

export const BrokerCapabilityBody = object({
  audience: identifier(),
  brokerQuotaKeyId: identifier(),
  capabilityId: identifier(),
  constraints: RequestConstraints,
  consumption: literal('capture_before_dispatch'),
  credential: CredentialRef,
  destination: BrokerDestination,
  expiresAtUnixSeconds: UnixSeconds,
  issuedAtUnixSeconds: UnixSeconds,
  issuer: publicKeyHex(),
  maximumExecutions: u32,
  notBeforeUnixSeconds: UnixSeconds,
  parentCapabilityId: identifier(),
  proof: ProofBinding,
  providerAdapterId: identifier(),
  providerAdapterVersion: u32,
  revocationId: identifier(),
  schema: literal(CAPABILITY_SCHEMA),
  subject: publicKeyHex(),
})
export type BrokerCapabilityBody = Infer<typeof BrokerCapabilityBody>

/** `{algorithm, body, signature}`: a capability as it travels. */
export const SignedBrokerCapability = signedEnvelope(BrokerCapabilityBody)
export type SignedBrokerCapability = Infer<typeof SignedBrokerCapability>

/** Signs a capability body with the issuer's key. */
export function signCapability(body: BrokerCapabilityBody, key: SigningKey): SignedBrokerCapability {
  checkCapabilityBody(body)
  return signEnvelope(SIGNATURE_DOMAIN, BrokerCapabilityBody, body, key)
}

/** SHA-256 of the canonical envelope, without a domain. */
export function capabilityDigest(capability: SignedBrokerCapability): string {
  return sha256Hex(encode(SignedBrokerCapability, capability))
}

/** Refuses a body that contradicts itself; the order of the checks is the wire's. */
export function checkCapabilityBody(body: BrokerCapabilityBody): void {
  const inOrder =
    body.issuedAtUnixSeconds <= body.notBeforeUnixSeconds &&
    body.notBeforeUnixSeconds < body.expiresAtUnixSeconds
  if (!inOrder) refuse('times', 'issued ≤ not-before < expires')
  if (body.subject !== body.proof.callerPublicKey) refuse('subject', 'the caller key of its proof binding')
  if (body.capabilityId === body.parentCapabilityId) refuse('parentCapabilityId', 'another id than its own')
  if (body.revocationId === body.capabilityId || body.revocationId === body.parentCapabilityId) {
    refuse('revocationId', 'an id apart from capability and parent')
  }
  checkDestination(body.destination)
  checkConstraints(body.constraints)
  admitPublicKey(body.subject, 'capability subject')
}

function checkConstraints(constraints: RequestConstraints): void {
  checkHeaderNames(constraints.allowedCallerHeaders, 'allowedCallerHeaders')
  checkHeaderNames(constraints.providerOwnedHeaders, 'providerOwnedHeaders')
  const owned = new Set(constraints.providerOwnedHeaders)
  if (constraints.allowedCallerHeaders.some(name => owned.has(name))) {
    refuse('allowedCallerHeaders', 'no name that the provider placement owns')
  }
}

function refuse(member: string, expected: string): never {
  throw new BrokerError('invalid_request', `capability ${member} refused: expected ${expected}`)
}

/** What a verifier knows independently of the document. */
export interface CapabilityPins {
  readonly issuer: PublicKey
  readonly audience: string
}

/**
 * Verifies a capability: itself, pins, time window, signature, in that order.
 * @param nowUnixSeconds trusted wall clock; valid iff notBefore ≤ now < expires.
 * @throws BrokerError `invalid_request` when it contradicts itself, `authorization_denied` otherwise.
 */
export function verifyCapability(
  capability: SignedBrokerCapability,
  pins: CapabilityPins,
  nowUnixSeconds: number,
): Verified<SignedBrokerCapability> {
  const { body } = capability
  checkCapabilityBody(body)
  if (body.issuer !== pins.issuer) deny('issuer', 'the pinned issuer key')
  if (body.audience !== pins.audience) deny('audience', 'this broker')
  if (nowUnixSeconds < body.notBeforeUnixSeconds) deny('time', 'a not-before that has passed')
  if (nowUnixSeconds >= body.expiresAtUnixSeconds) deny('time', 'an expiry that has not passed')
  if (!verifyEnvelope(SIGNATURE_DOMAIN, BrokerCapabilityBody, capability, pins.issuer)) {
    deny('signature', "the issuer's signature over this body")
  }
  return markVerified(capability)
}

function deny(member: string, expected: string): never {
  throw new BrokerError('authorization_denied', `capability ${member} refused: expected ${expected}`)
}
