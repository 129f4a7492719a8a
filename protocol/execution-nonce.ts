// Owns: the operation-owned execution nonce (second profile): its form, its signature over itself and the operation
// that it belongs to, and the checks of a presented one in their one order.
// Must never: let a check before the store's consume anything. Three types say how far a nonce has come: what is
// decoded establishes nothing, what is verified reserves nothing, and only a store returns a reserved one.
// Source: the execution nonce's schema, its order of checks and its codes.
import { digest, encode, type Infer, identifier, literal, object, signatureHex, text } from './codec.js'
import { toHex } from './digest.js'
import type { ErrorCode } from './error-codes.js'
import { BrokerError } from './errors.js'
import type { PublicKey, SigningKey } from './keys.js'
import { verifySignature } from './keys.js'
import { UnixSeconds } from './unix-time.js'
import { markVerified, type Verified } from './verified.js'

export const NONCE_SCHEMA = 'chio.execution_nonce.v2'
const SIGNATURE_SCHEMA = 'chio.admission-execution-nonce-signature.v1'
/** The last second whose milliseconds are still a safe integer. */
const LAST_EXPIRY_UNIX_SECONDS = Math.floor(Number.MAX_SAFE_INTEGER / 1_000)

/** The request that a nonce belongs to; snake_case is the wire's. */
export const NonceBinding = object({
  capability_id: identifier(),
  parameter_hash: digest(),
  request_id: identifier(),
  subject_id: identifier(),
  tool_name: identifier(),
  tool_server: identifier(),
})
export type NonceBinding = Infer<typeof NonceBinding>

export const ExecutionNonce = object({
  bound_to: NonceBinding,
  expires_at: UnixSeconds,
  issued_at: UnixSeconds,
  nonce_id: text({ minBytes: 36, maxBytes: 36 }),
  schema: literal(NONCE_SCHEMA),
})
export type ExecutionNonce = Infer<typeof ExecutionNonce>

export const SignedExecutionNonce = object({ nonce: ExecutionNonce, signature: signatureHex() })
export type SignedExecutionNonce = Infer<typeof SignedExecutionNonce>
/** Read, and no more. */
export type DecodedNonce = SignedExecutionNonce

/** Signed by the pinned issuer for one operation and one request, in time. It is not reserved. */
export interface VerifiedNonce {
  readonly operationId: string
  readonly signed: Verified<SignedExecutionNonce>
}

/** What a verifier knows of its own. */
export interface NonceContext {
  readonly operationId: string
  readonly issuer: PublicKey
  readonly boundTo: NonceBinding
  readonly nowUnixSeconds: number
}

const SignedMaterial = object({
  nonce: ExecutionNonce,
  operation_id: digest(),
  schema: literal(SIGNATURE_SCHEMA),
})

/** Signs a nonce for one operation with the kernel key. */
export function signExecutionNonce(
  nonce: ExecutionNonce,
  operationId: string,
  key: SigningKey,
): SignedExecutionNonce {
  return { nonce, signature: toHex(key.sign(material(nonce, operationId))) }
}

/** The kernel's own word for a nonce that was refused, after its published name. */
export function nonceRefusal(name: NonceCheck, expected: string): BrokerError {
  const urn = `urn:chio:error:kernel:execution-nonce-${name}`
  return new BrokerError(NONCE_CODES[name], `${urn}: execution nonce refused: expected ${expected}`, {
    outcome: 'not_started',
  })
}

const NONCE_CODES = {
  schema: 'execution_nonce_schema',
  window: 'execution_nonce_window',
  'not-yet-valid': 'execution_nonce_not_yet_valid',
  expired: 'execution_nonce_expired',
  binding: 'execution_nonce_binding',
  signature: 'execution_nonce_signature',
  replayed: 'execution_nonce_replayed',
  encoding: 'execution_nonce_encoding',
} as const satisfies Record<string, ErrorCode>
export type NonceCheck = keyof typeof NONCE_CODES

/** Members in the order in which a foreign one is named. */
const BOUND: readonly (keyof NonceBinding)[] = [
  'subject_id',
  'request_id',
  'capability_id',
  'tool_server',
  'tool_name',
  'parameter_hash',
]

/** @throws BrokerError with the code of the first check that fails: window, time, binding, signature. */
export function verifyNonce(decoded: DecodedNonce, context: NonceContext): VerifiedNonce {
  const { nonce, signature } = decoded
  if (nonce.expires_at <= nonce.issued_at || nonce.expires_at > LAST_EXPIRY_UNIX_SECONDS) {
    throw nonceRefusal('window', 'an end after its issue')
  }
  assertNonceTime(nonce, context.nowUnixSeconds)
  const foreign = BOUND.find(member => nonce.bound_to[member] !== context.boundTo[member])
  if (foreign !== undefined)
    throw nonceRefusal('binding', `one of this operation's request, by its ${foreign}`)
  if (!verifySignature(context.issuer, material(nonce, context.operationId), signature)) {
    throw nonceRefusal('signature', "this kernel's signature over the nonce and this operation")
  }
  return { operationId: context.operationId, signed: markVerified(decoded) }
}

/** issued_at <= now < expires_at; asked again in the commit that rests on it. */
export function assertNonceTime({ expires_at, issued_at }: ExecutionNonce, nowUnixSeconds: number): void {
  if (nowUnixSeconds < issued_at) throw nonceRefusal('not-yet-valid', 'a nonce that was issued already')
  if (nowUnixSeconds >= expires_at)
    throw nonceRefusal('expired', 'a nonce that has not expired; reserve anew')
}

function material(nonce: ExecutionNonce, operationId: string): Uint8Array {
  return encode(SignedMaterial, { nonce, operation_id: operationId, schema: SIGNATURE_SCHEMA })
}
