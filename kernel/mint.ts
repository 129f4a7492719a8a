// Owns: what a reservation mints: the one-use broker capability for one exact body, and the execution nonce.
// Must never: widen a grant, or give two operations the same capability.
// Source: the broker capability's checks; the operation-bound execution nonce.
import {
  type BrokerCapabilityBody,
  CAPABILITY_SCHEMA,
  type SignedBrokerCapability,
  signCapability,
} from '../protocol/capability.js'
import { domainDigestHex } from '../protocol/digest.js'
import {
  type ExecutionNonce,
  NONCE_SCHEMA,
  type NonceBinding,
  type SignedExecutionNonce,
  signExecutionNonce,
} from '../protocol/execution-nonce.js'
import type { Grant } from '../protocol/grant.js'
import { grantRevocationId } from '../protocol/hold.js'
import type { ReserveRequest } from '../protocol/kernel-rpc.js'
import { placementHeader } from '../protocol/placement.js'
import type { KernelContext } from './kernel-context.js'
import { CAPABILITY_LIFETIME_SECONDS, PROOF_NONCE_TTL_SECONDS } from './policy.js'
import { BROKERED_TOOL } from './log/receipt-subject.js'
import { uuidV7 } from './uuid-v7.js'

/** One capability an operation: whoever knows the operation knows it before it is signed. */
export function capabilityIdOf(operationId: string): string {
  const digest = domainDigestHex('chio.kernel-broker-capability.v1', Buffer.from(operationId, 'utf8'))
  return `broker-capability-${digest}`
}

/** @param nowUnixSeconds the kernel's clock; the not-before reaches back to the proof that was announced. */
export function mintCapability(
  context: KernelContext,
  grant: Grant,
  reserved: { readonly operationId: string; readonly request: ReserveRequest },
  nowUnixSeconds: number,
): SignedBrokerCapability {
  const { operationId, request } = reserved
  const { audience, broker } = context.config
  const capabilityId = capabilityIdOf(operationId)
  const notBefore = Math.min(nowUnixSeconds, request.proofIssuedAtUnixSeconds)
  const body: BrokerCapabilityBody = {
    audience,
    brokerQuotaKeyId: capabilityId,
    capabilityId,
    constraints: constraintsOf(grant, request),
    consumption: 'capture_before_dispatch',
    credential: grant.credential,
    destination: grant.destination,
    expiresAtUnixSeconds: Math.min(grant.expiresAtUnixSeconds, nowUnixSeconds + CAPABILITY_LIFETIME_SECONDS),
    issuedAtUnixSeconds: notBefore,
    issuer: context.keys.issuer.publicKey,
    maximumExecutions: 1,
    notBeforeUnixSeconds: notBefore,
    parentCapabilityId: grant.grantId,
    proof: {
      callerPublicKey: grant.callerPublicKey,
      mode: 'public_key',
      nonceTtlSeconds: PROOF_NONCE_TTL_SECONDS,
    },
    providerAdapterId: broker.adapter.id,
    providerAdapterVersion: broker.adapter.version,
    revocationId: grantRevocationId(grant.grantId),
    schema: CAPABILITY_SCHEMA,
    subject: grant.callerPublicKey,
  }
  return signCapability(body, context.keys.issuer)
}

/** Exactly what was announced: bounds of the request itself, not of the grant. */
function constraintsOf(grant: Grant, request: ReserveRequest): BrokerCapabilityBody['constraints'] {
  return {
    allowedCallerHeaders: grant.allowedCallerHeaders,
    maximumBodyBytes: request.bodyBytes,
    maximumResponseBytes: request.responseLimitBytes,
    maximumTimeoutMs: request.timeoutMs,
    providerOwnedHeaders: [placementHeader(grant.placement)],
    redirectPolicy: 'disabled',
    requiredBodySha256: request.bodySha256,
    requiredPreviewSha256: null,
    streamingAllowed: false,
  }
}

export function mintNonce(
  context: KernelContext,
  reserved: { readonly operationId: string; readonly request: ReserveRequest },
  nowUnixSeconds: number,
): SignedExecutionNonce {
  const { operationId, request } = reserved
  const boundTo: NonceBinding = {
    capability_id: request.grantId,
    parameter_hash: request.requestDigest,
    request_id: request.invocationId,
    subject_id: request.callerPublicKey,
    tool_name: BROKERED_TOOL.name,
    tool_server: BROKERED_TOOL.server,
  }
  return mintBoundNonce(context, { boundTo, operationId }, nowUnixSeconds)
}

/** A nonce of one operation and one request, for as long as the configuration says. */
export function mintBoundNonce(
  context: KernelContext,
  { boundTo, operationId }: { readonly boundTo: NonceBinding; readonly operationId: string },
  nowUnixSeconds: number,
): SignedExecutionNonce {
  const nonce: ExecutionNonce = {
    bound_to: boundTo,
    expires_at: nowUnixSeconds + context.config.nonce.ttlSeconds,
    issued_at: nowUnixSeconds,
    nonce_id: uuidV7(context.clock.unixMs()),
    schema: NONCE_SCHEMA,
  }
  return signExecutionNonce(nonce, operationId, context.keys.kernel)
}
