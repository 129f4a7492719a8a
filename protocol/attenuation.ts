// Owns whether what a delegator says it narrowed is true: of a parent that had it, and a child that has it no more.
// Must never: let a claim stand because the scopes fit without it; what was said is what people read.
// Source: the capability token's attenuation entries; a declared attenuation has to be true.
import type { Attenuation } from './delegation-link.js'
import {
  hasConstraint,
  isCostWithin,
  isCountWithin,
  type MonetaryAmount,
  names,
  type Scope,
  type ToolGrant,
} from './scope.js'

/** What a claim is held against. */
export interface NarrowedToken {
  readonly scope: Scope
  readonly expires_at: number
}

interface Targets {
  /** Grants of the parent that cover the named tool. */
  readonly parents: readonly ToolGrant[]
  /** Grants of the child that reach the named tool or, for a `*`, any. */
  readonly children: readonly ToolGrant[]
}

/** Whether a claim is true of a parent and its child. */
export function isAttenuationTrue(claim: Attenuation, parent: NarrowedToken, child: NarrowedToken): boolean {
  if (claim.type === 'shorten_expiry') {
    return claim.new_expires_at <= parent.expires_at && child.expires_at <= claim.new_expires_at
  }
  const { server_id: server, tool_name: tool } = claim
  const parents = (parent.scope.grants ?? []).filter(
    grant => names(grant.server_id, server) && names(grant.tool_name, tool),
  )
  const children = (child.scope.grants ?? []).filter(
    grant => meets(grant.server_id, server) && meets(grant.tool_name, tool),
  )
  return parents.length > 0 && holds(claim, { parents, children })
}

/** Two names of which either may be `*`. */
function meets(left: string, right: string): boolean {
  return names(left, right) || names(right, left)
}

type ToolClaim = Exclude<Attenuation, { readonly type: 'shorten_expiry' }>

function holds(claim: ToolClaim, { children, parents }: Targets): boolean {
  switch (claim.type) {
    case 'remove_tool':
      return children.length === 0
    case 'remove_operation':
      return (
        parents.some(({ operations }) => operations.includes(claim.operation)) &&
        children.every(({ operations }) => !operations.includes(claim.operation))
      )
    case 'add_constraint':
      return children.every(grant => hasConstraint(grant, claim.constraint))
    case 'reduce_budget':
      return (
        parents.some(({ max_invocations: most }) => isCountWithin(claim.max_invocations, most)) &&
        children.every(({ max_invocations: most }) => isCountWithin(most, claim.max_invocations))
      )
    case 'reduce_cost_per_invocation':
      return isReduced(claim.max_cost_per_invocation, { children, parents }, 'max_cost_per_invocation')
    case 'reduce_total_cost':
      return isReduced(claim.max_total_cost, { children, parents }, 'max_total_cost')
  }
}

function isReduced(
  to: MonetaryAmount,
  { children, parents }: Targets,
  bound: 'max_cost_per_invocation' | 'max_total_cost',
): boolean {
  return (
    parents.some(grant => isCostWithin(to, grant[bound])) &&
    children.every(grant => isCostWithin(grant[bound], to))
  )
}
