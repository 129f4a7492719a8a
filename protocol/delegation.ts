// Owns the admission of a delegated token: its chain, every ancestor as it was stored, and that each step gave away no
// more than it had; and which ids end a token when they are revoked.
// Must never: take a token's word for what its parent was. An ancestor that was never seen here is no ancestor.
// Source: the admission order of a delegated capability token; revocation by own id, then by ancestors.
import { AggregateRootBinding, checkFamilyRoot } from './aggregate-budget.js'
import { isAttenuationTrue } from './attenuation.js'
import { type CapabilityToken, isTokenSigned, type TokenPins } from './capability-token.js'
import { isSameDocument } from './codec.js'
import { chainFault, DelegationLink } from './delegation-link.js'
import { BrokerError } from './errors.js'
import { isScopeWithin, scopeHash } from './scope.js'
import { markVerified, type Verified } from './verified.js'

/** The ancestor that was stored when it was admitted itself, or undefined. */
export type SnapshotOf = (capabilityId: string) => CapabilityToken | undefined

/**
 * Follows a verified token's chain to its root through stored ancestors. A token without a chain passes; with a proof of
 * attenuation it needs the scope of the trust root, which no token can name for itself.
 * @throws BrokerError `capability_denied` naming the link and what it was held against.
 */
export function admitDelegation(
  token: Verified<CapabilityToken>,
  snapshotOf: SnapshotOf,
  pins: TokenPins & { readonly trustRootScopeHash?: string },
): Verified<CapabilityToken> {
  const chain = token.delegation_chain ?? []
  const fault = chainFault(chain)
  if (fault !== undefined) deny('chain', fault)
  const last = chain.at(-1)
  if (last !== undefined && last.delegatee !== token.subject)
    deny('chain', "the token's subject as last delegatee")
  const ancestors = chain.map((link, depth) => ancestorOf(link, chain.slice(0, depth), { pins, snapshotOf }))
  for (const [index, link] of chain.entries()) {
    const parent = ancestors[index] as CapabilityToken
    checkStep(link, parent, ancestors[index + 1] ?? token)
  }
  checkAttenuationProof(token, ancestors, pins.trustRootScopeHash)
  checkFamily(token, ancestors)
  return markVerified(token)
}

/** A stored ancestor with exactly the chain that leads to it here. */
function ancestorOf(
  link: DelegationLink,
  before: readonly DelegationLink[],
  { pins, snapshotOf }: { readonly pins: TokenPins; readonly snapshotOf: SnapshotOf },
): CapabilityToken {
  const name = `ancestor ${link.capability_id}`
  const ancestor = snapshotOf(link.capability_id)
  if (ancestor?.id !== link.capability_id) deny(name, 'a token that was admitted here')
  const issuer = pins.issuers.find(key => key === ancestor.issuer)
  if (issuer === undefined || !isTokenSigned(ancestor, issuer))
    deny(name, 'the signature of a trusted issuer')
  const own = ancestor.delegation_chain ?? []
  const isSameChain =
    own.length === before.length &&
    own.every((step, index) => isSameDocument(DelegationLink, step, before[index] as DelegationLink))
  if (!isSameChain) deny(name, 'the chain by which it was admitted')
  return ancestor
}

/** One step: who gave, when, and no more than there was. */
function checkStep(link: DelegationLink, parent: CapabilityToken, child: CapabilityToken): void {
  const step = `step from ${link.capability_id}`
  if (link.cumulative_approval !== undefined) deny(step, 'no cumulative approval: this kernel counts none')
  if (link.delegator !== parent.subject) deny(step, "the parent's subject as delegator")
  if (link.delegatee !== child.subject) deny(step, "the child's subject as delegatee")
  if (link.timestamp < parent.issued_at || link.timestamp >= parent.expires_at) {
    deny(step, "a time within the parent's life")
  }
  if (child.issued_at < link.timestamp || child.issued_at < parent.issued_at) {
    deny(step, 'a child that was issued after it')
  }
  if (child.expires_at > parent.expires_at) deny(step, 'a child that ends no later than its parent')
  if (!isScopeWithin(child.scope, parent.scope)) deny(step, "a scope within the parent's")
  if (link.scope_hash !== undefined && link.scope_hash !== scopeHash(parent.scope)) {
    deny(step, "the hash of the parent's scope")
  }
  checkClaims(step, link, { parent, child })
}

function checkClaims(
  step: string,
  { attenuations = [] }: DelegationLink,
  { child, parent }: { readonly parent: CapabilityToken; readonly child: CapabilityToken },
): void {
  const untrue = attenuations.find(claim => !isAttenuationTrue(claim, parent, child))
  if (untrue !== undefined) deny(step, `attenuations that are true, got an untrue ${untrue.type}`)
  const own = (child.scope_attenuations ?? []).find(claim => !isAttenuationTrue(claim, parent, child))
  if (own !== undefined) deny(step, `scope attenuations that are true, got an untrue ${own.type}`)
}

/** The proof's hashes name the parent and the child; between them stands what was compared above, not its witness. */
function checkAttenuationProof(
  token: CapabilityToken,
  ancestors: readonly CapabilityToken[],
  trustRootScopeHash: string | undefined,
): void {
  const proof = token.attenuation_proof
  if (proof === undefined) return
  if (proof.childScopeHash !== scopeHash(token.scope))
    deny('attenuation proof', "the hash of the token's scope")
  const links = token.delegation_chain ?? []
  if (links.some(link => link.scope_hash === undefined)) {
    deny('attenuation proof', 'the scope hash in every link')
  }
  const parent = ancestors.at(-1)
  const expected = parent === undefined ? trustRootScopeHash : scopeHash(parent.scope)
  if (expected === undefined || proof.parentScopeHash !== expected) {
    deny('attenuation proof', "the hash of the parent's scope")
  }
}

/** A family keeps its root's binding and its ceiling, byte for byte, and delegates one step. */
function checkFamily(token: CapabilityToken, ancestors: readonly CapabilityToken[]): void {
  const [root] = ancestors
  if (root === undefined) return
  const binding = token.aggregate_invocation_budget?.root_binding
  const rootBinding = root.aggregate_invocation_budget?.root_binding
  if (binding === undefined && rootBinding === undefined) return
  const isKept =
    binding !== undefined &&
    rootBinding !== undefined &&
    isSameDocument(AggregateRootBinding, binding, rootBinding)
  if (!isKept) deny('aggregate budget', "the root's binding, unchanged")
  if (ancestors.length > 1) deny('aggregate budget', 'a family of one step')
  checkFamilyRoot(binding, root)
}

/** The ids whose revocation ends a token: its own, then its ancestors'. */
export function revocableIdsOf(token: CapabilityToken): readonly string[] {
  return [token.id, ...(token.delegation_chain ?? []).map(link => link.capability_id)]
}

/** @throws BrokerError `capability_revoked` naming the token or the ancestor. */
export function assertTokenUnrevoked(token: CapabilityToken, isRevoked: (id: string) => boolean): void {
  const [own, ...ancestors] = revocableIdsOf(token)
  if (isRevoked(own as string)) revoked(`capability has been revoked: ${own}`)
  const ancestor = ancestors.find(isRevoked)
  if (ancestor !== undefined) revoked(`delegation chain revoked at ancestor ${ancestor}`)
}

function revoked(sentence: string): never {
  throw new BrokerError('capability_revoked', sentence)
}

function deny(what: string, expected: string): never {
  throw new BrokerError('capability_denied', `delegation ${what} refused: expected ${expected}`)
}
