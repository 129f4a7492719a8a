// Owns the signed delivery report of caller delivery: what the executor observed of the one call that it claimed. It is
// the executor's word alone: never a new permission, never the provider's attestation.
// Must never: be believed by another key than the pinned executor's, or say its output in a refusal.
// Source: `chio.caller-delivery-report.v1`; signed is the canonical body, whose schema is the domain.
import {
  assertInInterval,
  CallerExecutor,
  foreignMemberOf,
  type HistoricalAuthorization,
} from './caller-authorization.js'
import { assertWithin, callerDeliveryRefusal, inShape } from './caller-delivery-refusal.js'
import {
  decode,
  digest,
  encode,
  type Infer,
  identifier,
  integer,
  json,
  literal,
  nullable,
  object,
  refine,
  signatureHex,
} from './codec.js'
import { sha256Hex, toHex } from './digest.js'
import { BrokerError } from './errors.js'
import type { JsonValue } from './json.js'
import { admitPublicKey, type SigningKey, verifySignature } from './keys.js'
import { MAXIMUM_CALLER_REPORT_BYTES, MAXIMUM_INTEGER } from './limits.js'
import { MonetaryAmount } from './scope.js'
import { markVerified, type Verified } from './verified.js'

export const CALLER_REPORT_SCHEMA = 'chio.caller-delivery-report.v1'
const WHAT = 'delivery report'
const positive = integer({ min: 1, max: MAXIMUM_INTEGER })

/** What a callback observed; `realized_cost` is null where the call has no price. */
export interface CallerObservation {
  readonly output: JsonValue
  readonly realized_cost: MonetaryAmount | null
}

const BodyMembers = object({
  authorization_digest: digest(),
  claim_id: identifier(),
  completed_at_unix_ms: positive,
  execution_started_at_unix_ms: positive,
  executor: CallerExecutor,
  output: json({ maxBytes: MAXIMUM_CALLER_REPORT_BYTES }),
  realized_cost: nullable(MonetaryAmount),
  schema: literal(CALLER_REPORT_SCHEMA),
})

/** What is signed. */
export const CallerReportBody = refine(BodyMembers, body => {
  if (body.completed_at_unix_ms >= body.execution_started_at_unix_ms) return
  throw new BrokerError(
    'invalid_request',
    `${WHAT} time refused: expected an end that is not before its start`,
  )
})
export type CallerReportBody = Infer<typeof CallerReportBody>

export const CallerReport = object({ report: CallerReportBody, signature: signatureHex() })
export type CallerReport = Infer<typeof CallerReport>

/** The pinned executor's report under one authorization. */
export interface VerifiedCallerReport {
  /** The whole signed envelope, canonical: what is retained and compared. */
  readonly bytes: Uint8Array
  /** SHA-256 of `bytes`, in hex. */
  readonly digest: string
  readonly signed: Verified<CallerReport>
}

/**
 * Signs as the executor that the body names.
 * @throws BrokerError `caller_delivery_shape`, also for an output that does not fit; RangeError for another's body.
 */
export function signCallerReport(body: CallerReportBody, key: SigningKey): CallerReport {
  if (body.executor.public_key !== key.publicKey) {
    throw new RangeError('"body.executor.public_key" expected the key that signs, got another')
  }
  const message = inShape(WHAT, () => encode(CallerReportBody, body))
  const signed = { report: body, signature: toHex(key.sign(message)) }
  canonicalReport(signed)
  return signed
}

/**
 * The canonical bytes of the signed envelope, at most 1,048,576.
 * @throws BrokerError `caller_delivery_shape`.
 */
export function canonicalReport(signed: CallerReport): Uint8Array {
  const bytes = inShape(WHAT, () => encode(CallerReport, signed))
  assertWithin(bytes, MAXIMUM_CALLER_REPORT_BYTES, WHAT)
  return bytes
}

/**
 * Reads exactly the canonical envelope; establishes nothing but its shape.
 * @throws BrokerError `caller_delivery_shape`.
 */
export function decodeCallerReport(bytes: Uint8Array): CallerReport {
  assertWithin(bytes, MAXIMUM_CALLER_REPORT_BYTES, WHAT)
  return inShape(WHAT, () => decode(CallerReport, bytes, WHAT))
}

/**
 * Verifies a report under the authorization that it answers: shape and bounds, digest and executor, signature, and that
 * its start lies in the execution interval. It may end, and be presented, later; whether its end lies in the future is
 * for whoever has a clock to ask.
 * @throws BrokerError `caller_delivery_shape`, `_binding`, `_signature` or `_expired`.
 */
export function verifyCallerReport(
  signed: CallerReport,
  authorization: HistoricalAuthorization,
): VerifiedCallerReport {
  const bytes = canonicalReport(signed)
  const { report } = signed
  const { authorization: authorized } = authorization.signed
  if (report.authorization_digest !== authorization.digest) throw foreign('authorization_digest')
  const member = foreignMemberOf(report.executor, authorized.executor)
  if (member !== undefined) throw foreign(`executor ${member}`)
  const key = admitPublicKey(authorized.executor.public_key, 'executor public_key')
  if (!verifySignature(key, encode(CallerReportBody, report), signed.signature)) {
    throw callerDeliveryRefusal('signature', `${WHAT} signature refused: expected the pinned executor's`)
  }
  assertInInterval(authorized, report.execution_started_at_unix_ms, WHAT)
  return { bytes, digest: sha256Hex(bytes), signed: markVerified(signed) }
}

function foreign(member: string): BrokerError {
  return callerDeliveryRefusal(
    'binding',
    `${WHAT} ${member} refused: expected the one of the authorization that it answers, got another`,
  )
}
