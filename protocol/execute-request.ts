// The exact request that a tool may submit: capability, caller's proof, and the HTTP request itself.
// Owns its digests and the verification of everything that needs no store and no authority.
import {
  array,
  boolean,
  bytes,
  digest,
  encode,
  type Infer,
  identifier,
  integer,
  literal,
  nullable,
  object,
  publicKeyHex,
  text,
} from './codec.js'
import { type CapabilityPins, SignedBrokerCapability, verifyCapability } from './capability.js'
import {
  BrokerDestination,
  CredentialRef,
  checkDestination,
  checkHeaderFields,
  HeaderField,
  HeaderFields,
  sameCredential,
  sameDestination,
} from './destination.js'
import { domainDigestHex, sha256Hex } from './digest.js'
import { BrokerError } from './errors.js'
import { admitPublicKey, type SigningKey } from './keys.js'
import {
  MAXIMUM_BODY_BYTES,
  MAXIMUM_NONCE_BYTES,
  MAXIMUM_RESPONSE_BYTES,
  MAXIMUM_TIMEOUT_MS,
  MINIMUM_NONCE_BYTES,
} from './limits.js'
import { FORBIDDEN_CALLER_HEADERS } from './placement.js'
import { signEnvelope, signedEnvelope, verifyEnvelope } from './signing.js'
import { UnixSeconds } from './unix-time.js'
import { markVerified, type Verified } from './verified.js'

export const EXECUTE_SCHEMA = 'chio.broker-execute.v1'
export const PROOF_SCHEMA = 'chio.broker-request-proof.v1'
const PROOF_DOMAIN = 'chio.broker-request-proof-signature.v1'

export const CallerOptions = object({
  responseLimitBytes: integer({ min: 1, max: MAXIMUM_RESPONSE_BYTES }),
  streaming: boolean(),
  timeoutMs: integer({ min: 1, max: MAXIMUM_TIMEOUT_MS }),
})
export type CallerOptions = Infer<typeof CallerOptions>

export const BrokerRequest = object({
  approvedPreviewSha256: nullable(digest()),
  body: bytes({ max: MAXIMUM_BODY_BYTES }),
  destination: BrokerDestination,
  headers: HeaderFields,
  options: CallerOptions,
})
export type BrokerRequest = Infer<typeof BrokerRequest>

export const RequestProofBody = object({
  authorityKey: publicKeyHex(),
  bodySha256: digest(),
  brokerCapabilityId: identifier(),
  callerHeadersSha256: digest(),
  callerOptionsSha256: digest(),
  capabilityExpiresAtUnixSeconds: UnixSeconds,
  credential: CredentialRef,
  destination: BrokerDestination,
  issuedAtUnixSeconds: UnixSeconds,
  nonce: text({ minBytes: MINIMUM_NONCE_BYTES, maxBytes: MAXIMUM_NONCE_BYTES }),
  parentCapabilityId: identifier(),
  schema: literal(PROOF_SCHEMA),
})
export type RequestProofBody = Infer<typeof RequestProofBody>

export const RequestProof = signedEnvelope(RequestProofBody)
export type RequestProof = Infer<typeof RequestProof>

export const BrokerExecuteRequest = object({
  capability: SignedBrokerCapability,
  invocationId: identifier(),
  proof: RequestProof,
  request: BrokerRequest,
  schema: literal(EXECUTE_SCHEMA),
})
export type BrokerExecuteRequest = Infer<typeof BrokerExecuteRequest>

/** Digest of the caller's header list (the empty list has one too). */
export function callerHeadersDigest(headers: readonly HeaderField[]): string {
  return domainDigestHex(
    'chio.broker-caller-headers.v1',
    encode(array(HeaderField, { max: 64 }), [...headers]),
  )
}

export function callerOptionsDigest(options: CallerOptions): string {
  return domainDigestHex('chio.broker-caller-options.v1', encode(CallerOptions, options))
}

/** Digest of the `request` member alone. */
export function requestDigest(request: BrokerRequest): string {
  return requestDigestOf(encode(BrokerRequest, request))
}

/** The same over bytes that already are the canonical `request` member. */
export function requestDigestOf(canonical: Uint8Array): string {
  return domainDigestHex('chio.broker-canonical-request.v1', canonical)
}

/** Digest of the whole execute request. */
export function requestCanonicalDigest(request: BrokerExecuteRequest): string {
  return requestCanonicalDigestOf(encode(BrokerExecuteRequest, request))
}

/** The same over bytes that already are the canonical execute request. */
export function requestCanonicalDigestOf(canonical: Uint8Array): string {
  return domainDigestHex('chio.broker-execute-request-registration.v1', canonical)
}

export function proofDigest(proof: RequestProof): string {
  return sha256Hex(encode(RequestProof, proof))
}

/** Signs the caller's proof over one capability and one exact request. */
export function signProof(
  capability: SignedBrokerCapability,
  request: BrokerRequest,
  proof: { readonly nonce: string; readonly issuedAtUnixSeconds: number },
  key: SigningKey,
): RequestProof {
  const body: RequestProofBody = {
    authorityKey: key.publicKey,
    bodySha256: sha256Hex(request.body),
    brokerCapabilityId: capability.body.capabilityId,
    callerHeadersSha256: callerHeadersDigest(request.headers),
    callerOptionsSha256: callerOptionsDigest(request.options),
    capabilityExpiresAtUnixSeconds: capability.body.expiresAtUnixSeconds,
    credential: capability.body.credential,
    destination: request.destination,
    issuedAtUnixSeconds: proof.issuedAtUnixSeconds,
    nonce: proof.nonce,
    parentCapabilityId: capability.body.parentCapabilityId,
    schema: PROOF_SCHEMA,
  }
  return signEnvelope(PROOF_DOMAIN, RequestProofBody, body, key)
}

/** What the verifier knows independently: capability pins, adapter, skew and its own clock. */
export interface ExecuteRequestPins extends CapabilityPins {
  readonly adapter: { readonly id: string; readonly version: number }
  readonly clockSkewSeconds: number
}

/**
 * Verifies an execute request in all that needs no store and no authority: bounds, capability,
 * adapter, destination, constraints, proof digests, proof binding and both signatures.
 * @throws BrokerError `invalid_request` (contradicts itself) or `authorization_denied`.
 */
export function verifyExecuteRequest(
  execute: BrokerExecuteRequest,
  pins: ExecuteRequestPins,
  nowUnixSeconds: number,
): Verified<BrokerExecuteRequest> {
  checkRequest(execute.request)
  const capability = verifyCapability(execute.capability, pins, nowUnixSeconds)
  const { body } = capability
  if (body.providerAdapterId !== pins.adapter.id || body.providerAdapterVersion !== pins.adapter.version) {
    deny('provider adapter', `adapter ${pins.adapter.id} version ${pins.adapter.version}`)
  }
  checkAgainstCapability(execute)
  checkProofTime(execute, pins.clockSkewSeconds, nowUnixSeconds)
  checkProofBinding(execute)
  const key = admitPublicKey(execute.proof.body.authorityKey, 'proof authority key')
  if (!verifyEnvelope(PROOF_DOMAIN, RequestProofBody, execute.proof, key)) {
    deny('proof signature', "the caller's signature over this proof")
  }
  return markVerified(execute)
}

/** Refuses a request that breaks a rule of its own, whoever sends it. */
export function checkRequest(request: BrokerRequest): void {
  checkDestination(request.destination)
  checkHeaderFields(request.headers, 'caller header')
  const forbidden = request.headers.find(field => FORBIDDEN_CALLER_HEADERS.has(field.name))
  if (forbidden !== undefined) {
    throw new BrokerError(
      'invalid_request',
      `caller header ${forbidden.name} refused: expected no framing, host, cookie or authorization field`,
    )
  }
  if (request.options.streaming) {
    throw new BrokerError(
      'invalid_request',
      'streaming refused: expected false; this broker returns whole responses',
    )
  }
}

function checkAgainstCapability(execute: BrokerExecuteRequest): void {
  const { constraints, destination } = execute.capability.body
  const { request } = execute
  if (!sameDestination(request.destination, destination))
    deny('destination', "the capability's exact destination")
  const allowed = new Set(constraints.allowedCallerHeaders)
  const foreign = request.headers.find(field => !allowed.has(field.name))
  if (foreign !== undefined) deny(`caller header ${foreign.name}`, 'a name that the capability allows')
  if (request.body.length > constraints.maximumBodyBytes) deny('body length', 'at most maximumBodyBytes')
  if (request.options.responseLimitBytes > constraints.maximumResponseBytes) {
    deny('responseLimitBytes', 'at most maximumResponseBytes')
  }
  if (request.options.timeoutMs > constraints.maximumTimeoutMs) deny('timeoutMs', 'at most maximumTimeoutMs')
  if (constraints.requiredBodySha256 !== null && sha256Hex(request.body) !== constraints.requiredBodySha256) {
    deny('body', 'the exact body that the capability names')
  }
  if (request.approvedPreviewSha256 !== constraints.requiredPreviewSha256) {
    deny('approvedPreviewSha256', 'the preview that the capability names')
  }
}

function checkProofTime(execute: BrokerExecuteRequest, skewSeconds: number, nowUnixSeconds: number): void {
  const { issuedAtUnixSeconds } = execute.proof.body
  const { body } = execute.capability
  if (!/^[A-Za-z0-9_-]+$/.test(execute.proof.body.nonce)) {
    throw new BrokerError('invalid_request', 'proof nonce refused: expected 16 to 128 of A–Z a–z 0–9 _ -')
  }
  const insideCapability =
    issuedAtUnixSeconds >= body.notBeforeUnixSeconds && issuedAtUnixSeconds < body.expiresAtUnixSeconds
  if (!insideCapability) deny('proof time', 'an issue inside the capability window')
  if (issuedAtUnixSeconds > nowUnixSeconds + skewSeconds)
    deny('proof time', 'an issue that is not in the future')
  if (nowUnixSeconds > issuedAtUnixSeconds + body.proof.nonceTtlSeconds) {
    deny('proof time', 'a proof nonce that has not expired')
  }
}

function checkProofBinding(execute: BrokerExecuteRequest): void {
  const { capability, proof, request } = execute
  const bound: readonly (readonly [string, boolean])[] = [
    ['brokerCapabilityId', proof.body.brokerCapabilityId === capability.body.capabilityId],
    ['parentCapabilityId', proof.body.parentCapabilityId === capability.body.parentCapabilityId],
    ['credential', sameCredential(proof.body.credential, capability.body.credential)],
    ['expiry', proof.body.capabilityExpiresAtUnixSeconds === capability.body.expiresAtUnixSeconds],
    ['destination', sameDestination(proof.body.destination, request.destination)],
    ['bodySha256', proof.body.bodySha256 === sha256Hex(request.body)],
    ['callerHeadersSha256', proof.body.callerHeadersSha256 === callerHeadersDigest(request.headers)],
    ['callerOptionsSha256', proof.body.callerOptionsSha256 === callerOptionsDigest(request.options)],
    ['authorityKey', proof.body.authorityKey === capability.body.proof.callerPublicKey],
  ]
  const broken = bound.find(([, holds]) => !holds)
  if (broken !== undefined) deny(`proof ${broken[0]}`, 'the value of this request and capability')
}

function deny(member: string, expected: string): never {
  throw new BrokerError('authorization_denied', `${member} refused: expected ${expected}`)
}
