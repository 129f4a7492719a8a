// A delegated token is admitted only along its whole chain, through ancestors that were stored, each giving away no more
// than it had; a ceiling of a family stays the family's.
import { describe, expect, test } from 'vitest'
import { familyOwner, signFamilyBudget } from '../../protocol/aggregate-budget.js'
import {
  type CapabilityToken,
  type CapabilityTokenMembers,
  verifyCapabilityToken,
} from '../../protocol/capability-token.js'
import { admitDelegation, assertTokenUnrevoked } from '../../protocol/delegation.js'
import { type Attenuation, chainFault } from '../../protocol/delegation-link.js'
import { isBrokerError } from '../../protocol/errors.js'
import { MAXIMUM_DELEGATION_DEPTH } from '../../protocol/limits.js'
import { scopeHash } from '../../protocol/scope.js'
import {
  child,
  delegated,
  issuer,
  linkFrom,
  root,
  stranger,
  TOKEN_NOW_UNIX_SECONDS,
  token,
  tokenMembers,
  toolGrant,
} from '../support/capability-tokens.js'

const parent = token()
const pins = { issuers: [issuer.publicKey] }

function judge(
  presented: CapabilityToken,
  stored: readonly CapabilityToken[] = [parent],
  trustRoot = {},
): string {
  try {
    const verified = verifyCapabilityToken(presented, pins, TOKEN_NOW_UNIX_SECONDS)
    const snapshotOf = (id: string) => stored.find(known => known.id === id)
    admitDelegation(verified, snapshotOf, { ...pins, ...trustRoot })
    return 'admitted'
  } catch (error) {
    return isBrokerError(error) ? `${error.code}: ${error.message}` : String(error)
  }
}

describe('a delegated token is admitted', () => {
  test('without a chain, and with one whose every step was stored', () => {
    expect(judge(parent, [])).toBe('admitted')
    expect(judge(delegated(parent))).toBe('admitted')
  })

  test('over two steps', () => {
    const middle = delegated(parent)
    const step = linkFrom(middle, { delegatee: stranger.publicKey, timestamp: 970 }, child)
    const leaf = delegated(middle, {
      delegation_chain: [...(middle.delegation_chain ?? []), step],
      id: 'capability-leaf',
      issued_at: 970,
      subject: stranger.publicKey,
    })
    expect(judge(leaf, [parent, middle])).toBe('admitted')
    expect(judge(leaf, [parent])).toMatch(/ancestor capability-child refused/)
    const otherwise = { ...middle, delegation_chain: undefined } as unknown as CapabilityToken
    expect(judge(leaf, [parent, otherwise])).toMatch(/capability-child refused/)
  })
})

describe('a delegated token is refused', () => {
  const withLink = (changes: Parameters<typeof linkFrom>[1], by = root) =>
    delegated(parent, { delegation_chain: [linkFrom(parent, changes, by)] })

  test.each<[string, CapabilityToken, RegExp]>([
    [
      'for another subject than its last delegatee',
      delegated(parent, { subject: stranger.publicKey }),
      /last delegatee/,
    ],
    ['from another delegator than its parent', withLink({}, stranger), /parent's subject as delegator/],
    ['given before its parent began', withLink({ timestamp: 899 }), /within the parent's life/],
    ['given when its parent ended', withLink({ timestamp: 2_000 }), /within the parent's life/],
    ['issued before it was given', delegated(parent, { issued_at: 949 }), /issued after it/],
    ['outliving its parent', delegated(parent, { expires_at: 2_001 }), /ends no later/],
    [
      'with a wider scope',
      delegated(parent, { scope: { grants: [toolGrant({ server_id: '*' })] } }),
      /within the parent's/,
    ],
    [
      'naming another scope of its parent',
      withLink({ scope_hash: '0'.repeat(64) }),
      /hash of the parent's scope/,
    ],
    ['with cumulative approval', withLink({ cumulative_approval: {} }), /cumulative approval/],
  ])('%s', (_what, presented, sentence) => {
    expect(judge(presented)).toMatch(sentence)
  })

  test('while its parent is not stored, or is stored with an issuer that is not trusted', () => {
    expect(judge(delegated(parent), [])).toMatch(/admitted here/)
    expect(judge(delegated(parent), [token({ issuer: stranger.publicKey }, stranger)])).toMatch(
      /trusted issuer/,
    )
  })

  test('with a link too many, a broken one, or ones that do not meet', () => {
    const [link] = delegated(parent).delegation_chain ?? []
    if (link === undefined) throw new RangeError('no link')
    expect(chainFault([link])).toBeUndefined()
    expect(chainFault(Array.from({ length: MAXIMUM_DELEGATION_DEPTH + 1 }, () => link))).toMatch(/at most/)
    expect(chainFault([{ ...link, timestamp: 951 }])).toMatch(/signature at link 0/)
    expect(chainFault([link, link])).toMatch(/delegatee of the link before.* at link 1/)
    const back = linkFrom(parent, { delegatee: root.publicKey, timestamp: 949 }, child)
    expect(chainFault([link, back])).toMatch(/not before the link before at link 1/)
  })
})

const READ = { server_id: 'files', tool_name: 'read' }
describe('an attenuation', () => {
  test.each<[Attenuation, boolean]>([
    [{ type: 'reduce_budget', ...READ, max_invocations: 2 }, true],
    [{ type: 'reduce_budget', ...READ, max_invocations: 1 }, false],
    [{ type: 'reduce_budget', ...READ, max_invocations: 9 }, false],
    [{ type: 'shorten_expiry', new_expires_at: 2_000 }, true],
    [{ type: 'shorten_expiry', new_expires_at: 1_999 }, false],
    [{ type: 'remove_tool', ...READ }, false],
    [{ type: 'remove_tool', server_id: 'mail', tool_name: 'send' }, false],
    [{ type: 'remove_operation', ...READ, operation: 'delegate' }, false],
    [{ type: 'remove_operation', ...READ, operation: 'get' }, false],
    [{ type: 'add_constraint', ...READ, constraint: { type: 'path_prefix', value: '/workspace' } }, true],
    [{ type: 'add_constraint', ...READ, constraint: { type: 'path_prefix', value: '/elsewhere' } }, false],
    [{ type: 'reduce_total_cost', ...READ, max_total_cost: { currency: 'EUR', units: 1 } }, false],
  ])('%o is %s of the child', (attenuation, isTrue) => {
    const link = linkFrom(parent, { attenuations: [attenuation] })
    const verdict = judge(delegated(parent, { delegation_chain: [link] }))
    expect(verdict === 'admitted').toBe(isTrue)
    if (!isTrue) expect(verdict).toContain(`untrue ${attenuation.type}`)
  })

  test('that removes a tool or an operation for every tool reaches the ones that remain', () => {
    const gone = { server_id: '*', tool_name: '*', operation: 'delegate', type: 'remove_operation' } as const
    const all = token({
      scope: { grants: [toolGrant({ operations: ['delegate', 'invoke'], server_id: '*', tool_name: '*' })] },
    })
    const give = (operations: ('delegate' | 'invoke')[]) =>
      delegated(all, {
        delegation_chain: [linkFrom(all, { attenuations: [gone] })],
        scope: { grants: [toolGrant({ operations })] },
      })
    expect(judge(give(['invoke']), [all])).toBe('admitted')
    expect(judge(give(['invoke', 'delegate']), [all])).toMatch(/untrue remove_operation/)
  })
})

describe('a proof of attenuation', () => {
  const scope = { grants: [toolGrant({ max_invocations: 1 })] }
  const proof = (parentScopeHash: string) => ({
    attenuation_proof: { childScopeHash: scopeHash(scope), normalizedSubsetProof: {}, parentScopeHash },
    budget_share_bps: 5_000,
    scope,
  })
  const narrow = {
    ...proof(scopeHash(parent.scope)),
    scope: { grants: (parent.scope.grants ?? []).map(grant => ({ ...grant, max_invocations: 1 })) },
  }

  test('names the scope of its parent and of its token', () => {
    const good = {
      ...narrow,
      attenuation_proof: { ...narrow.attenuation_proof, childScopeHash: scopeHash(narrow.scope) },
    }
    expect(judge(delegated(parent, good))).toBe('admitted')
    expect(judge(delegated(parent, narrow))).toMatch(/hash of the token's scope/)
    const inflated = {
      ...good,
      attenuation_proof: { ...good.attenuation_proof, parentScopeHash: '1'.repeat(64) },
    }
    expect(judge(delegated(parent, inflated))).toMatch(/hash of the parent's scope/)
  })

  test('without a chain needs the scope of the trust root', () => {
    const presented = token(proof(scopeHash(parent.scope)))
    expect(judge(presented, [])).toMatch(/hash of the parent's scope/)
    expect(judge(presented, [], { trustRootScopeHash: scopeHash(parent.scope) })).toBe('admitted')
  })

  test('stands beside every share and every attenuation', () => {
    expect(() => token({ budget_share_bps: 1 })).toThrow(/attenuation_proof/)
    expect(() => token({ scope_attenuations: [{ type: 'shorten_expiry', new_expires_at: 1 }] })).toThrow(
      /proof/,
    )
  })
})

describe('a ceiling of a family', () => {
  const members: CapabilityTokenMembers = tokenMembers()
  const budget = signFamilyBudget(members, 7, issuer)
  const first = token({ aggregate_invocation_budget: budget })

  test('is bound to its root and kept by the child as it is', () => {
    expect(judge(first, [])).toBe('admitted')
    expect(judge(delegated(first, { aggregate_invocation_budget: budget }), [first])).toBe('admitted')
    expect(judge(delegated(first), [first])).toMatch(/root's binding, unchanged/)
    const other = signFamilyBudget({ ...members, id: 'other' }, 7, issuer)
    expect(judge(delegated(first, { aggregate_invocation_budget: other }), [first])).toMatch(/unchanged/)
    expect(familyOwner(budget.root_binding ?? (undefined as never))).toMatch(/^[0-9a-f]{64}$/)
  })

  test('of another root, number or signer is refused', () => {
    const other = signFamilyBudget({ ...members, id: 'other' }, 7, issuer)
    expect(() => token({ aggregate_invocation_budget: other })).toThrow(/its own root/)
    expect(() => token({ aggregate_invocation_budget: { ...budget, max_invocations: 8 } })).toThrow(
      /its binding's/,
    )
    const forged = { ...budget, root_binding: { ...budget.root_binding, signature: '0'.repeat(128) } }
    expect(() => token({ aggregate_invocation_budget: forged as typeof budget })).toThrow(
      /root issuer's signature/,
    )
  })

  test('and one of a capability alone exclude each other', () => {
    const alone = { max_invocations: 1, scope: 'capability' } as const
    expect(() => token({ aggregate_invocation_budget: alone })).toThrow(/may be delegated/)
    expect(judge(token({ aggregate_invocation_budget: alone, scope: { grants: [toolGrant()] } }), [])).toBe(
      'admitted',
    )
    expect(() =>
      token({ aggregate_invocation_budget: { ...alone, root_binding: budget.root_binding as never } }),
    ).toThrow(/none with/)
    expect(() =>
      token({ aggregate_invocation_budget: { ...budget, root_binding: undefined } as never }),
    ).toThrow(/one with a ceiling/)
  })
})

test('a revoked token and a token of a revoked ancestor are told apart', () => {
  const presented = delegated(parent)
  expect(() => assertTokenUnrevoked(presented, () => false)).not.toThrow()
  expect(() => assertTokenUnrevoked(presented, id => id === 'capability-child')).toThrow(
    'capability has been revoked: capability-child',
  )
  expect(() => assertTokenUnrevoked(presented, id => id === parent.id)).toThrow(
    'delegation chain revoked at ancestor capability-root',
  )
})
