// The questions that the broker asks the kernel, each signed by the broker, and the answers, each
// signed by the authority and bound to the digest of its question. Several may be outstanding on one
// connection; `requestId` matches them.
import {
  array,
  boolean,
  digest,
  encode,
  type Infer,
  identifier,
  literal,
  object,
  publicKeyHex,
  tagged,
  text,
} from './codec.js'
import { sha256Hex } from './digest.js'
import { BrokerError } from './errors.js'
import { HoldState } from './hold.js'
import type { PublicKey, SigningKey } from './keys.js'
import { MAXIMUM_REVOCATION_SET_MEMBERS } from './limits.js'
import { Quotas } from './registration.js'
import { signEnvelope, signedEnvelope, verifyEnvelope } from './signing.js'
import { Count, UnixSeconds } from './unix-time.js'
import { markVerified, type Verified } from './verified.js'

export const AUTHORITY_RPC_SCHEMA = 'chio.broker-authority-rpc.v1'
const REQUEST_DOMAIN = 'chio.broker-authority-request.v1'
const RESPONSE_DOMAIN = 'chio.broker-authority-response.v1'

/** What an authority must be able to do before this broker relies on it. */
export const AuthorityCapabilities = object({
  atomicMultiKeyHolds: boolean(),
  combinedCaptureAndRevocation: boolean(),
  profile: text({ minBytes: 1, maxBytes: 64 }),
  queryById: boolean(),
  sharedRevocationWriteDomain: boolean(),
})
export type AuthorityCapabilities = Infer<typeof AuthorityCapabilities>
export const AUTHORITY_PROFILE = 'authoritative_hold_event'

/** A parent (grant) that lives now, as the authority sees it. */
export const LiveParent = object({
  audience: identifier(),
  authoritySnapshotDigest: digest(),
  capabilityId: identifier(),
  delegationAncestorIds: array(identifier(), { max: MAXIMUM_REVOCATION_SET_MEMBERS }),
  expiresAtUnixSeconds: UnixSeconds,
  subject: publicKeyHex(),
  verifiedAtUnixSeconds: UnixSeconds,
})
export type LiveParent = Infer<typeof LiveParent>

export const RevocationSnapshot = object({
  authorityDomain: identifier(),
  commitIndex: Count,
  observedAtUnixSeconds: UnixSeconds,
  revoked: boolean(),
})
export type RevocationSnapshot = Infer<typeof RevocationSnapshot>

export const LiveParentQuery = object({
  audience: identifier(),
  capabilityId: identifier(),
  subject: publicKeyHex(),
})
export const RevocationQuery = object({
  revocationIds: array(identifier(), { min: 1, max: MAXIMUM_REVOCATION_SET_MEMBERS }),
})
export const HoldQuery = object({
  captureEventId: identifier(),
  holdId: identifier(),
  operationId: identifier(),
  quotas: Quotas,
  revocationIds: array(identifier(), { min: 1, max: MAXIMUM_REVOCATION_SET_MEMBERS }),
})
export type HoldQuery = Infer<typeof HoldQuery>

const QUESTIONS = {
  check_broker_revocation: object({ request: RevocationQuery }),
  query_execution_hold: object({ request: HoldQuery }),
  verify_live_parent: object({ request: LiveParentQuery }),
}
/** One question about an execution. */
export const AuthorityQuestion = tagged('kind', QUESTIONS)
export type AuthorityQuestion = Infer<typeof AuthorityQuestion>

/** What a dispatch rests on is asked in one frame: live parent, revocation, hold, under one signature each way. */
const MAXIMUM_QUESTIONS = 3

export const AuthorityOperation = tagged('kind', {
  ...QUESTIONS,
  capabilities: object({ request: object({}) }),
  questions: object({
    request: object({ questions: array(AuthorityQuestion, { min: 1, max: MAXIMUM_QUESTIONS }) }),
  }),
})
export type AuthorityOperation = Infer<typeof AuthorityOperation>

const ANSWERS = {
  hold: object({ response: HoldState }),
  live_parent: object({ response: LiveParent }),
  rejected: object({ response: object({ code: text({ minBytes: 1, maxBytes: 64 }) }) }),
  revocation: object({ response: RevocationSnapshot }),
}
/** The answer to one question: its own kind, or rejected. */
export const AuthorityAnswer = tagged('kind', ANSWERS)
export type AuthorityAnswer = Infer<typeof AuthorityAnswer>

export const AuthorityResult = tagged('kind', {
  ...ANSWERS,
  answers: object({
    response: object({ answers: array(AuthorityAnswer, { min: 1, max: MAXIMUM_QUESTIONS }) }),
  }),
  capabilities: object({ response: AuthorityCapabilities }),
})
export type AuthorityResult = Infer<typeof AuthorityResult>

export const AuthorityRequestBody = object({
  broker: publicKeyHex(),
  issuedAtUnixSeconds: UnixSeconds,
  operation: AuthorityOperation,
  requestId: digest(),
  schema: literal(AUTHORITY_RPC_SCHEMA),
})
export type AuthorityRequestBody = Infer<typeof AuthorityRequestBody>

export const SignedAuthorityRequest = signedEnvelope(AuthorityRequestBody)
export type SignedAuthorityRequest = Infer<typeof SignedAuthorityRequest>

export const AuthorityResponseBody = object({
  authority: publicKeyHex(),
  issuedAtUnixSeconds: UnixSeconds,
  requestDigest: digest(),
  requestId: digest(),
  result: AuthorityResult,
  schema: literal(AUTHORITY_RPC_SCHEMA),
})
export type AuthorityResponseBody = Infer<typeof AuthorityResponseBody>

export const SignedAuthorityResponse = signedEnvelope(AuthorityResponseBody)
export type SignedAuthorityResponse = Infer<typeof SignedAuthorityResponse>

/** Signs one question. @param requestId 64 hex digits, random, never used twice. */
export function signAuthorityRequest(
  question: {
    readonly operation: AuthorityOperation
    readonly requestId: string
    readonly issuedAtUnixSeconds: number
  },
  key: SigningKey,
): SignedAuthorityRequest {
  const body: AuthorityRequestBody = { ...question, broker: key.publicKey, schema: AUTHORITY_RPC_SCHEMA }
  return signEnvelope(REQUEST_DOMAIN, AuthorityRequestBody, body, key)
}

/** Verifies a question on the authority's side: broker pin, clock, signature. */
export function verifyAuthorityRequest(
  request: SignedAuthorityRequest,
  pins: { readonly broker: PublicKey; readonly clockSkewSeconds: number },
  nowUnixSeconds: number,
): Verified<SignedAuthorityRequest> {
  const { body } = request
  if (body.broker !== pins.broker) deny('broker', 'the pinned broker key')
  checkAge(body.issuedAtUnixSeconds, pins.clockSkewSeconds, nowUnixSeconds)
  if (!verifyEnvelope(REQUEST_DOMAIN, AuthorityRequestBody, request, pins.broker)) {
    deny('signature', "the broker's signature over this question")
  }
  return markVerified(request)
}

/** Signs the answer to one question. */
export function signAuthorityResponse(
  request: Verified<SignedAuthorityRequest>,
  result: AuthorityResult,
  issuedAtUnixSeconds: number,
  key: SigningKey,
): SignedAuthorityResponse {
  const body: AuthorityResponseBody = {
    authority: key.publicKey,
    issuedAtUnixSeconds,
    requestDigest: sha256Hex(encode(SignedAuthorityRequest, request)),
    requestId: request.body.requestId,
    result,
    schema: AUTHORITY_RPC_SCHEMA,
  }
  return signEnvelope(RESPONSE_DOMAIN, AuthorityResponseBody, body, key)
}

/** Verifies that an answer is the pinned authority's to exactly this question. */
export function verifyAuthorityResponse(
  response: SignedAuthorityResponse,
  request: SignedAuthorityRequest,
  pins: { readonly authority: PublicKey; readonly clockSkewSeconds: number },
  nowUnixSeconds: number,
): Verified<SignedAuthorityResponse> {
  const { body } = response
  if (body.authority !== pins.authority) deny('authority', 'the pinned authority key')
  if (body.requestId !== request.body.requestId) deny('requestId', 'the question that was asked')
  if (body.requestDigest !== sha256Hex(encode(SignedAuthorityRequest, request))) {
    deny('requestDigest', 'the question that was asked')
  }
  checkAge(body.issuedAtUnixSeconds, pins.clockSkewSeconds, nowUnixSeconds)
  if (!verifyEnvelope(RESPONSE_DOMAIN, AuthorityResponseBody, response, pins.authority)) {
    deny('signature', "the authority's signature over this answer")
  }
  return markVerified(response)
}

function checkAge(issuedAtUnixSeconds: number, skewSeconds: number, nowUnixSeconds: number): void {
  if (Math.abs(nowUnixSeconds - issuedAtUnixSeconds) > skewSeconds)
    deny('time', 'an issue within the clock skew')
}

function deny(member: string, expected: string): never {
  throw new BrokerError('authority_unavailable', `authority message ${member} refused: expected ${expected}`)
}
