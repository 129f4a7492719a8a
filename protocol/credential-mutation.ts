// What an administrator asks of the broker's credentials and its own revocation list, and what the
// broker answers. The secret travels only here, inside the signed payload, and is never answered.
import {
  array,
  boolean,
  bytes,
  digest,
  type Infer,
  identifier,
  literal,
  nullable,
  object,
  oneOf,
} from './codec.js'
import { CredentialRef } from './destination.js'
import { BrokerError } from './errors.js'
import type { PublicKey, SigningKey } from './keys.js'
import { MAXIMUM_SECRET_BYTES } from './limits.js'
import { CredentialPlacement, checkPlacement } from './placement.js'
import { signEnvelope, signerEnvelope, verifyEnvelope } from './signing.js'
import { Count, PositiveUnixSeconds, UnixMs, UnixSeconds } from './unix-time.js'
import { markVerified, type Verified } from './verified.js'

export const MUTATIONS = ['delete', 'disable', 'provision', 'rotate'] as const
export type Mutation = (typeof MUTATIONS)[number]

/** First version: the wire's; it means bearer placement. */
export const CredentialMutationV1 = object({
  credential: CredentialRef,
  mutation: oneOf(...MUTATIONS),
  schema: literal('chio.broker-credential-mutation.v1'),
  secret: bytes({ max: MAXIMUM_SECRET_BYTES }),
})

/** Current version: the wire's members and the placement (null for disable and delete). */
export const CredentialMutation = object({
  credential: CredentialRef,
  mutation: oneOf(...MUTATIONS),
  placement: nullable(CredentialPlacement),
  schema: literal('chio.broker-credential-mutation.v2'),
  secret: bytes({ max: MAXIMUM_SECRET_BYTES }),
})
export type CredentialMutation = Infer<typeof CredentialMutation>

/** Refuses a mutation whose secret or placement does not fit its kind. Never names the secret's bytes. */
export function checkMutation(mutation: CredentialMutation): void {
  const carries = mutation.mutation === 'provision' || mutation.mutation === 'rotate'
  if (carries !== mutation.secret.length > 0) refuse('secret', carries ? '1 to 65,536 bytes' : 'none')
  if (carries !== (mutation.placement !== null)) refuse('placement', carries ? 'a placement' : 'null')
  if (!mutation.secret.every(byte => byte >= 0x21 && byte <= 0x7e)) {
    refuse('secret', 'visible ASCII only; remove spaces and the final newline')
  }
  if (mutation.placement !== null) checkPlacement(mutation.placement)
}

function refuse(member: string, expected: string): never {
  throw new BrokerError('invalid_request', `credential mutation ${member} refused: expected ${expected}`)
}

export const AdminMutationReceiptBody = object({
  authorizationDigest: digest(),
  completedAtUnixSeconds: UnixSeconds,
  credential: CredentialRef,
  intentDigest: digest(),
  operation: oneOf(...MUTATIONS),
  operationId: digest(),
  outcome: literal('applied'),
  requestId: identifier(),
  schema: literal('chio.broker-admin-mutation-receipt.v1'),
  tenantScope: identifier(),
})
export type AdminMutationReceiptBody = Infer<typeof AdminMutationReceiptBody>

export const SignedAdminMutationReceipt = signerEnvelope(AdminMutationReceiptBody)
export type SignedAdminMutationReceipt = Infer<typeof SignedAdminMutationReceipt>

const MUTATION_RECEIPT_DOMAIN = 'chio.broker-admin-mutation-receipt-signature.v1'

export function signMutationReceipt(
  body: AdminMutationReceiptBody,
  key: SigningKey,
): SignedAdminMutationReceipt {
  return {
    ...signEnvelope(MUTATION_RECEIPT_DOMAIN, AdminMutationReceiptBody, body, key),
    signer: key.publicKey,
  }
}

/** @throws BrokerError `authorization_denied` when it is not the pinned broker's. */
export function verifyMutationReceipt(
  receipt: SignedAdminMutationReceipt,
  signer: PublicKey,
): Verified<SignedAdminMutationReceipt> {
  const signed = verifyEnvelope(MUTATION_RECEIPT_DOMAIN, AdminMutationReceiptBody, receipt, signer)
  if (receipt.signer !== signer || !signed) {
    throw new BrokerError(
      'authorization_denied',
      'mutation receipt refused: expected the pinned broker receipt key',
    )
  }
  return markVerified(receipt)
}

/** Revokes (or asks about) a parent capability in the broker's own list. */
export const CapabilityControlCommand = object({
  capabilityId: identifier(),
  credential: CredentialRef,
  revocationId: identifier(),
  schema: literal('chio.broker-capability-control.v1'),
})
export type CapabilityControlCommand = Infer<typeof CapabilityControlCommand>

export const CapabilityStatusResponse = object({
  authorityCommitIndex: Count,
  capabilityId: identifier(),
  observedAtUnixSeconds: PositiveUnixSeconds,
  revocationId: identifier(),
  revoked: boolean(),
  schema: literal('chio.broker-capability-status.v1'),
})
export type CapabilityStatusResponse = Infer<typeof CapabilityStatusResponse>

export const CredentialListRequest = object({ schema: literal('chio.broker-credential-list-request.v1') })

/** References and placements; never a value, nor anything derived from one. */
export const CredentialList = object({
  credentials: array(
    object({
      credential: CredentialRef,
      enabled: boolean(),
      placement: CredentialPlacement,
      provisionedAtUnixMs: UnixMs,
    }),
    { max: 10_000 },
  ),
  schema: literal('chio.broker-credential-list.v1'),
})
export type CredentialList = Infer<typeof CredentialList>
