// Owns an approver's signed word on one intent: its document, its signature, its digest. The signed bytes carry no
// domain, so the token's own members have to say what it is for.
// Must never: count, or say of whom an approval is worth anything: that is a policy's or a proposal's matter.
// Source: the governed approval token of the wire; snake_case is the wire's.
import {
  encode,
  type Infer,
  identifier,
  digest,
  literal,
  object,
  oneOf,
  publicKeyHex,
  signatureHex,
} from './codec.js'
import { domainDigestHex, toHex } from './digest.js'
import { BrokerError } from './errors.js'
import { admitPublicKey, type PublicKey, type SigningKey, verifySignature } from './keys.js'
import { MAXIMUM_ADMINISTRATOR_TOKEN_LIFETIME_SECONDS, MAXIMUM_APPROVAL_IDENTIFIER_BYTES } from './limits.js'
import { UnixSeconds } from './unix-time.js'
import { markVerified, type Verified } from './verified.js'

const spoken = {
  approver: publicKeyHex(),
  decision: oneOf('approved', 'denied'),
  expires_at: UnixSeconds,
  governed_intent_hash: digest(),
  id: identifier(MAXIMUM_APPROVAL_IDENTIFIER_BYTES),
  issued_at: UnixSeconds,
  request_id: identifier(),
  subject: identifier(),
}
const signed = { ...spoken, threshold_proposal_hash: digest() }
const SignedTokenMembers = object(signed)
export type ApprovalMembers = Infer<typeof SignedTokenMembers>

/** One approver's word under a threshold proposal. */
export const GovernedApprovalToken = object(
  { ...signed, signature: signatureHex() },
  { optional: { algorithm: literal('ed25519') } },
)
export type GovernedApprovalToken = Infer<typeof GovernedApprovalToken>

/** Signs an approval, or its refusal, as its approver. */
export function signApproval(members: ApprovalMembers, approver: SigningKey): GovernedApprovalToken {
  if (members.approver !== approver.publicKey)
    throw new RangeError('"approver" expected the key that signs, got another')
  return { ...members, signature: toHex(approver.sign(encode(SignedTokenMembers, members))) }
}

/** Whether the approver that a token names signed it. Says nothing of who that is. */
export function isApprovalSigned(token: GovernedApprovalToken): boolean {
  const { algorithm: _hint, signature, ...members } = token
  const approver = admitPublicKey(token.approver, 'approver key')
  return verifySignature(approver, encode(SignedTokenMembers, members), signature)
}

const SignedSoleMembers = object(spoken, { optional: { threshold_proposal_hash: digest() } })

/** An approval where one is enough; it may name no proposal. */
export const SoleApprovalToken = object(
  { ...spoken, signature: signatureHex() },
  { optional: { algorithm: literal('ed25519'), threshold_proposal_hash: digest() } },
)
export type SoleApprovalToken = Infer<typeof SoleApprovalToken>

/** What one approval is about, and whose word counts. */
export interface SoleApprovalPins {
  readonly requestId: string
  readonly intentHash: string
  readonly subject: string
  readonly approvers: readonly PublicKey[]
}

/**
 * Verifies the one approval of a request: its time, what it is about, its decision, its approver and signature, its life,
 * in this order. Whoever acts on it has to see that it acts once.
 * @throws BrokerError `approval_expired`, `approval_mismatch` or `authorization_denied`.
 */
export function verifySoleApproval(
  token: SoleApprovalToken,
  pins: SoleApprovalPins,
  nowUnixSeconds: number,
): Verified<SoleApprovalToken> {
  if (nowUnixSeconds < token.issued_at) deny('issued_at', 'a time that has passed; compare the clocks')
  if (nowUnixSeconds >= token.expires_at)
    refuse('approval_expired', 'one that lives, got one that has expired')
  const isAbout =
    token.request_id === pins.requestId &&
    token.governed_intent_hash === pins.intentHash &&
    token.subject === pins.subject
  if (!isAbout) refuse('approval_mismatch', 'one of exactly this request, got one of another')
  if (token.decision !== 'approved') deny('decision', 'approved')
  const { algorithm: _hint, signature, ...members } = token
  const approver = pins.approvers.find(key => key === token.approver)
  if (approver === undefined) deny('approver', 'a trusted approver')
  if (!verifySignature(approver, encode(SignedSoleMembers, members), signature)) {
    deny('signature', "the approver's signature over this token")
  }
  const lifetime = token.expires_at - token.issued_at
  if (lifetime < 1 || lifetime > MAXIMUM_ADMINISTRATOR_TOKEN_LIFETIME_SECONDS) {
    deny('expires_at', `a life of 1 to ${MAXIMUM_ADMINISTRATOR_TOKEN_LIFETIME_SECONDS} s`)
  }
  return markVerified(token)
}

function deny(member: string, expected: string): never {
  throw new BrokerError('authorization_denied', `approval ${member} refused: expected ${expected}`)
}

function refuse(code: 'approval_expired' | 'approval_mismatch', expected: string): never {
  throw new BrokerError(code, `approval refused: expected ${expected}`)
}

/** SHA-256 over a whole token: its name in append-only records. */
export function tokenDigest(token: GovernedApprovalToken): string {
  return domainDigestHex('chio.governed-approval-token.v1', encode(GovernedApprovalToken, token))
}
