// Owns the proposal that approvers are asked about: which intent, by whom, under which authority, how many of whom have
// to approve, until when; and the set of approvals that was found complete.
// Must never: take the policy's key or the eligible approvers from the proposal.
// Source: `chio.threshold-approval-proposal.v1` in its nested form; the verification order of approval sets.
import {
  array,
  digest,
  encode,
  type Infer,
  identifier,
  integer,
  literal,
  object,
  publicKeyHex,
  signatureHex,
} from './codec.js'
import { type GovernedApprovalToken, isApprovalSigned, signApproval, tokenDigest } from './approval-token.js'
import { domainDigestHex, domainPrefix, toHex } from './digest.js'
import type { ErrorCode } from './error-codes.js'
import { BrokerError } from './errors.js'
import { type PublicKey, type SigningKey, verifySignature } from './keys.js'
import {
  MAXIMUM_ADMINISTRATOR_TOKEN_LIFETIME_SECONDS,
  MAXIMUM_APPROVAL_IDENTIFIER_BYTES,
  MAXIMUM_APPROVAL_TIMEOUT_SECONDS,
  MAXIMUM_APPROVALS,
} from './limits.js'
import { UnixSeconds } from './unix-time.js'
import { markVerified, type Verified } from './verified.js'

const PROPOSAL_SCHEMA = 'chio.threshold-approval-proposal.v1'
const APPROVER_SET_DOMAIN = 'chio.approver-set.v1'
const VERIFIED_SET_SCHEMA = 'chio.verified-approval-set.v1'

/** Who may approve: a name for people and the key that counts. */
export const EligibleApprover = object({
  approverId: identifier(MAXIMUM_APPROVAL_IDENTIFIER_BYTES),
  publicKey: publicKeyHex(),
})
export type EligibleApprover = Infer<typeof EligibleApprover>

/** The name of an approver, or the key itself where nobody is configured for it any more. */
export function approverName(approvers: readonly EligibleApprover[], key: string): string {
  return approvers.find(({ publicKey }) => publicKey === key)?.approverId ?? key
}

/** Canonical bytes of a set of approvers, in the order of their ids. */
export function approverSetBytes(approvers: readonly EligibleApprover[]): Uint8Array {
  const sorted = [...approvers].sort((left, right) => (left.approverId < right.approverId ? -1 : 1))
  return encode(array(EligibleApprover, { min: 1, max: MAXIMUM_APPROVALS }), sorted)
}

/** Names a set of approvers whatever the order in which it is configured. */
export function eligibleSetDigest(approvers: readonly EligibleApprover[]): string {
  return domainDigestHex(APPROVER_SET_DOMAIN, approverSetBytes(approvers))
}

const terms = {
  authorizationCapabilityHash: digest(),
  eligibleSetDigest: digest(),
  governedIntentHash: digest(),
  policyHash: digest(),
  proposalCreatedAt: UnixSeconds,
  proposalDeadline: UnixSeconds,
  proposalId: identifier(MAXIMUM_APPROVAL_IDENTIFIER_BYTES),
  requestId: identifier(),
  required: integer({ min: 1, max: MAXIMUM_APPROVALS }),
  subject: identifier(),
}
export const ThresholdProposalBody = object({ ...terms, schema: literal(PROPOSAL_SCHEMA) })
export type ThresholdProposalBody = Infer<typeof ThresholdProposalBody>
export type ProposalTerms = Omit<ThresholdProposalBody, 'schema'>

/** A proposal as the policy's authority signed it. */
export const ThresholdProposal = object(
  { body: ThresholdProposalBody, policyAuthority: publicKeyHex(), signature: signatureHex() },
  { optional: { algorithm: literal('ed25519') } },
)
export type ThresholdProposal = Infer<typeof ThresholdProposal>

export function proposalBodyOf(proposed: ProposalTerms): ThresholdProposalBody {
  return { ...proposed, schema: PROPOSAL_SCHEMA }
}

/** SHA-256 of exactly the bytes that are signed. */
export function proposalHash(body: ThresholdProposalBody): string {
  return domainDigestHex(PROPOSAL_SCHEMA, encode(ThresholdProposalBody, body))
}

function signedBytes(body: ThresholdProposalBody): Uint8Array {
  return Buffer.concat([domainPrefix(PROPOSAL_SCHEMA), encode(ThresholdProposalBody, body)])
}

export function signProposal(proposed: ProposalTerms, policyAuthority: SigningKey): ThresholdProposal {
  const body = proposalBodyOf(proposed)
  checkWindow(body)
  const signature = toHex(policyAuthority.sign(signedBytes(body)))
  return { body, policyAuthority: policyAuthority.publicKey, signature }
}

/** What whoever verifies a proposal knows of its own. */
/** How one approver answers a proposal. */
export interface Answer {
  readonly id: string
  readonly decision: GovernedApprovalToken['decision']
  readonly nowUnixSeconds: number
}

/** One approver's word on exactly this proposal. It lives as long as the question, and is never older than it. */
export function answerProposal(
  body: ThresholdProposalBody,
  { decision, id, nowUnixSeconds }: Answer,
  approver: SigningKey,
): GovernedApprovalToken {
  const members = {
    approver: approver.publicKey,
    decision,
    expires_at: body.proposalDeadline,
    governed_intent_hash: body.governedIntentHash,
    id,
    issued_at: Math.max(nowUnixSeconds, body.proposalCreatedAt),
    request_id: body.requestId,
    subject: body.subject,
    threshold_proposal_hash: proposalHash(body),
  }
  return signApproval(members, approver)
}

export interface ProposalPins {
  readonly policyAuthority: PublicKey
  readonly approvers: readonly EligibleApprover[]
}

/**
 * Verifies that a proposal is the authority's own, about these approvers. It may have passed its deadline.
 * @throws BrokerError `authorization_denied` naming the member.
 */
export function verifyProposal(proposal: ThresholdProposal, pins: ProposalPins): Verified<ThresholdProposal> {
  const { body } = proposal
  if (proposal.policyAuthority !== pins.policyAuthority) deny('policyAuthority', 'the pinned key')
  if (!verifySignature(pins.policyAuthority, signedBytes(body), proposal.signature)) {
    deny('signature', "the policy authority's signature")
  }
  if (pins.approvers.length === 0 || body.eligibleSetDigest !== eligibleSetDigest(pins.approvers)) {
    deny('eligibleSetDigest', 'the approvers that are configured; they changed since it was made')
  }
  if (body.required > pins.approvers.length) deny('required', `at most ${pins.approvers.length} approvers`)
  checkWindow(body)
  return markVerified(proposal)
}

function checkWindow({ proposalCreatedAt, proposalDeadline }: ThresholdProposalBody): void {
  const lifetime = proposalDeadline - proposalCreatedAt
  if (lifetime < 1 || lifetime > MAXIMUM_APPROVAL_TIMEOUT_SECONDS) {
    deny('proposalDeadline', `a life of 1 to ${MAXIMUM_APPROVAL_TIMEOUT_SECONDS} s`)
  }
}

/**
 * Verifies one approver's word under a proposal, at a moment: what it is about, its time, its approver, its signature.
 * Whether that approver spoke before is asked elsewhere.
 * @throws BrokerError `approval_mismatch` when it is about something else, `approval_expired`, `authorization_denied`.
 */
export function verifyApproval(
  token: GovernedApprovalToken,
  { body }: Verified<ThresholdProposal>,
  approvers: readonly EligibleApprover[],
  nowUnixSeconds: number,
): Verified<GovernedApprovalToken> {
  const about: readonly (readonly [string, boolean])[] = [
    ['threshold_proposal_hash', token.threshold_proposal_hash === proposalHash(body)],
    ['request_id', token.request_id === body.requestId],
    ['governed_intent_hash', token.governed_intent_hash === body.governedIntentHash],
    ['subject', token.subject === body.subject],
  ]
  const other = about.find(([, holds]) => !holds)
  if (other !== undefined) {
    const sentence = `${other[0]} refused: expected an approval of exactly this operation, got one of another`
    refuse('approval_mismatch', `approval ${sentence}`)
  }
  checkTimes(token, body, nowUnixSeconds)
  if (!approvers.some(({ publicKey }) => publicKey === token.approver))
    deny('approver', 'an eligible approver')
  if (!isApprovalSigned(token)) deny('signature', "the approver's signature over this token")
  return markVerified(token)
}

function checkTimes(
  { expires_at, issued_at }: GovernedApprovalToken,
  body: ThresholdProposalBody,
  nowUnixSeconds: number,
): void {
  const lifetime = expires_at - issued_at
  if (lifetime < 1 || lifetime > MAXIMUM_ADMINISTRATOR_TOKEN_LIFETIME_SECONDS) {
    deny('expires_at', `a life of 1 to ${MAXIMUM_ADMINISTRATOR_TOKEN_LIFETIME_SECONDS} s`)
  }
  if (issued_at < body.proposalCreatedAt || expires_at > body.proposalDeadline) {
    deny('times', "times within the proposal's")
  }
  if (nowUnixSeconds < issued_at) deny('issued_at', 'a time that has passed; compare the clocks')
  if (nowUnixSeconds >= expires_at) {
    refuse('approval_expired', 'approval refused: expected one that lives, got one that has expired')
  }
}

const VerifiedApprovalSet = object({
  ...terms,
  canonicalTokenDigests: array(digest(), { min: 1, max: MAXIMUM_APPROVALS }),
  schema: literal(VERIFIED_SET_SCHEMA),
  thresholdProposalHash: digest(),
})

/**
 * Names a complete set of verified approvals, whatever their order.
 * @throws BrokerError `authorization_denied` for too few, a denial, or an approver or an id that comes twice.
 */
export function approvalSetHash(
  { body }: Verified<ThresholdProposal>,
  tokens: readonly Verified<GovernedApprovalToken>[],
): string {
  if (tokens.some(({ decision }) => decision !== 'approved')) deny('decision', 'approvals alone')
  const approvers = new Set(tokens.map(({ approver }) => approver))
  if (approvers.size !== tokens.length) deny('approver', 'each approver once')
  if (new Set(tokens.map(({ id }) => id)).size !== tokens.length) deny('id', 'each approval once')
  if (tokens.length < body.required) deny('set', `${body.required} approvals, got ${tokens.length}`)
  const { schema: _schema, ...proposed } = body
  const set = {
    ...proposed,
    canonicalTokenDigests: tokens.map(tokenDigest).sort(),
    schema: VERIFIED_SET_SCHEMA,
    thresholdProposalHash: proposalHash(body),
  } as const
  return domainDigestHex(VERIFIED_SET_SCHEMA, encode(VerifiedApprovalSet, set))
}

function deny(member: string, expected: string): never {
  refuse('authorization_denied', `approval ${member} refused: expected ${expected}`)
}

function refuse(code: ErrorCode, sentence: string): never {
  throw new BrokerError(code, sentence, { outcome: 'not_started' })
}
