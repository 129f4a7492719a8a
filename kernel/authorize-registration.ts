// Owns: what turns a reservation into an attempt the broker may take: the exact request, compared with what was
// reserved, retained encrypted, and the authority's signatures over its registration.
// Must never: sign over a request that was not retained first.
// Source: the attempt registration and its authorization; the order of checks of the execute request.
import { capabilityDigest } from '../protocol/capability.js'
import { unixSeconds } from '../protocol/clock.js'
import { encode } from '../protocol/codec.js'
import { sha256Hex } from '../protocol/digest.js'
import { BrokerError } from '../protocol/errors.js'
import { BrokerExecuteRequest, requestDigest, verifyExecuteRequest } from '../protocol/execute-request.js'
import type { AuthorizeRegistrationResult, ReserveRequest } from '../protocol/kernel-rpc.js'
import {
  type AttemptRegistration,
  buildRegistration,
  type RegistrationAction,
  registrationDigest,
  type SignedRegisterAttemptAuthorization,
  signRegistrationAuthorization,
} from '../protocol/registration.js'
import { ownOperation } from './operation/find-operation.js'
import type { Caller, KernelContext } from './kernel-context.js'
import { assertState, sameRegistration } from './operation/move-rules.js'
import { type AdmissionOperation, type Reservation, brokeredCall } from './operation/operation.js'
import { sealRequest } from './sealed-request.js'

/** Retains the request on the first call; every call signs anew over the same registration. */
export async function authorizeRegistration(
  context: KernelContext,
  caller: Caller,
  request: { readonly execute: BrokerExecuteRequest; readonly operationId: string },
): Promise<AuthorizeRegistrationResult> {
  const operation = await ownOperation(context, caller, request.operationId)
  assertState(operation, 'ready_to_dispatch', 'its registration can be signed no more')
  checkReserved(brokeredCall(operation).reservation, request.execute)
  verifyExecute(context, request.execute)
  const registration = registrationOf(operation, request.execute)
  await retain(context, operation, { execute: request.execute, registration })
  return {
    prepareAuthorization: signAction(context, registration, 'prepare'),
    registerAuthorization: signAction(context, registration, 'register'),
    registration,
  }
}

export function signAction(
  context: KernelContext,
  registration: AttemptRegistration,
  action: RegistrationAction,
): SignedRegisterAttemptAuthorization {
  const statement = {
    action,
    registrationDigest: registrationDigest(registration),
    tenantScope: context.config.tenantScope,
    issuedAtUnixSeconds: unixSeconds(context.clock),
  }
  return signRegistrationAuthorization(statement, context.keys.authority)
}

function verifyExecute(context: KernelContext, execute: BrokerExecuteRequest): void {
  const { audience, broker, clockSkewSeconds } = context.config
  const pins = { adapter: broker.adapter, audience, clockSkewSeconds, issuer: context.keys.issuer.publicKey }
  verifyExecuteRequest(execute, pins, unixSeconds(context.clock))
}

function registrationOf(operation: AdmissionOperation, execute: BrokerExecuteRequest): AttemptRegistration {
  const { answer } = brokeredCall(operation).reservation
  return buildRegistration(execute, { ...answer, operationId: operation.operationId })
}

async function retain(
  context: KernelContext,
  operation: AdmissionOperation,
  retained: { readonly execute: BrokerExecuteRequest; readonly registration: AttemptRegistration },
): Promise<void> {
  const { execute, registration } = retained
  const known = brokeredCall(operation).registration
  if (known !== null) {
    sameRegistration(operation, known, registration)
    return
  }
  const { operationId } = operation
  const canonical = encode(BrokerExecuteRequest, execute)
  const sealed = sealRequest(context.keys.storage, operationId, canonical)
  await context.store.retainRegistration({ operationId, registration, sealed })
}

/** What was announced at reserve is what is asked now, member by member. */
function checkReserved(reservation: Reservation, execute: BrokerExecuteRequest): void {
  const { answer, request: reserved } = reservation
  const { proof, request } = execute
  const announced: readonly (readonly [keyof ReserveRequest | 'capability', boolean])[] = [
    ['capability', capabilityDigest(execute.capability) === capabilityDigest(answer.capability)],
    ['invocationId', execute.invocationId === reserved.invocationId],
    ['callerPublicKey', proof.body.authorityKey === reserved.callerPublicKey],
    ['proofNonce', proof.body.nonce === reserved.proofNonce],
    ['proofIssuedAtUnixSeconds', proof.body.issuedAtUnixSeconds === reserved.proofIssuedAtUnixSeconds],
    ['bodyBytes', request.body.length === reserved.bodyBytes],
    ['bodySha256', sha256Hex(request.body) === reserved.bodySha256],
    ['responseLimitBytes', request.options.responseLimitBytes === reserved.responseLimitBytes],
    ['timeoutMs', request.options.timeoutMs === reserved.timeoutMs],
    ['requestDigest', requestDigest(request) === reserved.requestDigest],
  ]
  const changed = announced.find(([, holds]) => !holds)
  if (changed === undefined) return
  throw new BrokerError(
    'request_binding_mismatch',
    `request_binding_mismatch: execute request ${changed[0]} refused: expected what was reserved, got another value; the operation is unchanged`,
  )
}
