// Owns: grants as administrators issue and revoke them, and as callers see them.
// Must never: act on a peer check alone: the approvals over the whole request are consumed with the act.
// Source: the governed administrator authorization; the exact retry that outlives its approvals.
import {
  type AdminAuthorization,
  type AdminOperation,
  type AdminRequest,
  nameAdminOperation,
  verifyAdminAuthorization,
} from '../protocol/administration.js'
import { unixSeconds } from '../protocol/clock.js'
import { encode } from '../protocol/codec.js'
import { BrokerError } from '../protocol/errors.js'
import { checkGrant, Grant } from '../protocol/grant.js'
import { CapabilityReference, GrantReference, type GrantView } from '../protocol/kernel-rpc.js'
import type { AdminOutcome } from './admission-store.js'
import { assertApprovable } from './approvals.js'
import type { Caller, KernelContext } from './kernel-context.js'
import type { StoredGrant } from './operation/operation.js'

type Authorization = AdminAuthorization | null

export function issueGrant(
  context: KernelContext,
  authorization: Authorization,
  grant: Grant,
): Promise<AdminOutcome> {
  const request = { operation: 'issue_grant', payload: encode(Grant, grant) }
  return administer(context, authorization, request, operation => {
    checkGrant(grant)
    if (grant.tenantScope !== context.config.tenantScope) refuse('tenantScope', "this kernel's tenant")
    if (grant.expiresAtUnixSeconds <= unixSeconds(context.clock)) {
      refuse('expiresAtUnixSeconds', 'a time that has not passed')
    }
    assertApprovable(context, grant)
    return context.store.issueGrant(grant, operation)
  })
}

export function revokeGrant(
  context: KernelContext,
  authorization: Authorization,
  reference: { readonly grantId: string },
): Promise<AdminOutcome> {
  const request = { operation: 'revoke_grant', payload: encode(GrantReference, reference) }
  return administer(context, authorization, request, operation =>
    context.store.revokeGrant(reference.grantId, operation),
  )
}

/** A token is revoked by its id alone: it ends with everything that was delegated from it, at the next check. */
export function revokeCapability(
  context: KernelContext,
  authorization: Authorization,
  reference: CapabilityReference,
): Promise<AdminOutcome> {
  const request = { operation: 'revoke_capability', payload: encode(CapabilityReference, reference) }
  return administer(context, authorization, request, operation =>
    context.store.revokeCapability(reference.capabilityId, operation),
  )
}

/** An exact retry is answered from its first time, even when its approvals have expired since. */
export async function administer(
  context: KernelContext,
  authorization: Authorization,
  request: Omit<AdminRequest, 'tenantScope'>,
  act: (operation: AdminOperation) => Promise<AdminOutcome>,
): Promise<AdminOutcome> {
  if (authorization === null) {
    throw new BrokerError(
      'authorization_denied',
      `${request.operation} refused: expected an administrator's authorization over this request, got none`,
    )
  }
  const { administrators, tenantScope } = context.config
  const scoped = { ...request, tenantScope }
  const { authorizationDigest, intentDigest } = nameAdminOperation(authorization, scoped)
  const known = await context.store.findAdminOutcome(authorizationDigest, intentDigest)
  if (known !== undefined) return known
  return act(verifyAdminAuthorization(authorization, scoped, administrators, unixSeconds(context.clock)))
}

/** Another caller's grant is answered as one that does not exist. */
export async function showGrant(context: KernelContext, caller: Caller, grantId: string): Promise<GrantView> {
  const stored = await context.store.findGrant(grantId)
  const key = caller.callerPublicKey
  if (stored !== undefined && (key === null || stored.grant.callerPublicKey === key)) return viewOf(stored)
  throw new BrokerError(
    'grant_unknown',
    'grant refused: expected one of yours that this kernel holds, got none',
  )
}

export async function listGrants(context: KernelContext, caller: Caller, limit: number) {
  const stored = await context.store.listGrants({ callerPublicKey: caller.callerPublicKey, limit })
  return { grants: stored.map(viewOf) }
}

function viewOf({ captured, grant, held, revoked }: StoredGrant): GrantView {
  return { executions: captured, grant, held, revoked }
}

function refuse(member: string, expected: string): never {
  throw new BrokerError('invalid_request', `grant ${member} refused: expected ${expected}`)
}
