// Owns: the first step of an operation: who asks, under which grant, for which exact request.
// Must never: authorize anything. A reservation holds an execution and a nonce; only a live start spends them.
// Source: the admission operation's identity; the grant's bounds.
import { bindOperation, type OperationBinding } from '../protocol/admission-operation.js'
import { BROKERED_REQUIREMENTS } from '../protocol/admission-requirements.js'
import { unixSeconds } from '../protocol/clock.js'
import { encode } from '../protocol/codec.js'
import { domainDigestHex } from '../protocol/digest.js'
import { BrokerError } from '../protocol/errors.js'
import { verifyNonce } from '../protocol/execution-nonce.js'
import { authorityMetadataDigest, revocationAuthorityDomain } from '../protocol/hold.js'
import { CommittedRequest, type ReserveRequest, type ReserveResult } from '../protocol/kernel-rpc.js'
import { type AttemptIds, canonicalQuotas, deriveAttemptIds } from '../protocol/registration.js'
import type { ReserveCommand } from './admission-store.js'
import { proposalPins, proposeApproval } from './approvals.js'
import type { Caller, KernelContext } from './kernel-context.js'
import { assertGrantLive } from './liveness.js'
import { capabilityIdOf, mintCapability, mintNonce } from './mint.js'
import { sameOperation } from './operation/move-rules.js'
import {
  type AdmissionOperation,
  type Announcement,
  announcementOf,
  type StoredGrant,
} from './operation/operation.js'
import { POLICY_HASH, PROOF_NONCE_TTL_SECONDS } from './policy.js'

/** @throws BrokerError with the grant's, the binding's or the nonce's code; nothing was changed then. */
export async function reserve(
  context: KernelContext,
  caller: Caller,
  request: ReserveRequest,
): Promise<AdmissionOperation> {
  if (caller.callerPublicKey === null || caller.callerPublicKey !== request.callerPublicKey) {
    deny('callerPublicKey', "the caller key that is configured for this connection's uid")
  }
  const grant = await ownGrant(context, request)
  const binding = bind(context, grant, request)
  const { operation_id: operationId, request_namespace_digest, request_id } = binding
  const known = await context.store.findRequest(request_namespace_digest, request_id)
  if (known !== undefined) return goOn(context, grant, sameOperation(known, operationId), request)
  const nowUnixSeconds = unixSeconds(context.clock)
  assertGrantLive(grant, nowUnixSeconds)
  checkBounds(grant, request)
  checkProofTime(request, context.config.clockSkewSeconds, nowUnixSeconds)
  const announcement = { binding, ids: idsOf(operationId, request), request }
  if (grant.grant.requiredApprovals > 0) {
    const proposal = proposeApproval(context, grant, announcement, nowUnixSeconds)
    return context.store.announce({ announcement, proposal })
  }
  return context.store.reserve(minted(context, grant, announcement, nowUnixSeconds))
}

/** A request that is known: an approved one is answered now, with the proof's new time; every other as it stands. */
async function goOn(
  context: KernelContext,
  grant: StoredGrant,
  known: AdmissionOperation,
  request: ReserveRequest,
): Promise<AdmissionOperation> {
  if (known.state !== 'approval_reserved') return known
  const nowUnixSeconds = unixSeconds(context.clock)
  assertGrantLive(grant, nowUnixSeconds)
  checkProofTime(request, context.config.clockSkewSeconds, nowUnixSeconds)
  const command = minted(context, grant, { ...announcementOf(known), request }, nowUnixSeconds)
  return context.store.answerApproved({ ...command, pins: proposalPins(context) })
}

function idsOf(operationId: string, request: ReserveRequest): AttemptIds {
  const { invocationId, proofNonce, requestDigest } = request
  const brokerCapabilityId = capabilityIdOf(operationId)
  return deriveAttemptIds({ brokerCapabilityId, invocationId, proofNonce, requestDigest }, operationId)
}

/** The answer to an announced request, with its nonce as the store takes it. */
function minted(
  context: KernelContext,
  grant: StoredGrant,
  announcement: Announcement,
  nowUnixSeconds: number,
): ReserveCommand {
  const { operation_id: operationId } = announcement.binding
  const answer = mintAnswer(context, grant, { operationId, request: announcement.request }, nowUnixSeconds)
  const issuer = context.keys.kernel.publicKey
  const { executionNonce } = answer
  const boundTo = executionNonce.nonce.bound_to
  const nonce = verifyNonce(executionNonce, { boundTo, issuer, nowUnixSeconds, operationId })
  const reservation = { ...announcement, answer }
  return { issuer, nonce, nonceCapacity: context.config.nonce.capacity, reservation }
}

/** Another caller's grant is answered as one that does not exist. */
async function ownGrant(context: KernelContext, request: ReserveRequest): Promise<StoredGrant> {
  const stored = await context.store.findGrant(request.grantId)
  const isOwn =
    stored?.grant.callerPublicKey === request.callerPublicKey &&
    stored.grant.tenantScope === context.config.tenantScope
  if (stored !== undefined && isOwn) return stored
  throw new BrokerError(
    'grant_unknown',
    'grant refused: expected one of yours that this kernel holds, got none',
  )
}

/** When the proof is signed is no part of what is committed to: people may take longer than a proof lives. */
function bind(context: KernelContext, stored: StoredGrant, request: ReserveRequest): OperationBinding {
  const { proofIssuedAtUnixSeconds: _issued, ...committed } = request
  return bindOperation({
    authorizationCapabilityHash: stored.digest,
    capabilityId: stored.grant.grantId,
    coordinatorAuthorityId: context.config.authorityId,
    effectClass: 'side_effecting',
    kind: 'tool_dispatch',
    policyHash: POLICY_HASH,
    request: {
      action_parameter_hash: request.requestDigest,
      immutable_request_hash: domainDigestHex('chio.kernel-reserve.v1', encode(CommittedRequest, committed)),
      participant_requirements: { ...BROKERED_REQUIREMENTS, approval: stored.grant.requiredApprovals > 0 },
    },
    requestId: request.invocationId,
    tenantId: context.config.tenantScope,
  })
}

function checkBounds({ grant }: StoredGrant, request: ReserveRequest): void {
  const bounds: readonly (readonly [string, number, number])[] = [
    ['bodyBytes', request.bodyBytes, grant.maximumBodyBytes],
    ['responseLimitBytes', request.responseLimitBytes, grant.maximumResponseBytes],
    ['timeoutMs', request.timeoutMs, grant.maximumTimeoutMs],
  ]
  const exceeded = bounds.find(([, asked, granted]) => asked > granted)
  if (exceeded === undefined) return
  const [member, asked, granted] = exceeded
  throw new BrokerError(
    'grant_exceeded',
    `${member} refused: expected at most the ${granted} of grant ${grant.grantId}, got ${asked}`,
  )
}

function checkProofTime(request: ReserveRequest, skewSeconds: number, nowUnixSeconds: number): void {
  const { proofIssuedAtUnixSeconds } = request
  if (proofIssuedAtUnixSeconds > nowUnixSeconds + skewSeconds) {
    deny(
      'proofIssuedAtUnixSeconds',
      'an issue that is not in the future, got one that is; compare the clocks',
    )
  }
  if (proofIssuedAtUnixSeconds < nowUnixSeconds - Math.min(skewSeconds, PROOF_NONCE_TTL_SECONDS)) {
    deny('proofIssuedAtUnixSeconds', 'an issue within the clock skew, got an older one; make a fresh proof')
  }
  if (!/^[A-Za-z0-9_-]+$/.test(request.proofNonce)) {
    throw new BrokerError(
      'invalid_request',
      'proofNonce refused: expected letters, digits, _ and -, got others',
    )
  }
}

function mintAnswer(
  context: KernelContext,
  { grant }: StoredGrant,
  reserved: { readonly operationId: string; readonly request: ReserveRequest },
  nowUnixSeconds: number,
): ReserveResult {
  const authority = context.keys.authority.publicKey
  const { operationId } = reserved
  return {
    authorityMetadataDigest: authorityMetadataDigest(authority),
    capability: mintCapability(context, grant, reserved, nowUnixSeconds),
    executionNonce: mintNonce(context, reserved, nowUnixSeconds),
    operationId,
    quotas: canonicalQuotas([
      { keyId: capabilityIdOf(operationId), maximumExecutions: 1 },
      { keyId: grant.grantId, maximumExecutions: grant.maximumExecutions },
    ]),
    revocationAuthorityDomain: revocationAuthorityDomain(authority),
  }
}

function deny(member: string, expected: string): never {
  throw new BrokerError('authorization_denied', `reserve ${member} refused: expected ${expected}`)
}
