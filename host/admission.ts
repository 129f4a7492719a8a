// Steps 1 and 2 of a run: the kernel reserves, the host signs its proof over the one exact request, the
// kernel signs the registration. Nothing here authorizes an effect.
import { randomBytes, randomUUID } from 'node:crypto'
import type { AuthorizedAttempt } from '../client/broker-client.js'
import { unixSeconds } from '../protocol/clock.js'
import type { HeaderField } from '../protocol/destination.js'
import { sha256Hex } from '../protocol/digest.js'
import { BrokerError } from '../protocol/errors.js'
import {
  type BrokerExecuteRequest,
  type BrokerRequest,
  checkRequest,
  EXECUTE_SCHEMA,
  requestDigest,
  signProof,
} from '../protocol/execute-request.js'
import type { SignedExecutionNonce } from '../protocol/execution-nonce.js'
import type { OutcomeContext } from '../protocol/execute-response.js'
import type { Grant } from '../protocol/grant.js'
import type { GrantView, ReserveResult } from '../protocol/kernel-rpc.js'
import { checkRegistrationOf } from '../protocol/registration.js'
import type { HostSession } from './session.js'

/** What a caller wants done under one grant. Times and limits default to the grant's own. */
export interface RequestedExecution {
  readonly grantId: string
  readonly body: Uint8Array
  readonly headers: readonly HeaderField[]
  readonly timeoutMs?: number
  readonly responseLimitBytes?: number
}

/** An admitted operation: everything that registering, preparing and verifying need. */
export interface AdmittedOperation {
  readonly operationId: string
  readonly attemptId: string
  readonly executionNonce: SignedExecutionNonce
  readonly register: AuthorizedAttempt
  readonly prepare: AuthorizedAttempt
  readonly context: OutcomeContext
}

/** A reservation with the exact request that was signed under it. */
export interface ReservedOperation {
  readonly operationId: string
  readonly reserved: ReserveResult
  readonly execute: BrokerExecuteRequest
}

/** The exact HTTP request of an execution; the destination is the grant's, never the caller's. */
export function buildRequest(grant: Grant, requested: RequestedExecution): BrokerRequest {
  const request: BrokerRequest = {
    approvedPreviewSha256: null,
    body: requested.body,
    destination: grant.destination,
    headers: [...requested.headers].sort((a, b) => (a.name < b.name ? -1 : 1)),
    options: {
      responseLimitBytes: requested.responseLimitBytes ?? grant.maximumResponseBytes,
      streaming: false,
      timeoutMs: requested.timeoutMs ?? grant.maximumTimeoutMs,
    },
  }
  checkRequest(request)
  checkAgainstGrant(request, grant)
  return request
}

function checkAgainstGrant(request: BrokerRequest, grant: Grant): void {
  if (request.body.length > grant.maximumBodyBytes) {
    refuse('body', `at most ${grant.maximumBodyBytes} bytes`, `${request.body.length}`)
  }
  const foreign = request.headers.find(field => !grant.allowedCallerHeaders.includes(field.name))
  if (foreign !== undefined) refuse(`header ${foreign.name}`, allowedHeaders(grant), 'another')
}

function allowedHeaders({ allowedCallerHeaders }: Grant): string {
  if (allowedCallerHeaders.length === 0) return 'no header, since the grant allows none'
  return `a header that the grant allows (${allowedCallerHeaders.join(', ')})`
}

function refuse(member: string, expected: string, got: string): never {
  throw new BrokerError('invalid_request', `${member} refused: expected ${expected}, got ${got}`)
}

/** Reads the grant that a run will use. */
export async function readGrant(session: HostSession, grantId: string): Promise<GrantView> {
  return session.kernel.call('show_grant', { grantId })
}

/** What names one request for good: the same one, asked again, is the same operation. */
export interface Invocation {
  readonly invocationId: string
  readonly proofNonce: string
}

export function newInvocation(): Invocation {
  return {
    invocationId: `invocation-${randomUUID()}`,
    proofNonce: randomBytes(24).toString('base64url'),
  }
}

/**
 * Step 1: lets the kernel reserve for one invocation, then signs the proof, which is of now.
 * @throws BrokerError `approval_required` with the operation that waits for its approvers.
 */
export async function reserve(
  session: HostSession,
  request: BrokerRequest,
  grantId: string,
  { invocationId, proofNonce }: Invocation = newInvocation(),
): Promise<ReservedOperation> {
  const proof = { nonce: proofNonce, issuedAtUnixSeconds: unixSeconds(session.clock) }
  const reserved = await session.kernel.call('reserve', {
    bodyBytes: request.body.length,
    bodySha256: sha256Hex(request.body),
    callerPublicKey: session.caller.publicKey,
    grantId,
    invocationId,
    proofIssuedAtUnixSeconds: proof.issuedAtUnixSeconds,
    proofNonce,
    requestDigest: requestDigest(request),
    responseLimitBytes: request.options.responseLimitBytes,
    timeoutMs: request.options.timeoutMs,
  })
  const execute: BrokerExecuteRequest = {
    capability: reserved.capability,
    invocationId,
    proof: signProof(reserved.capability, request, proof, session.caller),
    request,
    schema: EXECUTE_SCHEMA,
  }
  return { operationId: reserved.operationId, reserved, execute }
}

/** Step 2, first half: the kernel retains the request and signs its registration. Signed anew on every call. */
export async function authorize(
  session: HostSession,
  reservation: ReservedOperation,
): Promise<AdmittedOperation> {
  const { execute, operationId, reserved } = reservation
  const authorized = await session.kernel.call('authorize_registration', { execute, operationId })
  const { registration } = authorized
  checkRegistrationOf(registration, execute)
  if (registration.ids.operationId !== operationId) {
    throw new BrokerError(
      'authority_unavailable',
      'registration refused: expected the reserved operation, got another',
    )
  }
  const attempt = { registration, request: execute }
  return {
    operationId,
    attemptId: registration.ids.attemptId,
    executionNonce: reserved.executionNonce,
    register: { ...attempt, authorization: authorized.registerAuthorization },
    prepare: { ...attempt, authorization: authorized.prepareAuthorization },
    context: { ...attempt, receiptSigner: session.pins.broker.receiptKey },
  }
}
