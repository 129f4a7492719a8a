// Owns the ceiling that a capability, or all that was delegated from it, shares: its document, and the root binding that
// ties a family's ceiling to the one token it began with.
// Must never: count anything. Who admits a token with a ceiling has to count under the owner that is named here.
// Source: the aggregate invocation budget; `chio.aggregate-budget-root.v1` and its commitment.
import {
  type Infer,
  digest,
  encode,
  identifier,
  integer,
  literal,
  object,
  oneOf,
  publicKeyHex,
  signatureHex,
  isSameDocument,
} from './codec.js'
import { domainDigestHex, domainPrefix, toHex } from './digest.js'
import { BrokerError } from './errors.js'
import { admitPublicKey, type SigningKey, verifySignature } from './keys.js'
import { MAXIMUM_INVOCATIONS_COUNT } from './limits.js'
import { type Scope, scopeHash } from './scope.js'
import { UnixSeconds } from './unix-time.js'

const ROOT_SCHEMA = 'chio.aggregate-budget-root.v1'
const invocations = integer({ min: 0, max: MAXIMUM_INVOCATIONS_COUNT })

const RootBody = object({
  max_invocations: invocations,
  root_capability_hash: digest(),
  root_capability_id: identifier(),
  root_expires_at: UnixSeconds,
  root_issuer: publicKeyHex(),
  root_scope_hash: digest(),
  root_subject: publicKeyHex(),
  schema: literal(ROOT_SCHEMA),
})
type RootBody = Infer<typeof RootBody>

/** Signed by the root's issuer over the domain and the body. */
export const AggregateRootBinding = object(
  { body: RootBody, signature: signatureHex() },
  { optional: { algorithm: literal('ed25519') } },
)
export type AggregateRootBinding = Infer<typeof AggregateRootBinding>

export const AggregateInvocationBudget = object(
  { max_invocations: invocations, scope: oneOf('capability', 'delegation_family') },
  { optional: { root_binding: AggregateRootBinding } },
)
export type AggregateInvocationBudget = Infer<typeof AggregateInvocationBudget>

const RootCommitment = object({
  aggregate_scope: literal('delegation_family'),
  max_invocations: invocations,
  root_capability_id: identifier(),
  root_expires_at: UnixSeconds,
  root_issued_at: UnixSeconds,
  root_issuer: publicKeyHex(),
  root_scope_hash: digest(),
  root_subject: publicKeyHex(),
})

/** The token that a family begins with, as far as its binding names it. */
export interface FamilyRoot {
  readonly id: string
  readonly issuer: string
  readonly subject: string
  readonly scope: Scope
  readonly issued_at: number
  readonly expires_at: number
}

function rootBodyOf(root: FamilyRoot, maximumInvocations: number): RootBody {
  const fixed = {
    max_invocations: maximumInvocations,
    root_capability_id: root.id,
    root_expires_at: root.expires_at,
    root_issuer: root.issuer,
    root_scope_hash: scopeHash(root.scope),
    root_subject: root.subject,
  }
  const commitment = {
    ...fixed,
    aggregate_scope: 'delegation_family',
    root_issued_at: root.issued_at,
  } as const
  const hash = domainDigestHex('chio.aggregate-budget-root-commitment.v1', encode(RootCommitment, commitment))
  return { ...fixed, root_capability_hash: hash, schema: ROOT_SCHEMA }
}

/** Binds a family's ceiling to its root, before the root itself is signed. */
export function signFamilyBudget(
  root: FamilyRoot,
  maximumInvocations: number,
  issuer: SigningKey,
): AggregateInvocationBudget {
  if (root.issuer !== issuer.publicKey)
    throw new RangeError('"issuer" expected the key that signs, got another')
  const body = rootBodyOf(root, maximumInvocations)
  const signature = toHex(issuer.sign(signedBytes(body)))
  return {
    max_invocations: maximumInvocations,
    root_binding: { body, signature },
    scope: 'delegation_family',
  }
}

function signedBytes(body: RootBody): Uint8Array {
  return Buffer.concat([domainPrefix(ROOT_SCHEMA), encode(RootBody, body)])
}

/** Under which name all invocations of a family are counted. */
export function familyOwner(binding: AggregateRootBinding): string {
  return domainDigestHex('chio.aggregate-budget-family-key.v1', encode(RootBody, binding.body))
}

/** What may carry a ceiling. */
export interface BudgetedToken extends FamilyRoot {
  readonly aggregate_invocation_budget?: AggregateInvocationBudget | undefined
  readonly delegation_chain?: readonly unknown[] | undefined
}

/**
 * Refuses a ceiling that does not say whose it is: one of a capability binds no root and delegates nothing; one of a
 * family binds its root, which for a token without a chain is the token itself.
 * @throws BrokerError `capability_denied`.
 */
export function checkAggregateShape(token: BudgetedToken): void {
  const budget = token.aggregate_invocation_budget
  if (budget === undefined) return
  const binding = budget.root_binding
  if (budget.scope === 'capability') {
    if (binding !== undefined) deny('root_binding', 'none with a ceiling of one capability')
    if (mayDelegate(token.scope)) deny('scope', 'a family where the token may be delegated')
    if (token.delegation_chain !== undefined) deny('scope', 'a family in a delegated token')
    return
  }
  if (binding === undefined) deny('root_binding', 'one with a ceiling of a family')
  if (binding.body.max_invocations !== budget.max_invocations) deny('max_invocations', "its binding's")
  if (token.delegation_chain === undefined) checkFamilyRoot(binding, token)
}

/** Whether a binding is the one that this root's issuer made of it. @throws BrokerError `capability_denied`. */
export function checkFamilyRoot(binding: AggregateRootBinding, root: FamilyRoot): void {
  const expected = rootBodyOf(root, binding.body.max_invocations)
  if (!isSameDocument(RootBody, expected, binding.body)) deny('root_binding', 'its own root')
  const issuer = admitPublicKey(binding.body.root_issuer, 'root issuer')
  if (!verifySignature(issuer, signedBytes(binding.body), binding.signature)) {
    deny('root_binding', "the root issuer's signature")
  }
}

function mayDelegate({ grants = [], prompt_grants = [], resource_grants = [] }: Scope): boolean {
  return [...grants, ...prompt_grants, ...resource_grants].some(({ operations }) =>
    operations.includes('delegate'),
  )
}

function deny(member: string, expected: string): never {
  throw new BrokerError('capability_denied', `aggregate budget ${member} refused: expected ${expected}`)
}
