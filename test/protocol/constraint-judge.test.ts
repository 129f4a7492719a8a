// Which arguments keep a constraint, as a table of policy; and that what cannot be judged is never kept.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { matchesGlob } from '../../protocol/argument-text.js'
import { canonicalBytes } from '../../protocol/canonical.js'
import { decode } from '../../protocol/codec.js'
import { Constraint } from '../../protocol/constraint.js'
import { isJudged, isKept } from '../../protocol/constraint-judge.js'
import type { JsonValue } from '../../protocol/json.js'
import { fullCount } from '../support/counts.js'

const UNDER: Constraint = { type: 'path_prefix', value: '/workspace/docs/' }
const EXACT: Constraint = { type: 'domain_exact', value: 'Api.Example.com' }
const GLOB: Constraint = { type: 'domain_glob', value: '*.example.com' }
const PEOPLE: Constraint = { type: 'audience_allowlist', value: ['team', 'lead'] }
const STORES: Constraint = { type: 'memory_store_allowlist', value: ['notes'] }
const CUSTOM: Constraint = { type: 'custom', value: ['region', 'eu'] }

const KEPT: readonly [string, Constraint, JsonValue][] = [
  ['a path below the prefix', UNDER, { path: '/workspace/docs/a.md' }],
  ['the prefix itself', UNDER, { path: '/workspace/docs' }],
  ['doubled separators', UNDER, { path: '/workspace//docs/./a.md' }],
  ['a host in an address', EXACT, { url: 'https://api.example.com:443/x?q=1' }],
  ['a host in upper case', EXACT, { host: 'API.EXAMPLE.COM.' }],
  ['a host beside a file', EXACT, { url: 'https://api.example.com/', out: './a.json' }],
  ['a host below the glob', GLOB, { url: 'https://a.b.example.com/' }],
  ['listed recipients', PEOPLE, { to: ['team', 'lead'] }],
  ['a listed store', STORES, { query: { collection: 'notes' } }],
  ['the custom value', CUSTOM, { options: [{ region: 'eu' }] }],
  ['texts of the longest length', { type: 'max_length', value: 3 }, { a: 'abc', b: [1, 'é'] }],
  ['arguments of the largest size', { type: 'max_args_size', value: 7 }, { a: 1 }],
]

const BROKEN: readonly [string, Constraint, JsonValue][] = [
  ['no path at all', UNDER, { mode: 'read' }],
  ['a neighbour with the same beginning', UNDER, { path: '/workspace/docs-private/a' }],
  ['a path that climbs', UNDER, { path: '/workspace/docs/../secrets' }],
  ['a path that climbs and comes back', UNDER, { path: '/workspace/docs/x/../a' }],
  ['a relative path', UNDER, { path: 'workspace/docs/a' }],
  ['a second path elsewhere', UNDER, { path: '/workspace/docs/a', output: '/etc/passwd' }],
  ['a path with a NUL', UNDER, { path: '/workspace/docs/a\0/../../etc' }],
  ['a bare name under a key of paths', UNDER, { path: '/workspace/docs/a', file: 'passwd' }],
  ['a path with backslashes', UNDER, { path: '/workspace/docs/a', other: '\\etc\\passwd' }],
  ['no host at all', EXACT, { mode: 'read' }],
  ['another host', EXACT, { url: 'https://evil.example/' }],
  ['a second host', EXACT, { url: 'https://api.example.com/', mirror: 'evil.example' }],
  ['a user name like the host', EXACT, { url: 'https://api.example.com@evil.example/' }],
  ['a user name before the host', EXACT, { url: 'https://evil.example@api.example.com/' }],
  ['a backslash before the host', EXACT, { url: 'https://evil.example\\@api.example.com/' }],
  ['an address without scheme', EXACT, { url: 'https://api.example.com/', next: '//evil.example/' }],
  ['an address of numbers', EXACT, { url: 'https://api.example.com/', next: 'http://2130706433/' }],
  ['an address in brackets', EXACT, { url: 'https://api.example.com/', next: 'http://[::1]/' }],
  ['a host in other letters', EXACT, { url: 'https://api.example.com/', host: 'evil。example' }],
  ['a host of one word under its key', EXACT, { url: 'https://api.example.com/', host: 'intranet' }],
  ['a mail address', EXACT, { url: 'https://api.example.com/', other: 'a@evil.example' }],
  ['the domain above the glob', GLOB, { url: 'https://example.com/' }],
  ['a domain that only ends alike', GLOB, { url: 'https://evilexample.com/' }],
  ['no recipient', PEOPLE, { text: 'hello' }],
  ['a recipient that is not listed', PEOPLE, { to: ['team', 'press'] }],
  ['a recipient that is no text', PEOPLE, { to: ['team', null] }],
  ['an empty list of recipients', PEOPLE, { to: [] }],
  ['a second list of recipients', PEOPLE, { to: 'team', extra: { channel: 'press' } }],
  ['another store', STORES, { store: 'secrets' }],
  ['another custom value', CUSTOM, { region: 'us' }],
  ['a decoy beside another value', CUSTOM, { region: 'us', decoy: { region: 'eu' } }],
  ['no custom value', CUSTOM, {}],
  ['a text one byte too long', { type: 'max_length', value: 3 }, { a: 'abcd' }],
  ['arguments one byte too large', { type: 'max_args_size', value: 6 }, { a: 1 }],
  [
    'a digest of an output',
    { type: 'custom', value: ['output_digest_sha256', 'x'] },
    { output_digest_sha256: 'x' },
  ],
]

describe('a constraint', () => {
  test.each(KEPT)('is kept by %s', (_what, constraint, parameters) => {
    expect(isKept(constraint, parameters)).toBe(true)
  })

  test.each(BROKEN)('is not kept by %s', (_what, constraint, parameters) => {
    expect(isKept(constraint, parameters)).toBe(false)
  })

  test.each([
    { type: 'column_denylist', value: [] },
    { type: 'content_review_tier', value: 'none' },
    { type: 'governed_intent_required' },
    { type: 'max_rows_returned', value: 1 },
    { type: 'max_transaction_amount_usd', value: '100.00' },
    { type: 'memory_write_deny_patterns', value: [] },
    { type: 'minimum_autonomy_tier', value: 'direct' },
    { type: 'minimum_runtime_assurance', value: 'none' },
    { type: 'model_constraint', value: { allowed_model_ids: [], min_safety_tier: null } },
    { type: 'operation_class', value: 'read_only' },
    { type: 'regex_match', value: '.*' },
    { type: 'require_approval_above', value: { threshold_units: 1 } },
    { type: 'require_cumulative_approval_above', value: {} },
    { type: 'require_dual_approval', value: false },
    { type: 'seller_exact', value: 'seller' },
    { type: 'table_allowlist', value: [] },
  ] satisfies Constraint[])('$type is never kept: the arguments cannot show it', constraint => {
    expect(isJudged(constraint.type)).toBe(false)
    expect(isKept(constraint, { a: 'b', to: 'team' })).toBe(false)
  })

  test.each([
    { type: 'unheard_of' },
    { type: 'path_prefix' },
    { type: 'path_prefix', value: 1 },
    { type: 'path_prefix', value: '/a', also: true },
    { type: 'governed_intent_required', value: null },
    { type: 'custom', value: ['one'] },
  ])('%o is no constraint', document => {
    expect(() => decode(Constraint, canonicalBytes(document as JsonValue), 'constraint')).toThrow(/refused/)
  })
})

/** The same question, asked of an expression that is made of it. */
function matchesByExpression(glob: string, value: string): boolean {
  const parts = glob.split('*').map(part => part.replaceAll(/[.]/g, '[.]'))
  return new RegExp(`^${parts.join('.*')}$`).test(value)
}

test('a glob matches as the expression that it stands for would', () => {
  const pieces = (...words: string[]) =>
    fc.array(fc.constantFrom(...words), { maxLength: 8 }).map(all => all.join(''))
  fc.assert(
    fc.property(pieces('a', 'b', '.', '*', 'ab'), pieces('a', 'b', '.', 'ab'), (glob, value) => {
      expect(matchesGlob(glob, value)).toBe(matchesByExpression(glob, value))
    }),
    { numRuns: fullCount(1_000, 50_000) },
  )
})

test('a glob of many stars is answered at once', () => {
  expect(matchesGlob('*a'.repeat(2_000), `${'a'.repeat(20_000)}b`)).toBe(false)
})
