// Owns one brokered operation as its host and its broker see it: the request, the proof, the broker's signed
// records over it. The records are signed by the test's own broker key, as a broker would.
import { randomBytes, randomUUID } from 'node:crypto'
import { systemClock } from '../../native/clock.js'
import { capabilityDigest } from '../../protocol/capability.js'
import type { Clock } from '../../protocol/clock.js'
import { sha256Hex } from '../../protocol/digest.js'
import { responseBodyDigest, responseHeadersDigest } from '../../protocol/evidence.js'
import {
  type BrokerExecuteRequest,
  type BrokerRequest,
  callerHeadersDigest,
  callerOptionsDigest,
  requestDigest,
  signProof,
} from '../../protocol/execute-request.js'
import type { BrokerExecuteResponse } from '../../protocol/execute-response.js'
import { failureReceiptId, signFailure } from '../../protocol/failure.js'
import type { ExecutionFailureReceiptBody } from '../../protocol/failure.js'
import type { Grant } from '../../protocol/grant.js'
import type { CapturedHold } from '../../protocol/hold.js'
import type { BrokerRecord, ReserveRequest, ReserveResult } from '../../protocol/kernel-rpc.js'
import {
  credentialReferenceHash,
  receiptIdOf,
  receiptReference,
  signReceipt,
} from '../../protocol/receipt.js'
import type { AttemptRegistration } from '../../protocol/registration.js'
import type { TestKernel } from './kernel.js'

export function requestUnder(grant: Grant, body: string | Uint8Array = '{"title":"broken"}'): BrokerRequest {
  return {
    approvedPreviewSha256: null,
    body: new Uint8Array(Buffer.from(body)),
    destination: grant.destination,
    headers: [{ name: 'content-type', value: new Uint8Array(Buffer.from('application/json')) }],
    options: { responseLimitBytes: 4_096, streaming: false, timeoutMs: 5_000 },
  }
}

/** What a host announces of a request; a retry uses the very same announcement. */
export function announce(
  kernel: Pick<TestKernel, 'caller'>,
  grant: Grant,
  request: BrokerRequest,
  clock: Clock = systemClock,
): ReserveRequest {
  return {
    bodyBytes: request.body.length,
    bodySha256: sha256Hex(request.body),
    callerPublicKey: kernel.caller.publicKey,
    grantId: grant.grantId,
    invocationId: `invocation-${randomUUID()}`,
    proofIssuedAtUnixSeconds: Math.floor(clock.unixMs() / 1_000),
    proofNonce: randomBytes(24).toString('base64url'),
    requestDigest: requestDigest(request),
    responseLimitBytes: request.options.responseLimitBytes,
    timeoutMs: request.options.timeoutMs,
  }
}

export function executeOf(
  kernel: Pick<TestKernel, 'caller'>,
  reserve: ReserveRequest,
  answer: ReserveResult,
  request: BrokerRequest,
): BrokerExecuteRequest {
  const proof = { nonce: reserve.proofNonce, issuedAtUnixSeconds: reserve.proofIssuedAtUnixSeconds }
  return {
    capability: answer.capability,
    invocationId: reserve.invocationId,
    proof: signProof(answer.capability, request, proof, kernel.caller),
    request,
    schema: 'chio.broker-execute.v1',
  }
}

export interface ReservedOperation {
  readonly announced: ReserveRequest
  readonly answer: ReserveResult
  readonly operationId: string
  readonly execute: BrokerExecuteRequest
}
export interface RegisteredOperation extends ReservedOperation {
  readonly registration: AttemptRegistration
}
export interface StartedOperation extends RegisteredOperation {
  readonly captured: CapturedHold
}

export async function reserved(
  kernel: TestKernel,
  grant: Grant,
  clock: Clock = systemClock,
): Promise<ReservedOperation> {
  const request = requestUnder(grant)
  const announced = announce(kernel, grant, request, clock)
  const answer = await kernel.client.call('reserve', announced)
  const execute = executeOf(kernel, announced, answer, request)
  return { announced, answer, execute, operationId: answer.operationId }
}

export async function registered(
  kernel: TestKernel,
  grant: Grant,
  clock: Clock = systemClock,
): Promise<RegisteredOperation> {
  const operation = await reserved(kernel, grant, clock)
  const { execute, operationId } = operation
  const { registration } = await kernel.client.call('authorize_registration', { execute, operationId })
  return { ...operation, registration }
}

export async function started(
  kernel: TestKernel,
  grant: Grant,
  clock: Clock = systemClock,
): Promise<StartedOperation> {
  const operation = await registered(kernel, grant, clock)
  const { captured } = await kernel.client.call('start', startOf(operation))
  return { ...operation, captured }
}

export function startOf({ answer, operationId }: ReservedOperation) {
  return { executionNonce: answer.executionNonce, operationId }
}

/** The broker's signed failure of an operation. */
export function failureOf(
  kernel: Pick<TestKernel, 'broker'>,
  operation: RegisteredOperation,
  said: Pick<ExecutionFailureReceiptBody, 'dispatchKnowledge' | 'outcome' | 'stage'>,
): BrokerRecord {
  const { execute, registration } = operation
  const failure = signFailure(
    {
      ...said,
      attemptId: registration.ids.attemptId,
      brokerCapabilityId: registration.brokerCapabilityId,
      capabilityDigest: capabilityDigest(execute.capability),
      diagnosticCode: 'chio.broker.upstream',
      holdId: registration.ids.holdId,
      invocationId: registration.invocationId,
      issuedAtUnixSeconds: Math.floor(Date.now() / 1_000),
      parentCapabilityId: registration.parentCapabilityId,
      receiptId: failureReceiptId(registration.requestCanonicalDigest),
      requestDigest: registration.requestDigest,
      schema: 'chio.broker-execution-failure-receipt.v1',
    },
    kernel.broker,
  )
  return { kind: 'failure', failure }
}

export const NOT_STARTED = {
  dispatchKnowledge: 'not_started',
  outcome: 'failed',
  stage: 'admission',
} as const
export const NOT_COMMITTED = {
  dispatchKnowledge: 'not_committed',
  outcome: 'failed',
  stage: 'capture',
} as const
export const COMMITTED = { dispatchKnowledge: 'committed', outcome: 'failed', stage: 'dispatch' } as const
export const UNKNOWN = { dispatchKnowledge: 'unknown', outcome: 'unknown', stage: 'dispatch' } as const

const DELIVERED = '{"id":7}'

/** The broker's signed receipt of a started operation. */
export function receiptOf(
  kernel: Pick<TestKernel, 'broker'>,
  operation: StartedOperation,
  content = DELIVERED,
): BrokerRecord {
  const { captured, execute, registration } = operation
  const capability = execute.capability.body
  const body = Buffer.from(content)
  const receipt = signReceipt(
    {
      authorizeEventId: registration.ids.authorizeEventId,
      brokerCapabilityId: capability.capabilityId,
      brokerQuotaKeyId: capability.brokerQuotaKeyId,
      callerHeadersSha256: callerHeadersDigest(execute.request.headers),
      callerOptionsSha256: callerOptionsDigest(execute.request.options),
      captureEventId: registration.ids.captureEventId,
      credentialReferenceHash: credentialReferenceHash(capability.credential),
      credentialVersion: capability.credential.version,
      evidence: {
        attemptId: registration.ids.attemptId,
        authorityCommitIndex: captured.authorityCommitIndex,
        budgetCommitIndex: captured.budgetCommitIndex,
        capabilityDigest: capabilityDigest(execute.capability),
        holdId: registration.ids.holdId,
        invocationId: registration.invocationId,
        leaderEpoch: captured.leaderEpoch,
        requestDigest: registration.requestDigest,
        responseBodySha256: responseBodyDigest(body),
        responseHeadersSha256: responseHeadersDigest([]),
        revocationCommitIndex: captured.revocationCommitIndex,
        revocationSetDigest: captured.checkedRevocationSetDigest,
        schema: 'chio.broker-execution-evidence.v2',
        upstreamStatus: 201,
      },
      issuedAtUnixSeconds: Math.floor(Date.now() / 1_000),
      normalizedDestination: execute.request.destination,
      operationId: registration.ids.operationId,
      outcome: 'completed',
      parentCapabilityId: capability.parentCapabilityId,
      providerAdapterId: capability.providerAdapterId,
      providerAdapterVersion: capability.providerAdapterVersion,
      quotas: registration.quotas,
      receiptId: receiptIdOf(registration.ids.attemptId),
      requestBodyBytes: execute.request.body.length,
      requestBodySha256: sha256Hex(execute.request.body),
      responseBodyBytes: body.length,
      schema: 'chio.broker-execution-receipt.v2',
      sourceReceiptIds: [],
      subject: capability.subject,
    },
    kernel.broker,
  )
  return { kind: 'receipt', receipt }
}

/** What the broker recorded with that receipt: the response as it was delivered. */
export function responseOf(record: BrokerRecord, content = DELIVERED): BrokerExecuteResponse {
  if (record.kind !== 'receipt') throw new TypeError('record: expected a receipt, got a failure')
  const { receipt } = record
  return {
    body: new Uint8Array(Buffer.from(content)),
    evidence: receipt.body.evidence,
    headers: [],
    receipt,
    receiptReference: receiptReference(receipt),
    status: receipt.body.evidence.upstreamStatus,
  }
}
