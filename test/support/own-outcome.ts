// Owns the outcomes of the one fixed request: response, failure, and what broker and authority said about it.
import {
  type AuthorityOperation,
  type AuthorityResult,
  type SignedAuthorityResponse,
  signAuthorityRequest,
  signAuthorityResponse,
  verifyAuthorityRequest,
} from '../../protocol/authority-rpc.js'
import { capabilityDigest } from '../../protocol/capability.js'
import { sha256Hex } from '../../protocol/digest.js'
import { responseBodyDigest, responseHeadersDigest } from '../../protocol/evidence.js'
import { callerHeadersDigest, callerOptionsDigest, requestDigest } from '../../protocol/execute-request.js'
import type { BrokerExecuteResponse } from '../../protocol/execute-response.js'
import { FAILURE_SCHEMA, failureReceiptId, signFailure } from '../../protocol/failure.js'
import { revocationSetDigest } from '../../protocol/hold.js'
import {
  credentialReferenceHash,
  receiptIdOf,
  receiptReference,
  signReceipt,
} from '../../protocol/receipt.js'
import {
  AUDIENCE,
  NOW,
  OPERATION_ID,
  OWN_KEYS,
  body,
  capability,
  credential,
  destination,
  execute,
  headers,
  registration,
  request,
  utf8,
} from './own-request.js'

const revocationIds = ['grant-own', 'capability-own', 'revocation-grant-own']
export const captured = {
  authorityCommitIndex: 7,
  budgetCommitIndex: 5,
  checkedRevocationSetDigest: revocationSetDigest(revocationIds),
  leaderEpoch: 2,
  revocationCommitIndex: 6,
}

export function response(): BrokerExecuteResponse {
  const answer = utf8('{"number":41}')
  const answerHeaders = [{ name: 'content-type', value: utf8('application/json') }]
  const evidence = {
    attemptId: registration.ids.attemptId,
    authorityCommitIndex: captured.authorityCommitIndex,
    budgetCommitIndex: captured.budgetCommitIndex,
    capabilityDigest: capabilityDigest(capability),
    holdId: registration.ids.holdId,
    invocationId: execute.invocationId,
    leaderEpoch: captured.leaderEpoch,
    requestDigest: requestDigest(request),
    responseBodySha256: responseBodyDigest(answer),
    responseHeadersSha256: responseHeadersDigest(answerHeaders),
    revocationCommitIndex: captured.revocationCommitIndex,
    revocationSetDigest: captured.checkedRevocationSetDigest,
    schema: 'chio.broker-execution-evidence.v2' as const,
    upstreamStatus: 201,
  }
  const receipt = signReceipt(receiptBody(evidence, answer.length), OWN_KEYS.receipt)
  return {
    body: answer,
    evidence,
    headers: answerHeaders,
    receipt,
    receiptReference: receiptReference(receipt),
    status: 201,
  }
}

type ReceiptBody = Parameters<typeof signReceipt>[0]
function receiptBody(evidence: ReceiptBody['evidence'], responseBodyBytes: number): ReceiptBody {
  return {
    authorizeEventId: registration.ids.authorizeEventId,
    brokerCapabilityId: capability.body.capabilityId,
    brokerQuotaKeyId: capability.body.brokerQuotaKeyId,
    callerHeadersSha256: callerHeadersDigest(headers),
    callerOptionsSha256: callerOptionsDigest(request.options),
    captureEventId: registration.ids.captureEventId,
    credentialReferenceHash: credentialReferenceHash(credential),
    credentialVersion: credential.version,
    evidence,
    issuedAtUnixSeconds: NOW + 4,
    normalizedDestination: destination,
    operationId: registration.ids.operationId,
    outcome: 'completed',
    parentCapabilityId: capability.body.parentCapabilityId,
    providerAdapterId: 'https',
    providerAdapterVersion: 1,
    quotas: registration.quotas,
    receiptId: receiptIdOf(registration.ids.attemptId),
    requestBodyBytes: body.length,
    requestBodySha256: sha256Hex(body),
    responseBodyBytes,
    schema: 'chio.broker-execution-receipt.v2',
    sourceReceiptIds: [],
    subject: OWN_KEYS.caller.publicKey,
  }
}

export const failure = signFailure(
  {
    attemptId: registration.ids.attemptId,
    brokerCapabilityId: capability.body.capabilityId,
    capabilityDigest: capabilityDigest(capability),
    diagnosticCode: 'chio.broker.authorization_denied',
    dispatchKnowledge: 'not_committed',
    holdId: registration.ids.holdId,
    invocationId: execute.invocationId,
    issuedAtUnixSeconds: NOW + 3,
    outcome: 'denied',
    parentCapabilityId: capability.body.parentCapabilityId,
    receiptId: failureReceiptId(registration.requestCanonicalDigest),
    requestDigest: requestDigest(request),
    schema: FAILURE_SCHEMA,
    stage: 'capture',
  },
  OWN_KEYS.receipt,
)

export const question = (operation: AuthorityOperation) =>
  signAuthorityRequest(
    { operation, requestId: sha256Hex(utf8(operation.kind)), issuedAtUnixSeconds: NOW + 3 },
    OWN_KEYS.receipt,
  )

export function answer(operation: AuthorityOperation, result: AuthorityResult): SignedAuthorityResponse {
  const pins = { broker: OWN_KEYS.receipt.publicKey, clockSkewSeconds: 1 }
  return signAuthorityResponse(
    verifyAuthorityRequest(question(operation), pins, NOW + 3),
    result,
    NOW + 3,
    OWN_KEYS.authority,
  )
}

export const holdQuery: AuthorityOperation = {
  kind: 'query_execution_hold',
  request: {
    captureEventId: registration.ids.captureEventId,
    holdId: registration.ids.holdId,
    operationId: OPERATION_ID,
    quotas: registration.quotas,
    revocationIds: ['capability-own', 'grant-own', 'revocation-grant-own'],
  },
}
export const parentQuery: AuthorityOperation = {
  kind: 'verify_live_parent',
  request: { audience: AUDIENCE, capabilityId: 'grant-own', subject: OWN_KEYS.caller.publicKey },
}
