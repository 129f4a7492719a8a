// The broker's answers to register, prepare and release. The prepare acknowledgement is bound to
// one registration and one request by `preparedDispatchId`, which the client recomputes.
import { type Infer, identifier, literal, object, oneOf } from './codec.js'
import { domainDigestHex } from './digest.js'
import { BrokerError } from './errors.js'

import { type AttemptRegistration, registrationDigest } from './registration.js'
import { PositiveUnixSeconds } from './unix-time.js'

export const REGISTER_ACKNOWLEDGEMENT_SCHEMA = 'chio.broker-register-attempt-acknowledgement.v1'
export const PREPARE_ACKNOWLEDGEMENT_SCHEMA = 'chio.broker-prepare-dispatch-acknowledgement.v1'
export const RELEASE_ACKNOWLEDGEMENT_SCHEMA = 'chio.broker-release-attempt-acknowledgement.v1'

export const RegisterAttemptAcknowledgement = object({
  attemptId: identifier(),
  disposition: oneOf('exact_retry', 'inserted'),
  operationId: identifier(),
  registeredAtUnixSeconds: PositiveUnixSeconds,
  schema: literal(REGISTER_ACKNOWLEDGEMENT_SCHEMA),
})
export type RegisterAttemptAcknowledgement = Infer<typeof RegisterAttemptAcknowledgement>

export const PrepareDispatchAcknowledgement = object({
  attemptId: identifier(),
  operationId: identifier(),
  preparedAtUnixSeconds: PositiveUnixSeconds,
  preparedDispatchId: identifier(),
  schema: literal(PREPARE_ACKNOWLEDGEMENT_SCHEMA),
})
export type PrepareDispatchAcknowledgement = Infer<typeof PrepareDispatchAcknowledgement>

export const ReleaseAttemptAcknowledgement = object({
  attemptId: identifier(),
  operationId: identifier(),
  releasedAtUnixSeconds: PositiveUnixSeconds,
  schema: literal(RELEASE_ACKNOWLEDGEMENT_SCHEMA),
})
export type ReleaseAttemptAcknowledgement = Infer<typeof ReleaseAttemptAcknowledgement>

/** The identifier of the prepared dispatch of one registration (which names its exact request). */
export function preparedDispatchId(registration: AttemptRegistration): string {
  const parts = [
    registration.ids.operationId,
    registration.ids.attemptId,
    registrationDigest(registration),
    registration.requestCanonicalDigest,
  ]
  const digest = domainDigestHex('chio.broker-prepared-dispatch.v1', Buffer.from(parts.join('\0'), 'utf8'))
  return `broker-prepared-dispatch-${digest}`
}

/** Refuses an acknowledgement that is not the one of this registration. */
export function checkPrepareAcknowledgement(
  acknowledgement: PrepareDispatchAcknowledgement,
  registration: AttemptRegistration,
): void {
  checkNames(acknowledgement, registration, 'prepare')
  if (acknowledgement.preparedDispatchId !== preparedDispatchId(registration)) {
    refuse('prepare', 'preparedDispatchId', 'the identifier derived from this registration')
  }
}

/** Refuses a register acknowledgement of another attempt. */
export function checkRegisterAcknowledgement(
  acknowledgement: RegisterAttemptAcknowledgement,
  registration: AttemptRegistration,
): void {
  checkNames(acknowledgement, registration, 'register')
}

/** Refuses a release acknowledgement of another attempt. */
export function checkReleaseAcknowledgement(
  acknowledgement: ReleaseAttemptAcknowledgement,
  registration: AttemptRegistration,
): void {
  checkNames(acknowledgement, registration, 'release')
}

function checkNames(
  names: { readonly attemptId: string; readonly operationId: string },
  registration: AttemptRegistration,
  action: string,
): void {
  if (names.attemptId !== registration.ids.attemptId) refuse(action, 'attemptId', 'the registered attempt')
  if (names.operationId !== registration.ids.operationId)
    refuse(action, 'operationId', 'the registered operation')
}

function refuse(action: string, member: string, expected: string): never {
  throw new BrokerError(
    'authority_unavailable',
    `${action} acknowledgement ${member} refused: expected ${expected}; the stream was closed`,
  )
}
