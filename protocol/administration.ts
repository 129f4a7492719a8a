// The governed form of an administrator's request: an intent over the whole request, and approval
// tokens over the intent. A peer check alone never grants, provisions, revokes or reconciles.
import {
  type ApprovalMembers,
  GovernedApprovalToken,
  isApprovalSigned,
  signApproval,
} from './approval-token.js'
import { array, decode, digest, encode, type Infer, identifier, literal, object } from './codec.js'
import { domainDigestHex, sha256Hex } from './digest.js'
import { BrokerError } from './errors.js'
import type { PublicKey, SigningKey } from './keys.js'
import { MAXIMUM_ADMINISTRATOR_TOKEN_LIFETIME_SECONDS, MAXIMUM_APPROVALS } from './limits.js'
import { approverSetBytes, eligibleSetDigest, proposalBodyOf, proposalHash } from './threshold-proposal.js'
import { markVerified, type Verified } from './verified.js'

const INTENT_SCHEMA = 'chio.broker-daemon-admin-intent.v1'
const AUTHORIZATION_SCHEMA = 'chio.broker-admin-authorization.v1'
const OPERATION_DOMAIN = 'chio.broker-admin-operation.v1'

export const AdminAuthorization = object({
  approvals: array(GovernedApprovalToken, { min: 1, max: MAXIMUM_APPROVALS }),
  schema: literal(AUTHORIZATION_SCHEMA),
})
export type AdminAuthorization = Infer<typeof AdminAuthorization>

const AdminIntent = object({
  operation: identifier(64),
  payloadDigest: digest(),
  schema: literal(INTENT_SCHEMA),
  tenantScope: identifier(),
})

/** The request that an administrator signs for: operation, its exact payload bytes, tenant. */
export interface AdminRequest {
  readonly operation: string
  readonly payload: Uint8Array
  readonly tenantScope: string
}

/** Digest of an administrator's intent: covers operation, tenant and every byte of the payload. */
export function adminIntentDigest(request: AdminRequest): string {
  const intent = {
    operation: request.operation,
    payloadDigest: sha256Hex(request.payload),
    schema: INTENT_SCHEMA,
    tenantScope: request.tenantScope,
  } as const
  return domainDigestHex(INTENT_SCHEMA, encode(AdminIntent, intent))
}

/** What an administrator's command fixes besides the request itself. */
export interface AdminStatement {
  readonly subject: string
  /** Random, never used twice: one token is consumed with one operation. */
  readonly requestId: string
  readonly issuedAtUnixSeconds: number
  readonly lifetimeSeconds: number
}

/** Hash of the one-administrator threshold proposal: one eligible key, one required. */
function soleProposalHash(intentDigest: string, statement: AdminStatement, key: PublicKey): string {
  const sole = [{ approverId: statement.subject, publicKey: key }]
  const eligible = sha256Hex(approverSetBytes(sole))
  const proposal = proposalBodyOf({
    authorizationCapabilityHash: eligible,
    eligibleSetDigest: eligibleSetDigest(sole),
    governedIntentHash: intentDigest,
    policyHash: eligible,
    proposalCreatedAt: statement.issuedAtUnixSeconds,
    proposalDeadline: statement.issuedAtUnixSeconds + statement.lifetimeSeconds,
    proposalId: `proposal-${statement.requestId}`,
    requestId: statement.requestId,
    required: 1,
    subject: statement.subject,
  })
  return proposalHash(proposal)
}

/** Signs a request as its only administrator (threshold 1 of 1). */
export function signAdminRequest(
  request: AdminRequest,
  statement: AdminStatement,
  key: SigningKey,
): AdminAuthorization {
  const intentDigest = adminIntentDigest(request)
  const members: ApprovalMembers = {
    approver: key.publicKey,
    decision: 'approved',
    expires_at: statement.issuedAtUnixSeconds + statement.lifetimeSeconds,
    governed_intent_hash: intentDigest,
    id: `approval-${statement.requestId}`,
    issued_at: statement.issuedAtUnixSeconds,
    request_id: statement.requestId,
    subject: statement.subject,
    threshold_proposal_hash: soleProposalHash(intentDigest, statement, key.publicKey),
  }
  return { approvals: [signApproval(members, key)], schema: AUTHORIZATION_SCHEMA }
}

/** The verifier's own policy: who may approve, how many, how long a token may live. */
export interface AdminPolicy {
  readonly subject: string
  readonly threshold: number
  readonly keys: readonly PublicKey[]
  readonly maximumTokenLifetimeSeconds: number
}

/** An authorization that passed every check, with the digests under which it is consumed. */
export interface AdminOperation {
  readonly authorization: Verified<AdminAuthorization>
  readonly authorizationDigest: string
  readonly intentDigest: string
  readonly operationId: string
  readonly requestId: string
  readonly approvalIds: readonly string[]
}

/** Digests that name an authorization before it is verified, so that an exact retry can be found after expiry. */
export function nameAdminOperation(authorization: AdminAuthorization, request: AdminRequest) {
  const authorizationDigest = domainDigestHex(AUTHORIZATION_SCHEMA, encode(AdminAuthorization, authorization))
  const intentDigest = adminIntentDigest(request)
  const operationId = domainDigestHex(
    OPERATION_DOMAIN,
    Buffer.from(`${authorizationDigest}\0${intentDigest}`, 'utf8'),
  )
  return { authorizationDigest, intentDigest, operationId }
}

/** Decodes an authorization; canonical bytes only. */
export function decodeAdminAuthorization(bytes: Uint8Array): AdminAuthorization {
  return decode(AdminAuthorization, bytes, 'administrator authorization')
}

/**
 * Verifies an authorization of exactly this request under the verifier's policy. It does not consume it:
 * the caller does, in the transaction that acts.
 * @throws BrokerError `authorization_denied` naming the member.
 */
export function verifyAdminAuthorization(
  authorization: AdminAuthorization,
  request: AdminRequest,
  policy: AdminPolicy,
  nowUnixSeconds: number,
): AdminOperation {
  const names = nameAdminOperation(authorization, request)
  const { approvals } = authorization
  const first = approvals[0] as GovernedApprovalToken
  checkOrder(approvals)
  if (approvals.length !== policy.threshold) deny('approvals', `exactly ${policy.threshold}`)
  for (const token of approvals) {
    checkToken(token, names.intentDigest, policy, nowUnixSeconds)
    if (token.request_id !== first.request_id) deny('request_id', 'one request for all approvals')
    if (token.threshold_proposal_hash !== first.threshold_proposal_hash)
      deny('threshold_proposal_hash', 'one proposal')
  }
  if (new Set(approvals.map(token => token.approver)).size !== approvals.length)
    deny('approver', 'each approver once')
  if (new Set(approvals.map(token => token.id)).size !== approvals.length) deny('id', 'each approval once')
  return {
    authorization: markVerified(authorization),
    ...names,
    requestId: first.request_id,
    approvalIds: approvals.map(token => token.id),
  }
}

function checkOrder(approvals: readonly GovernedApprovalToken[]): void {
  const keys = approvals.map(token => `${token.approver} ${token.id}`)
  if (keys.some((key, index) => index > 0 && key <= (keys[index - 1] as string))) {
    deny('approvals', 'approvals ascending by approver and id')
  }
}

function checkToken(
  token: GovernedApprovalToken,
  intentDigest: string,
  policy: AdminPolicy,
  nowUnixSeconds: number,
): void {
  if (token.subject !== policy.subject) deny('subject', "the policy's subject")
  if (token.governed_intent_hash !== intentDigest) deny('governed_intent_hash', 'exactly this request')
  if (token.decision !== 'approved') deny('decision', 'approved')
  if (!policy.keys.some(trusted => trusted === token.approver))
    deny('approver', 'an administrator key of the configuration')
  const lifetime = token.expires_at - token.issued_at
  const longest = Math.min(policy.maximumTokenLifetimeSeconds, MAXIMUM_ADMINISTRATOR_TOKEN_LIFETIME_SECONDS)
  if (lifetime < 1 || lifetime > longest) deny('expires_at', `a lifetime of 1 to ${longest} s`)
  if (!isApprovalSigned(token)) deny('signature', "the approver's signature over this token")
  if (nowUnixSeconds < token.issued_at || nowUnixSeconds >= token.expires_at)
    deny('time', 'a token that is valid now')
}

function deny(member: string, expected: string): never {
  throw new BrokerError(
    'authorization_denied',
    `administrator approval ${member} refused: expected ${expected}`,
  )
}
