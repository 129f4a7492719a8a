// The operation-owned execution nonce (second profile): signed by the kernel over itself and the
// operation it belongs to. Decoding or verifying it reserves nothing and authorizes nothing.
import { digest, encode, type Infer, identifier, literal, object, signatureHex, text } from './codec.js'
import type { PublicKey, SigningKey } from './keys.js'
import { verifySignature } from './keys.js'
import { toHex } from './digest.js'
import { UnixSeconds } from './unix-time.js'

export const NONCE_SCHEMA = 'chio.execution_nonce.v2'
const SIGNATURE_SCHEMA = 'chio.admission-execution-nonce-signature.v1'

/** The request that a nonce belongs to; snake_case is the wire's. */
export const NonceBinding = object({
  capability_id: identifier(),
  parameter_hash: digest(),
  request_id: identifier(),
  subject_id: identifier(),
  tool_name: identifier(),
  tool_server: identifier(),
})

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

/** Whether a nonce was signed by this kernel for exactly this operation. */
export function isNonceOfOperation(
  signed: SignedExecutionNonce,
  operationId: string,
  issuer: PublicKey,
): boolean {
  return verifySignature(issuer, material(signed.nonce, operationId), signed.signature)
}

function material(nonce: ExecutionNonce, operationId: string): Uint8Array {
  return encode(SignedMaterial, { nonce, operation_id: operationId, schema: SIGNATURE_SCHEMA })
}
