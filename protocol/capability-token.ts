// Owns the capability token: what an issuer lets one subject do, its two signature paths, its hash. A verified token
// says what was signed and that it lives; revocation, delegation and budgets are asked elsewhere.
// Must never: take a trusted issuer from the token, or accept the older signature for members that it does not cover.
// Source: `chio.capability.v1`; the signature over the canonical members, with `schema` and, for simple tokens, without.
import { AggregateInvocationBudget, checkAggregateShape } from './aggregate-budget.js'
import {
  type Infer,
  array,
  digest,
  encode,
  identifier,
  integer,
  json,
  literal,
  object,
  publicKeyHex,
  signatureHex,
} from './codec.js'
import { Attenuation, DelegationLink } from './delegation-link.js'
import { sha256Hex, toHex } from './digest.js'
import type { ErrorCode } from './error-codes.js'
import { BrokerError } from './errors.js'
import { admitPublicKey, type PublicKey, type SigningKey, verifySignature } from './keys.js'
import {
  MAXIMUM_ATTENUATION_PROOF_BYTES,
  MAXIMUM_CONSTRAINTS_COUNT,
  MAXIMUM_DELEGATION_DEPTH,
} from './limits.js'
import { Scope } from './scope.js'
import { UnixSeconds } from './unix-time.js'
import { markVerified, type Verified } from './verified.js'

export const CAPABILITY_TOKEN_SCHEMA = 'chio.capability.v1'
const WHOLE_SHARE_BASIS_POINTS = 10_000

/** The hashes tie a token to its parent's scope; the witness between them is carried and not believed. */
export const AttenuationProof = object({
  childScopeHash: digest(),
  normalizedSubsetProof: json({ maxBytes: MAXIMUM_ATTENUATION_PROOF_BYTES }),
  parentScopeHash: digest(),
})

const members = {
  expires_at: UnixSeconds,
  id: identifier(),
  issued_at: UnixSeconds,
  issuer: publicKeyHex(),
  scope: Scope,
  subject: publicKeyHex(),
}
const optional = {
  aggregate_invocation_budget: AggregateInvocationBudget,
  attenuation_proof: AttenuationProof,
  budget_share_bps: integer({ min: 0, max: WHOLE_SHARE_BASIS_POINTS }),
  caveats: array(json({ maxBytes: MAXIMUM_ATTENUATION_PROOF_BYTES }), {
    min: 1,
    max: MAXIMUM_CONSTRAINTS_COUNT,
  }),
  delegation_chain: array(DelegationLink, { min: 1, max: MAXIMUM_DELEGATION_DEPTH }),
  schema: literal(CAPABILITY_TOKEN_SCHEMA),
  scope_attenuations: array(Attenuation, { min: 1, max: MAXIMUM_CONSTRAINTS_COUNT }),
}

/** What is signed: all members but the hint and the signature. */
const SignedTokenMembers = object(members, { optional })
export type CapabilityTokenMembers = Omit<Infer<typeof SignedTokenMembers>, 'schema'>

/** As it travels; without `schema` it means version 1. */
export const CapabilityToken = object(
  { ...members, signature: signatureHex() },
  { optional: { ...optional, algorithm: literal('ed25519') } },
)
export type CapabilityToken = Infer<typeof CapabilityToken>

/** Signs a token in the current form, as its issuer. */
export function signCapabilityToken(token: CapabilityTokenMembers, issuer: SigningKey): CapabilityToken {
  if (token.issuer !== issuer.publicKey) {
    throw new RangeError('"issuer" expected the key that signs, got another')
  }
  checkTokenShape(token)
  const current = { ...token, schema: CAPABILITY_TOKEN_SCHEMA } as const
  return { ...current, signature: toHex(issuer.sign(encode(SignedTokenMembers, current))) }
}

/** SHA-256 of the whole canonical token as it was presented: what operations and authorizations commit to. */
export function capabilityTokenHash(token: CapabilityToken): string {
  return sha256Hex(encode(CapabilityToken, token))
}

/** Whether the issuer signed these members, in the current form or, for a simple token, in the older one. */
export function isTokenSigned(token: CapabilityToken, issuer: PublicKey): boolean {
  const { algorithm: _hint, schema: _schema, signature, ...plain } = token
  const current = encode(SignedTokenMembers, { ...plain, schema: CAPABILITY_TOKEN_SCHEMA })
  if (verifySignature(issuer, current, signature)) return true
  return isSimple(token) && verifySignature(issuer, encode(SignedTokenMembers, plain), signature)
}

/** Of members that came later than the older signature, a simple token has none. */
function isSimple(token: CapabilityToken): boolean {
  const later = [
    token.aggregate_invocation_budget,
    token.attenuation_proof,
    token.budget_share_bps,
    token.caveats,
    token.scope_attenuations,
  ]
  return later.every(member => member === undefined) && !hasCumulativeApproval(token.scope)
}

function hasCumulativeApproval({ grants = [] }: Scope): boolean {
  return grants.some(({ constraints = [] }) =>
    constraints.some(({ type }) => type === 'require_cumulative_approval_above'),
  )
}

export type TimeStatus = 'expired' | 'not_yet_valid' | 'valid'

/** Where a moment lies: valid iff issued_at ≤ now < expires_at. */
export function timeStatusOf(
  { expires_at, issued_at }: Pick<CapabilityToken, 'expires_at' | 'issued_at'>,
  nowUnixSeconds: number,
): TimeStatus {
  if (nowUnixSeconds >= expires_at) return 'expired'
  return nowUnixSeconds < issued_at ? 'not_yet_valid' : 'valid'
}

/**
 * Refuses what a token says that admission does not enforce, or that contradicts itself.
 * @throws BrokerError `capability_denied` naming the member.
 */
export function checkTokenShape(token: CapabilityTokenMembers): void {
  if (token.caveats !== undefined) deny('caveats', 'none: this kernel enforces no caveat')
  if (hasCumulativeApproval(token.scope)) deny('scope', 'no cumulative approval: this kernel counts none')
  const isAttenuated = token.scope_attenuations !== undefined || token.budget_share_bps !== undefined
  if (isAttenuated && token.attenuation_proof === undefined) {
    deny('attenuation_proof', 'one beside attenuations or a budget share')
  }
  checkAggregateShape(token)
}

/** What the verifier knows independently: the keys that may issue. */
export interface TokenPins {
  readonly issuers: readonly PublicKey[]
}

/**
 * Verifies a token: its issuer, its signature, its time, its members, in this order. It asks no revocation list and
 * admits no delegation: see delegation.ts.
 * @throws BrokerError `capability_denied` or `capability_expired`.
 */
export function verifyCapabilityToken(
  token: CapabilityToken,
  pins: TokenPins,
  nowUnixSeconds: number,
): Verified<CapabilityToken> {
  const issuer = pins.issuers.find(key => key === token.issuer)
  if (issuer === undefined) deny('issuer', 'a key that this kernel trusts to issue')
  if (!isTokenSigned(token, issuer)) deny('signature', "the issuer's signature over this token")
  admitPublicKey(token.subject, 'capability subject')
  const status = timeStatusOf(token, nowUnixSeconds)
  if (status === 'expired') refuse('capability_expired', 'time', 'an expiry that has not passed')
  if (status === 'not_yet_valid') deny('time', 'an issue that has passed')
  checkTokenShape(token)
  return markVerified(token)
}

function deny(member: string, expected: string): never {
  refuse('capability_denied', member, expected)
}

function refuse(code: ErrorCode, member: string, expected: string): never {
  throw new BrokerError(code, `capability token ${member} refused: expected ${expected}`)
}
