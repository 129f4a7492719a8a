// Owns: the bytes of an execution nonce apart from a frame: of a presented one, of the first profile as history, and
// of the record under which a store reserves one.
// Must never: take the first profile for a fresh authority: it is bound to no operation.
// Source: the two profiles of the execution nonce; the operation-owned reservation record.
import {
  decode,
  digest,
  encode,
  type Infer,
  identifier,
  literal,
  object,
  publicKeyHex,
  signatureHex,
  text,
} from './codec.js'
import { sha256Hex } from './digest.js'
import { type DecodedNonce, nonceRefusal, SignedExecutionNonce } from './execution-nonce.js'
import { parseStrictJson } from './json.js'
import { type PublicKey, verifySignature } from './keys.js'
import { MAXIMUM_NONCE_RESERVATION_BYTES } from './limits.js'
import { UnixMs, UnixSeconds } from './unix-time.js'

const HISTORICAL_SCHEMA = 'chio.execution_nonce.v1'
const RESERVATION_SCHEMA = 'chio.admission-execution-nonce-reservation.v1'

const HistoricalBinding = object(
  {
    capability_id: identifier(),
    parameter_hash: digest(),
    subject_id: identifier(),
    tool_name: identifier(),
    tool_server: identifier(),
  },
  { optional: { request_id: identifier() } },
)
const HistoricalNonce = object(
  {
    bound_to: HistoricalBinding,
    expires_at: UnixSeconds,
    issued_at: UnixSeconds,
    nonce_id: text({ minBytes: 36, maxBytes: 36 }),
    schema: literal(HISTORICAL_SCHEMA),
  },
  { optional: { reserved_hold_id: identifier(), reserving_request_id: identifier() } },
)
const SignedHistoricalNonce = object({ nonce: HistoricalNonce, signature: signatureHex() })
export type SignedHistoricalNonce = Infer<typeof SignedHistoricalNonce>

/**
 * Reads a presented nonce of the current profile.
 * @throws BrokerError `execution_nonce_schema` for another profile, `execution_nonce_encoding` for other bytes.
 */
export function decodeNonce(bytes: Uint8Array): DecodedNonce {
  assertReservable(bytes)
  if (schemaOf(bytes) === HISTORICAL_SCHEMA) {
    throw nonceRefusal(
      'schema',
      'the profile that is bound to an operation, got the first one; it is history',
    )
  }
  return decodeAs(SignedExecutionNonce, bytes)
}

/** Reads a nonce of the first profile, for records of the past. It authorizes nothing any more. */
export function decodeHistoricalNonce(bytes: Uint8Array): SignedHistoricalNonce {
  return decodeAs(SignedHistoricalNonce, bytes)
}

/** Whether the issuer signed a nonce of the first profile. */
export function isHistoricalNonceSigned(
  { nonce, signature }: SignedHistoricalNonce,
  issuer: PublicKey,
): boolean {
  return verifySignature(issuer, encode(HistoricalNonce, nonce), signature)
}

/** What a store keeps of a reserved nonce. */
export const NonceReservation = object({
  issuer: publicKeyHex(),
  operation_id: digest(),
  schema: literal(RESERVATION_SCHEMA),
  signed_nonce: SignedExecutionNonce,
})
export type NonceReservation = Infer<typeof NonceReservation>

/** The exact bytes of a reservation. @throws BrokerError `execution_nonce_encoding` beyond their limit. */
export function encodeNonceReservation(members: Omit<NonceReservation, 'schema'>): Uint8Array {
  const bytes = encode(NonceReservation, { ...members, schema: RESERVATION_SCHEMA })
  assertReservable(bytes)
  return bytes
}

/** Reads a reservation from its exact bytes. */
export function decodeNonceReservation(bytes: Uint8Array): NonceReservation {
  assertReservable(bytes)
  return decodeAs(NonceReservation, bytes)
}

function assertReservable(bytes: Uint8Array): void {
  if (bytes.length <= MAXIMUM_NONCE_RESERVATION_BYTES) return
  throw nonceRefusal('encoding', `at most ${MAXIMUM_NONCE_RESERVATION_BYTES} bytes, got ${bytes.length}`)
}

function decodeAs<T>(codec: Parameters<typeof decode<T>>[0], bytes: Uint8Array): T {
  try {
    return decode(codec, bytes, 'execution nonce')
  } catch (cause) {
    throw Object.assign(nonceRefusal('encoding', 'its exact canonical bytes'), { cause })
  }
}

function schemaOf(bytes: Uint8Array): unknown {
  try {
    const document = parseStrictJson(bytes, 'execution nonce') as { nonce?: { schema?: unknown } } | null
    return document?.nonce?.schema
  } catch {
    return undefined
  }
}

const CapturePreparation = object({
  operation_digest: digest(),
  recorded_at_unix_ms: UnixMs,
  reservation_digest: digest(),
  schema: literal('chio.admission-execution-nonce-capture-preparation.v1'),
})

/** What the first transition of a reservation commits to: the reservation, the operation then, and when. */
export function preparationDigest(members: Omit<Infer<typeof CapturePreparation>, 'schema'>): string {
  const schema = 'chio.admission-execution-nonce-capture-preparation.v1'
  return sha256Hex(encode(CapturePreparation, { ...members, schema }))
}
