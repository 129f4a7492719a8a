// Owns the signed dispatch authorization of caller delivery: the kernel's statement that one dispatch was committed and
// that one executor may carry it out within an interval. Two results of verification are two types: what is historical
// replays what was done, what is claimable lets something begin.
// Must never: take kernel key, executor or invocation from the document. Whoever verifies brings all three.
// Source: `chio.caller-dispatch-authorization.v1`; signed is the canonical body, whose schema is the domain.
import { assertWithin, callerDeliveryRefusal, inShape } from './caller-delivery-refusal.js'
import {
  decode,
  digest,
  encode,
  type Infer,
  identifier,
  integer,
  literal,
  object,
  publicKeyHex,
  refine,
  signatureHex,
} from './codec.js'
import { sha256Hex, toHex } from './digest.js'
import { AttemptCommitRecord } from './dispatch-commit.js'
import { BrokerError, isBrokerError } from './errors.js'
import { admitPublicKey, type PublicKey, type SigningKey, verifySignature } from './keys.js'
import { MAXIMUM_CALLER_AUTHORIZATION_BYTES, MAXIMUM_INTEGER } from './limits.js'
import { markVerified, type Verified } from './verified.js'

export const CALLER_AUTHORIZATION_SCHEMA = 'chio.caller-dispatch-authorization.v1'
const WHAT = 'dispatch authorization'
const positive = integer({ min: 1, max: MAXIMUM_INTEGER })
/** How a report travels, by the server whose tool is called; the second is that of a native capture. */
const TRANSPORT_PREFIXES = ['caller-report:', 'native-caller-report:v1:'] as const

/** The transport of a call to a server that its caller's executor carries out. */
export function callerTransportId(serverId: string): string {
  return `${TRANSPORT_PREFIXES[0]}${serverId}`
}

/** An executor as a kernel pins it: the key of one epoch. */
export const CallerExecutor = object({
  executor_id: identifier(),
  key_epoch: positive,
  public_key: publicKeyHex(),
})
export type CallerExecutor = Infer<typeof CallerExecutor>

/** The one call that is meant, by ids and digests; whoever verifies has them from its own records. */
export const CallerInvocation = object({
  capability_digest: digest(),
  capability_id: identifier(),
  operation_id: digest(),
  parameters_digest: digest(),
  request_binding_hash: digest(),
  request_id: identifier(),
  server_id: identifier(),
  tool_name: identifier(),
})
export type CallerInvocation = Infer<typeof CallerInvocation>

/** What the start fixed, and the digest of the context that it was decided in. */
export const CallerCommitment = object({
  budget_hold_id: identifier(),
  dispatch_commit: AttemptCommitRecord,
  execution_nonce_id: identifier(),
  frozen_context_digest: digest(),
})
export type CallerCommitment = Infer<typeof CallerCommitment>

const BodyMembers = object({
  committed: CallerCommitment,
  executor: CallerExecutor,
  expires_at_unix_ms: positive,
  invocation: CallerInvocation,
  kernel_public_key: publicKeyHex(),
  not_before_unix_ms: positive,
  schema: literal(CALLER_AUTHORIZATION_SCHEMA),
})

/** What is signed. Its members agree with each other; whether with the world, its verification says. */
export const CallerAuthorizationBody = refine(BodyMembers, body => {
  const { executor, invocation } = body
  const attempt = body.committed.dispatch_commit.provider_attempt
  const transports = TRANSPORT_PREFIXES.map(prefix => `${prefix}${invocation.server_id}`)
  if (body.not_before_unix_ms >= body.expires_at_unix_ms) misshapen('interval', 'an end after its begin')
  if (attempt.operation_id !== invocation.operation_id) misshapen('attempt', 'one of its operation')
  if (!transports.includes(attempt.transport_id)) misshapen('transport', 'the one of its server')
  if (attempt.transport_key_epoch !== executor.key_epoch) misshapen('epoch', "its executor's")
  assertStrong(body.kernel_public_key, 'kernel_public_key')
  assertStrong(executor.public_key, 'executor public_key')
})
export type CallerAuthorizationBody = Infer<typeof CallerAuthorizationBody>

export const CallerAuthorization = object({
  authorization: CallerAuthorizationBody,
  signature: signatureHex(),
})
export type CallerAuthorization = Infer<typeof CallerAuthorization>

function misshapen(member: string, expected: string, cause?: unknown): never {
  throw new BrokerError('invalid_request', `${WHAT} ${member} refused: expected ${expected}`, { cause })
}

function assertStrong(key: string, member: string): void {
  try {
    admitPublicKey(key, `${WHAT} ${member}`)
  } catch (error) {
    if (isBrokerError(error)) misshapen(member, 'a strong ed25519 key', error)
    throw error
  }
}

/** What whoever verifies knows from its own records. */
export interface CallerPins {
  readonly executor: CallerExecutor
  readonly invocation: CallerInvocation
  readonly kernelKey: PublicKey
}

/** Signed by the pinned kernel for this executor and this invocation. It says nothing of now: nothing begins under it. */
export interface HistoricalAuthorization {
  /** The whole signed envelope, canonical: what is retained and compared. */
  readonly bytes: Uint8Array
  /** SHA-256 of `bytes`, in hex: what a report names. */
  readonly digest: string
  readonly signed: Verified<CallerAuthorization>
}

/** The same at a moment of its interval: only of this type is anything claimed. */
export interface ClaimableAuthorization extends HistoricalAuthorization {
  readonly claimableAtUnixMs: number
}

/**
 * Signs as the kernel that the body names.
 * @throws BrokerError `caller_delivery_shape`; RangeError for another kernel's body.
 */
export function signCallerAuthorization(body: CallerAuthorizationBody, key: SigningKey): CallerAuthorization {
  if (body.kernel_public_key !== key.publicKey) {
    throw new RangeError('"body.kernel_public_key" expected the key that signs, got another')
  }
  const message = inShape(WHAT, () => encode(CallerAuthorizationBody, body))
  const signed = { authorization: body, signature: toHex(key.sign(message)) }
  canonicalAuthorization(signed)
  return signed
}

/**
 * The canonical bytes of the signed envelope, at most 32,768.
 * @throws BrokerError `caller_delivery_shape`.
 */
export function canonicalAuthorization(signed: CallerAuthorization): Uint8Array {
  const bytes = inShape(WHAT, () => encode(CallerAuthorization, signed))
  assertWithin(bytes, MAXIMUM_CALLER_AUTHORIZATION_BYTES, WHAT)
  return bytes
}

/** SHA-256 of the whole signed envelope, in hex. */
export function callerAuthorizationDigest(signed: CallerAuthorization): string {
  return sha256Hex(canonicalAuthorization(signed))
}

/**
 * Reads exactly the canonical envelope; establishes nothing but its shape.
 * @throws BrokerError `caller_delivery_shape`.
 */
export function decodeCallerAuthorization(bytes: Uint8Array): CallerAuthorization {
  assertWithin(bytes, MAXIMUM_CALLER_AUTHORIZATION_BYTES, WHAT)
  return inShape(WHAT, () => decode(CallerAuthorization, bytes, WHAT))
}

/**
 * Verifies without asking for the time: shape and bounds, pins, signature, in this order.
 * @throws BrokerError `caller_delivery_shape`, `caller_delivery_binding` or `caller_delivery_signature`.
 */
export function verifyHistorical(signed: CallerAuthorization, pins: CallerPins): HistoricalAuthorization {
  const bytes = canonicalAuthorization(signed)
  const body = signed.authorization
  assertPinned(body, pins)
  const message = encode(CallerAuthorizationBody, body)
  if (!verifySignature(pins.kernelKey, message, signed.signature)) {
    throw callerDeliveryRefusal('signature', `${WHAT} signature refused: expected the pinned kernel's`)
  }
  return { bytes, digest: sha256Hex(bytes), signed: markVerified(signed) }
}

/**
 * Verifies for a claim: as history, and then that now lies in [not_before, expires).
 * @throws BrokerError as `verifyHistorical` does, and `caller_delivery_expired`.
 */
export function verifyForClaim(
  signed: CallerAuthorization,
  pins: CallerPins,
  nowUnixMs: number,
): ClaimableAuthorization {
  return claimableAt(verifyHistorical(signed, pins), nowUnixMs)
}

/**
 * What is known as history, at a moment of its interval.
 * @throws BrokerError `caller_delivery_expired`, also before the interval has begun.
 */
export function claimableAt(known: HistoricalAuthorization, nowUnixMs: number): ClaimableAuthorization {
  assertInInterval(known.signed.authorization, nowUnixMs, WHAT)
  return { ...known, claimableAtUnixMs: nowUnixMs }
}

/** @throws BrokerError `caller_delivery_expired`. */
export function assertInInterval(
  { expires_at_unix_ms: end, not_before_unix_ms: begin }: CallerAuthorizationBody,
  momentUnixMs: number,
  what: string,
): void {
  if (momentUnixMs >= begin && momentUnixMs < end) return
  const where =
    momentUnixMs < begin ? `${begin - momentUnixMs} ms before it` : `${momentUnixMs - end} ms past it`
  throw callerDeliveryRefusal(
    'expired',
    `${what} time refused: expected a moment of the execution interval, got one ${where}`,
  )
}

/** In the order in which a foreign one is named. */
const EXECUTOR_MEMBERS = ['executor_id', 'public_key', 'key_epoch'] as const
const INVOCATION_MEMBERS = [
  'operation_id',
  'request_id',
  'request_binding_hash',
  'capability_id',
  'capability_digest',
  'server_id',
  'tool_name',
  'parameters_digest',
] as const satisfies readonly (keyof CallerInvocation)[]

/** Whether an executor is the pinned one: the first member that differs, else undefined. */
export function foreignMemberOf(
  given: CallerExecutor,
  pinned: CallerExecutor,
): keyof CallerExecutor | undefined {
  return EXECUTOR_MEMBERS.find(member => given[member] !== pinned[member])
}

function assertPinned(
  { executor, invocation, kernel_public_key }: CallerAuthorizationBody,
  pins: CallerPins,
): void {
  if (kernel_public_key !== pins.kernelKey) throw foreign('kernel_public_key')
  const member = foreignMemberOf(executor, pins.executor)
  if (member !== undefined) throw foreign(`executor ${member}`)
  const other = INVOCATION_MEMBERS.find(name => invocation[name] !== pins.invocation[name])
  if (other !== undefined) throw foreign(`invocation ${other}`)
}

function foreign(member: string): BrokerError {
  return callerDeliveryRefusal(
    'binding',
    `${WHAT} ${member} refused: expected the one that was selected independently, got another`,
  )
}
