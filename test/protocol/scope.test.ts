// When one scope lies within another, which grant a call is made under, and that a missing bound is no bound.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Constraint } from '../../protocol/constraint.js'
import {
  coveringGrants,
  type GrantOperation,
  isGrantWithin,
  isScopeWithin,
  type ToolGrant,
} from '../../protocol/scope.js'
import { toolGrant } from '../support/capability-tokens.js'
import { fullCount } from '../support/counts.js'

const cost = (units: number, currency = 'EUR') => ({ currency, units })

describe('a tool grant lies within another', () => {
  test.each<[string, Partial<ToolGrant>, Partial<ToolGrant>]>([
    ['that equals it', {}, {}],
    ['of every server and tool', {}, { server_id: '*', tool_name: '*' }],
    ['with more operations', {}, { operations: ['invoke', 'read_result'] }],
    ['that counts higher', { max_invocations: 2 }, { max_invocations: 2 }],
    ['that counts nothing', { max_invocations: 2 }, {}],
    ['with fewer constraints', { constraints: [{ type: 'max_length', value: 1 }] }, {}],
    ['that costs as much', { max_total_cost: cost(5) }, { max_total_cost: cost(5) }],
    ['that asks for proof as well', { dpop_required: true }, { dpop_required: true }],
    ['that says it asks for no proof', {}, { dpop_required: false }],
  ])('%s', (_what, narrow, wide) => {
    expect(isGrantWithin(toolGrant(narrow), toolGrant(wide))).toBe(true)
  })
})

describe('a tool grant does not lie within one', () => {
  test.each<[string, Partial<ToolGrant>, Partial<ToolGrant>]>([
    ['of another server', { server_id: 'mail' }, {}],
    ['of one tool, naming all', { tool_name: '*' }, {}],
    ['with fewer operations', { operations: ['invoke', 'delegate'] }, {}],
    ['that counts lower', { max_invocations: 3 }, { max_invocations: 2 }],
    ['that counts where it does not', {}, { max_invocations: 2 }],
    ['with a constraint that it lacks', {}, { constraints: [{ type: 'max_length', value: 1 }] }],
    [
      'with a constraint that it loosens',
      { constraints: [{ type: 'max_length', value: 2 }] },
      { constraints: [{ type: 'max_length', value: 1 }] },
    ],
    ['that costs less', { max_total_cost: cost(6) }, { max_total_cost: cost(5) }],
    ['of another currency', { max_total_cost: cost(5, 'USD') }, { max_total_cost: cost(5) }],
    ['that costs where it does not', {}, { max_cost_per_invocation: cost(5) }],
    ['that asks for proof', { dpop_required: false }, { dpop_required: true }],
  ])('%s', (_what, wide, parent) => {
    expect(isGrantWithin(toolGrant(wide), toolGrant(parent))).toBe(false)
  })
})

describe('a scope', () => {
  test('lies within another when each of its grants does, of every kind', () => {
    const parent = {
      grants: [toolGrant()],
      prompt_grants: [{ operations: ['get' as const], prompt_name: 'review-*' }],
      resource_grants: [{ operations: ['read' as const], uri_pattern: '*' }],
    }
    expect(isScopeWithin({}, parent)).toBe(true)
    expect(isScopeWithin(parent, parent)).toBe(true)
    expect(isScopeWithin({ prompt_grants: [{ operations: ['get'], prompt_name: 'review-1' }] }, parent)).toBe(
      true,
    )
    expect(isScopeWithin({ prompt_grants: [{ operations: ['get'], prompt_name: 'other' }] }, parent)).toBe(
      false,
    )
    expect(
      isScopeWithin({ resource_grants: [{ operations: ['subscribe'], uri_pattern: 'a' }] }, parent),
    ).toBe(false)
    expect(isScopeWithin({ grants: [toolGrant(), toolGrant({ tool_name: 'write' })] }, parent)).toBe(false)
  })

  test('offers the grants that cover a call, the most exact first and then in their order', () => {
    const limited = { constraints: [{ type: 'max_args_size' as const, value: 1_000 }] }
    const grants = [
      toolGrant({ server_id: '*', tool_name: '*' }),
      toolGrant({ tool_name: '*' }),
      toolGrant({ server_id: '*', ...limited }),
      toolGrant(),
      toolGrant(limited),
      toolGrant(),
      toolGrant({ operations: ['read_result'] }),
      toolGrant({ constraints: [{ type: 'path_prefix', value: '/other' }] }),
    ]
    const call = { parameters: { path: '/a' }, serverId: 'files', toolName: 'read' }
    expect(coveringGrants({ grants }, call).map(({ index }) => index)).toEqual([4, 3, 5, 1, 2, 0])
    expect(coveringGrants({ grants }, { ...call, serverId: 'mail' }).map(({ index }) => index)).toEqual([
      2, 0,
    ])
    expect(coveringGrants({}, call)).toEqual([])
  })
})

const few = <T>(...values: T[]) => fc.constantFrom(...values)
const constraint: fc.Arbitrary<Constraint> = few<Constraint>(
  { type: 'max_args_size', value: 30 },
  { type: 'max_args_size', value: 60 },
  { type: 'path_prefix', value: '/a' },
  { type: 'path_prefix', value: '/a/b' },
  { type: 'custom', value: ['region', 'eu'] },
)
const grant = fc.record({
  constraints: fc.uniqueArray(constraint, { maxLength: 3, minLength: 1 }),
  max_invocations: fc.nat(3),
  operations: fc.uniqueArray(few<GrantOperation>('invoke', 'delegate', 'read_result'), { minLength: 1 }),
  server_id: few('files', 'mail', '*'),
  tool_name: few('read', 'send', '*'),
})
const call = fc.record({
  parameters: fc.record(
    {
      path: few('/a', '/a/b/c', '/ab', '/a/../b'),
      region: few('eu', 'us'),
      text: fc.string({ maxLength: 40 }),
    },
    { requiredKeys: [] },
  ),
  serverId: few('files', 'mail'),
  toolName: few('read', 'send'),
})

const scope = fc.array(grant, { maxLength: 3, minLength: 1 })
type Generated = typeof scope extends fc.Arbitrary<infer S> ? S : never

/** Grants that each give away no more than one of the scope's own. */
function narrowed(wide: Generated): fc.Arbitrary<Generated> {
  const choice = fc.record({
    added: constraint,
    less: fc.nat(3),
    of: fc.nat(wide.length - 1),
    serverId: few('files', 'mail'),
  })
  return fc.array(choice, { maxLength: 3, minLength: 1 }).map(choices =>
    choices.map(({ added, less, of, serverId }) => {
      const parent = wide[of] as Generated[number]
      return {
        ...parent,
        constraints: [
          ...new Map([...parent.constraints, added].map(one => [JSON.stringify(one), one])).values(),
        ],
        max_invocations: Math.max(0, parent.max_invocations - less),
        operations: parent.operations.slice(0, Math.max(1, parent.operations.length - less)),
        server_id: parent.server_id === '*' ? serverId : parent.server_id,
      }
    }),
  )
}
const twoSteps = scope.chain(wide =>
  narrowed(wide).chain(child => narrowed(child).map(leaf => [wide, child, leaf] as const)),
)

test('a narrowed scope lies within each that it came from, and allows no call that one of them does not', () => {
  let met = 0
  fc.assert(
    fc.property(twoSteps, call, ([wide, child, leaf], asked) => {
      expect(isScopeWithin({ grants: child }, { grants: wide })).toBe(true)
      expect(isScopeWithin({ grants: leaf }, { grants: wide })).toBe(true)
      if (coveringGrants({ grants: leaf }, asked).length === 0) return
      met += 1
      expect(coveringGrants({ grants: wide }, asked).length).toBeGreaterThan(0)
    }),
    { numRuns: fullCount(300, 20_000) },
  )
  expect(met).toBeGreaterThan(0)
})

test('of any two scopes, one that lies within the other allows no call that the other does not', () => {
  fc.assert(
    fc.property(scope, scope, call, (child, parent, asked) => {
      if (!isScopeWithin({ grants: child }, { grants: parent })) return
      const allows = (grants: Generated): boolean => coveringGrants({ grants }, asked).length > 0
      expect(allows(child) && !allows(parent)).toBe(false)
    }),
    { numRuns: fullCount(500, 50_000) },
  )
})
