// Owns what a capability token authorizes: grants of tools, resources and prompts, when one scope lies within
// another, and which grant a call is made under.
// Must never: allow by a member that is absent in the child where the parent bounds it.
// Source: the capability token's scope, subset rule and choice of grant.
import {
  boolean,
  type Infer,
  array,
  encode,
  identifier,
  integer,
  isSameDocument,
  object,
  oneOf,
} from './codec.js'
import { Constraint, type ConstraintType } from './constraint.js'
import { isKept } from './constraint-judge.js'
import { sha256Hex } from './digest.js'
import type { JsonValue } from './json.js'
import {
  MAXIMUM_CONSTRAINTS_COUNT,
  MAXIMUM_CURRENCY_BYTES,
  MAXIMUM_INTEGER,
  MAXIMUM_INVOCATIONS_COUNT,
  MAXIMUM_SCOPE_GRANTS_COUNT,
} from './limits.js'

export const GRANT_OPERATIONS = ['delegate', 'get', 'invoke', 'read', 'read_result', 'subscribe'] as const
export type GrantOperation = (typeof GRANT_OPERATIONS)[number]
const operations = array(oneOf(...GRANT_OPERATIONS), { min: 1, max: GRANT_OPERATIONS.length })

/** Minor units of a currency. */
export const MonetaryAmount = object({
  currency: identifier(MAXIMUM_CURRENCY_BYTES),
  units: integer({ min: 0, max: MAXIMUM_INTEGER }),
})
export type MonetaryAmount = Infer<typeof MonetaryAmount>

/** Lists that would be empty are left out, as the wire does: an empty one is another spelling and refused. */
export const ToolGrant = object(
  { operations, server_id: identifier(), tool_name: identifier() },
  {
    optional: {
      constraints: array(Constraint, { min: 1, max: MAXIMUM_CONSTRAINTS_COUNT }),
      dpop_required: boolean(),
      max_cost_per_invocation: MonetaryAmount,
      max_invocations: integer({ min: 0, max: MAXIMUM_INVOCATIONS_COUNT }),
      max_total_cost: MonetaryAmount,
    },
  },
)
export type ToolGrant = Infer<typeof ToolGrant>

export const ResourceGrant = object({ operations, uri_pattern: identifier() })
export const PromptGrant = object({ operations, prompt_name: identifier() })

const grantsOf = { min: 1, max: MAXIMUM_SCOPE_GRANTS_COUNT } as const
export const Scope = object(
  {},
  {
    optional: {
      grants: array(ToolGrant, grantsOf),
      prompt_grants: array(PromptGrant, grantsOf),
      resource_grants: array(ResourceGrant, grantsOf),
    },
  },
)
export type Scope = Infer<typeof Scope>

/** SHA-256 of the canonical scope: what delegation links and attenuation proofs name. */
export function scopeHash(scope: Scope): string {
  return sha256Hex(encode(Scope, scope))
}

/** Whether every grant of the child is covered by one of the parent. */
export function isScopeWithin(child: Scope, parent: Scope): boolean {
  const tools = (child.grants ?? []).every(grant =>
    (parent.grants ?? []).some(of => isGrantWithin(grant, of)),
  )
  const resources = (child.resource_grants ?? []).every(grant =>
    (parent.resource_grants ?? []).some(
      of => isPatternWithin(grant.uri_pattern, of.uri_pattern) && mayAll(grant.operations, of.operations),
    ),
  )
  const prompts = (child.prompt_grants ?? []).every(grant =>
    (parent.prompt_grants ?? []).some(
      of => isPatternWithin(grant.prompt_name, of.prompt_name) && mayAll(grant.operations, of.operations),
    ),
  )
  return tools && resources && prompts
}

/** Whether one tool grant allows nothing that another does not. */
export function isGrantWithin(child: ToolGrant, parent: ToolGrant): boolean {
  return (
    names(parent.server_id, child.server_id) &&
    names(parent.tool_name, child.tool_name) &&
    mayAll(child.operations, parent.operations) &&
    isCountWithin(child.max_invocations, parent.max_invocations) &&
    (parent.constraints ?? []).every(constraint => hasConstraint(child, constraint)) &&
    isCostWithin(child.max_cost_per_invocation, parent.max_cost_per_invocation) &&
    isCostWithin(child.max_total_cost, parent.max_total_cost) &&
    (parent.dpop_required !== true || child.dpop_required === true)
  )
}

export function hasConstraint({ constraints = [] }: ToolGrant, constraint: Constraint): boolean {
  return constraints.some(own => isSameDocument(Constraint, own, constraint))
}

/** Where the parent bounds it, the child has to. */
export function isCountWithin(child: number | undefined, parent: number | undefined): boolean {
  return parent === undefined || (child !== undefined && child <= parent)
}

export function isCostWithin(child: MonetaryAmount | undefined, parent: MonetaryAmount | undefined): boolean {
  if (parent === undefined) return true
  return child !== undefined && child.currency === parent.currency && child.units <= parent.units
}

function mayAll(asked: readonly GrantOperation[], granted: readonly GrantOperation[]): boolean {
  return asked.every(operation => granted.includes(operation))
}

/** `*` in a grant names every server or every tool. */
export function names(pattern: string, name: string): boolean {
  return pattern === '*' || pattern === name
}

/** A final `*` names everything that begins so. */
function isPatternWithin(child: string, parent: string): boolean {
  return parent.endsWith('*') ? child.startsWith(parent.slice(0, -1)) : child === parent
}

/** One call, as grants see it. */
export interface ScopedCall {
  readonly serverId: string
  readonly toolName: string
  readonly parameters: JsonValue
}

export interface ChosenGrant {
  readonly grant: ToolGrant
  /** Its place in the token: what budgets are counted under. */
  readonly index: number
}

/**
 * Every grant that covers a call, the most exact first: that is the one it is made under, while it has budget.
 * @param asked constraints that whoever asks keeps in another way than by the arguments; none unless said.
 */
export function coveringGrants(
  scope: Scope,
  call: ScopedCall,
  asked: readonly ConstraintType[] = [],
): readonly ChosenGrant[] {
  const covering = (scope.grants ?? [])
    .map((grant, index) => ({ grant, index }))
    .filter(({ grant }) => covers(grant, call, asked))
  return covering.sort((left, right) => compareExactness(left, right, call))
}

function covers(
  grant: ToolGrant,
  { parameters, serverId, toolName }: ScopedCall,
  asked: readonly ConstraintType[],
): boolean {
  return (
    names(grant.server_id, serverId) &&
    names(grant.tool_name, toolName) &&
    grant.operations.includes('invoke') &&
    (grant.constraints ?? []).every(
      constraint => asked.includes(constraint.type) || isKept(constraint, parameters),
    )
  )
}

function compareExactness(left: ChosenGrant, right: ChosenGrant, call: ScopedCall): number {
  const [of, other] = [exactnessOf(left, call), exactnessOf(right, call)]
  const at = of.findIndex((value, index) => value !== other[index])
  return at < 0 ? left.index - right.index : (other[at] as number) - (of[at] as number)
}

function exactnessOf({ grant }: ChosenGrant, { serverId, toolName }: ScopedCall): readonly number[] {
  const { constraints = [], server_id, tool_name } = grant
  return [Number(server_id === serverId), Number(tool_name === toolName), constraints.length]
}
