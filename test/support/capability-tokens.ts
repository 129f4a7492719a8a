// Builds capability tokens with one obvious default each: an issuer, a first subject, and whoever gets it from there.
// Must never be reached from anything that ships.
import {
  type CapabilityToken,
  type CapabilityTokenMembers,
  signCapabilityToken,
} from '../../protocol/capability-token.js'
import { type DelegationLink, signDelegationLink } from '../../protocol/delegation-link.js'
import { type SigningKey, signingKey } from '../../protocol/keys.js'
import { type Scope, scopeHash, type ToolGrant } from '../../protocol/scope.js'

export const TOKEN_NOW_UNIX_SECONDS = 1_000
export const issuer = signingKey(new Uint8Array(32).fill(61))
export const root = signingKey(new Uint8Array(32).fill(62))
export const child = signingKey(new Uint8Array(32).fill(63))
export const stranger = signingKey(new Uint8Array(32).fill(64))

export function toolGrant(changes: Partial<ToolGrant> = {}): ToolGrant {
  return { operations: ['invoke'], server_id: 'files', tool_name: 'read', ...changes }
}

export const WIDE: Scope = {
  grants: [
    toolGrant({
      constraints: [{ type: 'path_prefix', value: '/workspace' }],
      max_invocations: 5,
      operations: ['delegate', 'invoke'],
    }),
  ],
}

/** Members of a token of the issuer to the first subject. */
export function tokenMembers(changes: Partial<CapabilityTokenMembers> = {}): CapabilityTokenMembers {
  return {
    expires_at: 2_000,
    id: 'capability-root',
    issued_at: 900,
    issuer: issuer.publicKey,
    scope: WIDE,
    subject: root.publicKey,
    ...changes,
  }
}

export function token(
  changes: Partial<CapabilityTokenMembers> = {},
  by: SigningKey = issuer,
): CapabilityToken {
  return signCapabilityToken(tokenMembers(changes), by)
}

/** A link by which the parent's subject gives a token away. */
export function linkFrom(
  parent: CapabilityToken,
  changes: Partial<Omit<DelegationLink, 'signature'>> = {},
  by: SigningKey = root,
): DelegationLink {
  const members = {
    capability_id: parent.id,
    delegatee: child.publicKey,
    delegator: by.publicKey,
    scope_hash: scopeHash(parent.scope),
    timestamp: 950,
    ...changes,
  }
  return signDelegationLink(members, by)
}

/** The child's token under a parent: narrower by one invocation unless changed. */
export function delegated(
  parent: CapabilityToken,
  changes: Partial<CapabilityTokenMembers> = {},
): CapabilityToken {
  const grants = (parent.scope.grants ?? []).map(grant => ({ ...grant, max_invocations: 2 }))
  return token({
    delegation_chain: [...(parent.delegation_chain ?? []), linkFrom(parent)],
    expires_at: parent.expires_at,
    id: 'capability-child',
    issued_at: 960,
    scope: { grants },
    subject: child.publicKey,
    ...changes,
  })
}
