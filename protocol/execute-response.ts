// The answer to an executed request, and its verification against the request and registration that
// the verifier itself retained: nothing in the answer chooses what it is compared with.
import { bytes, type Infer, identifier, integer, isSameDocument, object } from './codec.js'
import { capabilityDigest } from './capability.js'
import { checkHeaderFields, HeaderFields, sameDestination } from './destination.js'
import { sha256Hex } from './digest.js'
import { BrokerError } from './errors.js'
import {
  ExecutionEvidence,
  ExecutionEvidenceV1,
  responseBodyDigest,
  responseHeadersDigest,
} from './evidence.js'
import {
  type BrokerExecuteRequest,
  callerHeadersDigest,
  callerOptionsDigest,
  requestCanonicalDigest,
  requestDigest,
} from './execute-request.js'
import { type BrokerExecuteFailure, failureReceiptId, verifyFailure } from './failure.js'
import type { PublicKey } from './keys.js'
import { MAXIMUM_RESPONSE_BYTES } from './limits.js'
import {
  credentialReferenceHash,
  historicalReceiptReference,
  type SignedExecutionReceipt as Receipt,
  receiptReference,
  SignedExecutionReceipt,
  SignedExecutionReceiptV1,
  verifyHistoricalReceipt,
  verifyReceipt,
} from './receipt.js'
import { type AttemptRegistration, deriveAttemptIds, Quotas } from './registration.js'
import { markVerified, type Verified } from './verified.js'

const shared = {
  body: bytes({ max: MAXIMUM_RESPONSE_BYTES }),
  headers: HeaderFields,
  receiptReference: identifier(),
  status: integer({ min: 200, max: 599 }),
}

export const BrokerExecuteResponse = object({
  ...shared,
  evidence: ExecutionEvidence,
  receipt: SignedExecutionReceipt,
})
export type BrokerExecuteResponse = Infer<typeof BrokerExecuteResponse>

/** The first version: read as history, never accepted as a current answer. */
export const BrokerExecuteResponseV1 = object({
  ...shared,
  evidence: ExecutionEvidenceV1,
  receipt: SignedExecutionReceiptV1,
})
export type BrokerExecuteResponseV1 = Infer<typeof BrokerExecuteResponseV1>

/**
 * Verifies a response in itself: receipt signature and pin, reference, evidence, counts, digests.
 * @throws BrokerError `authorization_denied`.
 */
export function verifyResponse(
  response: BrokerExecuteResponse,
  signer: PublicKey,
): Verified<BrokerExecuteResponse> {
  const { receipt } = response
  verifyReceipt(receipt, signer)
  checkHeaderFields(response.headers, 'response header')
  require([
    ['receiptReference', response.receiptReference === receiptReference(receipt)],
    ['evidence', isSameDocument(ExecutionEvidence, response.evidence, receipt.body.evidence)],
    ['status', response.status === response.evidence.upstreamStatus],
    ['body length', response.body.length === receipt.body.responseBodyBytes],
    ['body digest', responseBodyDigest(response.body) === response.evidence.responseBodySha256],
    ['headers digest', responseHeadersDigest(response.headers) === response.evidence.responseHeadersSha256],
  ])
  return markVerified(response)
}

/** Verifies a response of the first version in itself; a historical record, never a current outcome. */
export function verifyHistoricalResponse(
  response: BrokerExecuteResponseV1,
  signer: PublicKey,
): Verified<BrokerExecuteResponseV1> {
  const { receipt } = response
  verifyHistoricalReceipt(receipt, signer)
  require([
    ['receiptReference', response.receiptReference === historicalReceiptReference(receipt)],
    ['evidence', isSameDocument(ExecutionEvidenceV1, response.evidence, receipt.body.evidence)],
    ['body length', response.body.length === receipt.body.responseBodyBytes],
    ['body digest', responseBodyDigest(response.body) === response.evidence.responseBodySha256],
  ])
  return markVerified(response)
}

/** What the verifier retained itself before the request was submitted. */
export interface OutcomeContext {
  readonly request: BrokerExecuteRequest
  readonly registration: AttemptRegistration
  readonly receiptSigner: PublicKey
}

/** Verifies that a response is the outcome of exactly this request and registration. */
export function verifyResponseOf(
  response: BrokerExecuteResponse,
  context: OutcomeContext,
): Verified<BrokerExecuteResponse> {
  const verifiedResponse = verifyResponse(response, context.receiptSigner)
  checkReceiptOf(response.receipt, context)
  const limit = context.request.request.options.responseLimitBytes
  require([['body length', response.body.length <= limit]])
  return verifiedResponse
}

/** Verifies that a response answers exactly this request; for a tool, which holds no registration. */
export function verifyResponseTo(
  response: BrokerExecuteResponse,
  request: BrokerExecuteRequest,
  signer: PublicKey,
): Verified<BrokerExecuteResponse> {
  const verifiedResponse = verifyResponse(response, signer)
  checkReceiptTo(response.receipt, request, derivedBindings(request))
  require([['body length', response.body.length <= request.request.options.responseLimitBytes]])
  return verifiedResponse
}

/** What follows from a request alone. The operation and its quotas are the kernel's to say. */
type DerivedBindings = Pick<
  AttemptRegistration,
  'ids' | 'invocationId' | 'requestCanonicalDigest' | 'requestDigest'
>

function derivedBindings(request: BrokerExecuteRequest): DerivedBindings {
  const { invocationId, proof } = request
  const digest = requestDigest(request.request)
  const ids = deriveAttemptIds({
    brokerCapabilityId: request.capability.body.capabilityId,
    invocationId,
    proofNonce: proof.body.nonce,
    requestDigest: digest,
  })
  return { ids, invocationId, requestDigest: digest, requestCanonicalDigest: requestCanonicalDigest(request) }
}

/** Verifies that a receipt alone is the one of exactly this request and registration. */
export function verifyReceiptOf(receipt: Receipt, context: OutcomeContext): Verified<Receipt> {
  const verifiedReceipt = verifyReceipt(receipt, context.receiptSigner)
  checkReceiptOf(receipt, context)
  return verifiedReceipt
}

function checkReceiptOf(receipt: Receipt, { request, registration }: OutcomeContext): void {
  const { body } = receipt
  checkReceiptTo(receipt, request, registration)
  require([
    ['operationId', body.operationId === registration.ids.operationId],
    ['quotas', isSameDocument(Quotas, body.quotas, registration.quotas)],
  ])
}

function checkReceiptTo({ body }: Receipt, request: BrokerExecuteRequest, derived: DerivedBindings): void {
  const capability = request.capability.body
  const { evidence } = body
  require([
    ['attemptId', evidence.attemptId === derived.ids.attemptId],
    ['holdId', evidence.holdId === derived.ids.holdId],
    ['invocationId', evidence.invocationId === derived.invocationId],
    ['requestDigest', evidence.requestDigest === derived.requestDigest],
    ['capabilityDigest', evidence.capabilityDigest === capabilityDigest(request.capability)],
    ['authorizeEventId', body.authorizeEventId === derived.ids.authorizeEventId],
    ['captureEventId', body.captureEventId === derived.ids.captureEventId],
    ['parentCapabilityId', body.parentCapabilityId === capability.parentCapabilityId],
    ['brokerCapabilityId', body.brokerCapabilityId === capability.capabilityId],
    ['brokerQuotaKeyId', body.brokerQuotaKeyId === capability.brokerQuotaKeyId],
    ['subject', body.subject === capability.subject],
    ['credential', body.credentialReferenceHash === credentialReferenceHash(capability.credential)],
    ['credentialVersion', body.credentialVersion === capability.credential.version],
    ['destination', sameDestination(body.normalizedDestination, request.request.destination)],
    ['callerHeadersSha256', body.callerHeadersSha256 === callerHeadersDigest(request.request.headers)],
    ['callerOptionsSha256', body.callerOptionsSha256 === callerOptionsDigest(request.request.options)],
    ['requestBodySha256', body.requestBodySha256 === sha256Hex(request.request.body)],
    ['requestBodyBytes', body.requestBodyBytes === request.request.body.length],
    ['providerAdapterId', body.providerAdapterId === capability.providerAdapterId],
    ['providerAdapterVersion', body.providerAdapterVersion === capability.providerAdapterVersion],
  ])
}

/** Verifies that a failure is the terminal failure of exactly this request and registration. */
export function verifyFailureOf(
  failure: BrokerExecuteFailure,
  context: OutcomeContext,
): Verified<BrokerExecuteFailure> {
  const verifiedFailure = verifyFailure(failure, context.receiptSigner)
  checkFailureTo(failure, context.request, context.registration)
  return verifiedFailure
}

/** Verifies that a failure ends exactly this request; for a tool, which holds no registration. */
export function verifyFailureTo(
  failure: BrokerExecuteFailure,
  request: BrokerExecuteRequest,
  signer: PublicKey,
): Verified<BrokerExecuteFailure> {
  const verifiedFailure = verifyFailure(failure, signer)
  checkFailureTo(failure, request, derivedBindings(request))
  return verifiedFailure
}

function checkFailureTo(
  { receipt: { body } }: BrokerExecuteFailure,
  { capability }: BrokerExecuteRequest,
  derived: DerivedBindings,
): void {
  require([
    ['attemptId', body.attemptId === derived.ids.attemptId],
    ['holdId', body.holdId === derived.ids.holdId],
    ['invocationId', body.invocationId === derived.invocationId],
    ['brokerCapabilityId', body.brokerCapabilityId === capability.body.capabilityId],
    ['parentCapabilityId', body.parentCapabilityId === capability.body.parentCapabilityId],
    ['capabilityDigest', body.capabilityDigest === capabilityDigest(capability)],
    ['requestDigest', body.requestDigest === derived.requestDigest],
    ['receiptId', body.receiptId === failureReceiptId(derived.requestCanonicalDigest)],
  ])
}

function require(bindings: readonly (readonly [string, boolean])[]): void {
  const broken = bindings.find(([, holds]) => !holds)
  if (broken === undefined) return
  throw new BrokerError(
    'authorization_denied',
    `outcome ${broken[0]} refused: expected the value of the retained request and registration`,
  )
}
