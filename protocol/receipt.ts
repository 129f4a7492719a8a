// The broker's signed success receipt. It binds request, capture and response by digest and holds
// no content. v2 is current; v1 can be read and its signature checked, as history.
import {
  array,
  type Codec,
  digest,
  encode,
  type Infer,
  identifier,
  integer,
  literal,
  object,
  publicKeyHex,
} from './codec.js'
import { UnixSeconds } from './unix-time.js'
import { BrokerDestination, CredentialRef } from './destination.js'
import { domainDigestHex, sha256Hex } from './digest.js'
import { BrokerError } from './errors.js'
import { ExecutionEvidence, ExecutionEvidenceV1 } from './evidence.js'
import type { PublicKey, SigningKey } from './keys.js'
import { MAXIMUM_INTEGER, MAXIMUM_SOURCE_RECEIPT_IDS } from './limits.js'
import { Quotas } from './registration.js'
import { type SignerEnvelope, signEnvelope, signerEnvelope, verifyEnvelope } from './signing.js'
import { markVerified, type Verified } from './verified.js'

export const RECEIPT_SCHEMA_V1 = 'chio.broker-execution-receipt.v1'
export const RECEIPT_SCHEMA = 'chio.broker-execution-receipt.v2'
const DOMAIN_V1 = 'chio.broker-execution-receipt-signature.v1'
const DOMAIN = 'chio.broker-execution-receipt-signature.v2'

const byteCount = integer({ min: 0, max: MAXIMUM_INTEGER })

const shared = {
  authorizeEventId: identifier(),
  brokerCapabilityId: identifier(),
  brokerQuotaKeyId: identifier(),
  callerHeadersSha256: digest(),
  callerOptionsSha256: digest(),
  captureEventId: identifier(),
  credentialReferenceHash: digest(),
  credentialVersion: integer({ min: 1, max: MAXIMUM_INTEGER }),
  issuedAtUnixSeconds: UnixSeconds,
  normalizedDestination: BrokerDestination,
  operationId: identifier(),
  outcome: literal('completed'),
  parentCapabilityId: identifier(),
  providerAdapterId: identifier(),
  providerAdapterVersion: integer({ min: 1, max: 0xffff_ffff }),
  quotas: Quotas,
  receiptId: identifier(),
  requestBodyBytes: byteCount,
  requestBodySha256: digest(),
  responseBodyBytes: byteCount,
  sourceReceiptIds: array(identifier(), { max: MAXIMUM_SOURCE_RECEIPT_IDS }),
  subject: publicKeyHex(),
}

export const ExecutionReceiptBodyV1 = object({
  ...shared,
  evidence: ExecutionEvidenceV1,
  schema: literal(RECEIPT_SCHEMA_V1),
})
export type ExecutionReceiptBodyV1 = Infer<typeof ExecutionReceiptBodyV1>

export const ExecutionReceiptBody = object({
  ...shared,
  evidence: ExecutionEvidence,
  schema: literal(RECEIPT_SCHEMA),
})
export type ExecutionReceiptBody = Infer<typeof ExecutionReceiptBody>

export const SignedExecutionReceiptV1 = signerEnvelope(ExecutionReceiptBodyV1)
export type SignedExecutionReceiptV1 = Infer<typeof SignedExecutionReceiptV1>
export const SignedExecutionReceipt = signerEnvelope(ExecutionReceiptBody)
export type SignedExecutionReceipt = Infer<typeof SignedExecutionReceipt>

/** Signs a current receipt with the broker's receipt key. */
export function signReceipt(body: ExecutionReceiptBody, key: SigningKey): SignedExecutionReceipt {
  return { ...signEnvelope(DOMAIN, ExecutionReceiptBody, body, key), signer: key.publicKey }
}

/**
 * Verifies signer pin and signature of a current receipt; the bindings to a request are the
 * business of the execute response.
 * @throws BrokerError `authorization_denied`.
 */
export function verifyReceipt(
  receipt: SignedExecutionReceipt,
  signer: PublicKey,
): Verified<SignedExecutionReceipt> {
  checkSigned(DOMAIN, ExecutionReceiptBody, receipt, signer)
  return markVerified(receipt)
}

/** The same for a receipt of the first version: history only. */
export function verifyHistoricalReceipt(
  receipt: SignedExecutionReceiptV1,
  signer: PublicKey,
): Verified<SignedExecutionReceiptV1> {
  checkSigned(DOMAIN_V1, ExecutionReceiptBodyV1, receipt, signer)
  return markVerified(receipt)
}

function checkSigned<B>(
  domain: string,
  codec: Codec<B>,
  receipt: SignerEnvelope<B>,
  signer: PublicKey,
): void {
  if (receipt.signer !== signer) {
    throw new BrokerError(
      'authorization_denied',
      'receipt signer refused: expected the pinned broker receipt key',
    )
  }
  if (!verifyEnvelope(domain, codec, receipt, signer)) {
    throw new BrokerError(
      'authorization_denied',
      "receipt signature refused: expected the signer's over this body",
    )
  }
}

export function receiptReference(receipt: SignedExecutionReceipt): string {
  return `broker-receipt-sha256-${sha256Hex(encode(SignedExecutionReceipt, receipt))}`
}

export function historicalReceiptReference(receipt: SignedExecutionReceiptV1): string {
  return `broker-receipt-sha256-${sha256Hex(encode(SignedExecutionReceiptV1, receipt))}`
}

/** Names a credential in a receipt without naming it: digest of the whole reference. */
export function credentialReferenceHash(reference: CredentialRef): string {
  return domainDigestHex('chio.broker-credential-reference.v1', encode(CredentialRef, reference))
}

/** The receipt id that this broker gives an attempt. */
export function receiptIdOf(attemptId: string): string {
  return `broker-receipt-${attemptId}`
}
