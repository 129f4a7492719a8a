// When one scope lies within another, which grant a call is made under, and that a missing bound is no bound.
import { describe, expect, test } from 'vitest'
import { coveringGrants, isGrantWithin, isScopeWithin, type ToolGrant } from '../../protocol/scope.js'
import { toolGrant } from '../support/capability-tokens.js'

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
