// Tokens of the other implementation verify, in both signature forms; members that came later need the current form;
// every change of a token is refused by name.
import { describe, expect, test } from 'vitest'
import { canonicalBytes } from '../../protocol/canonical.js'
import {
  CapabilityToken,
  type CapabilityTokenMembers,
  capabilityTokenHash,
  isTokenSigned,
  signCapabilityToken,
  timeStatusOf,
  verifyCapabilityToken,
} from '../../protocol/capability-token.js'
import { decode, encode } from '../../protocol/codec.js'
import { chainFault } from '../../protocol/delegation-link.js'
import { sha256Hex } from '../../protocol/digest.js'
import type { JsonValue } from '../../protocol/json.js'
import { admitPublicKey } from '../../protocol/keys.js'
import {
  issuer,
  stranger,
  TOKEN_NOW_UNIX_SECONDS,
  token,
  tokenMembers,
  toolGrant,
} from '../support/capability-tokens.js'
import { describeVectors, readVectors } from '../support/vectors.js'

interface Case {
  readonly id: string
  readonly capability: JsonValue
  readonly capability_body_canonical_json: string
  readonly expected: {
    readonly delegation_chain_valid: boolean
    readonly signature_valid: boolean
    readonly time_status: string
  }
  readonly signature_input?: string
  readonly verify_at: number
}

describeVectors('capability token vectors', folder => {
  const cases = ['v1.json', 'v1-extra.json'].flatMap(
    file => readVectors<{ cases: Case[] }>(folder, 'chio/capability', file).cases,
  )

  test('are six', () => {
    expect(cases).toHaveLength(6)
  })

  test.each(cases.map(vector => [vector.id, vector] as const))('%s is judged as published', (_id, vector) => {
    const bytes = canonicalBytes(vector.capability)
    const read = decode(CapabilityToken, bytes, 'capability token')
    expect(Buffer.from(encode(CapabilityToken, read)).equals(bytes)).toBe(true)
    expect(capabilityTokenHash(read)).toBe(sha256Hex(bytes))
    expect({
      delegation_chain_valid: chainFault(read.delegation_chain ?? []) === undefined,
      signature_valid: isTokenSigned(read, admitPublicKey(read.issuer, 'issuer')),
      time_status: timeStatusOf(read, vector.verify_at),
    }).toEqual({
      delegation_chain_valid: vector.expected.delegation_chain_valid,
      signature_valid: vector.expected.signature_valid,
      time_status: vector.expected.time_status,
    })
  })
})

function verify(presented: CapabilityToken, nowUnixSeconds = TOKEN_NOW_UNIX_SECONDS): string {
  try {
    verifyCapabilityToken(presented, { issuers: [issuer.publicKey] }, nowUnixSeconds)
    return 'verified'
  } catch (error) {
    const { code, message } = error as { code?: string; message: string }
    return `${code}: ${message}`
  }
}

/** Signed as in April: without `schema`. */
function plain(members: CapabilityTokenMembers): CapabilityToken {
  const signature = Buffer.from(issuer.sign(canonicalBytes(members as unknown as JsonValue))).toString('hex')
  return { ...members, signature }
}

describe('a capability token', () => {
  test('verifies for the moments from its issue to before its expiry', () => {
    expect(verify(token(), 900)).toBe('verified')
    expect(verify(token(), 1_999)).toBe('verified')
    expect(verify(token(), 899)).toMatch(/^capability_denied: .*time/)
    expect(verify(token(), 2_000)).toMatch(/^capability_expired: /)
  })

  test('says schema in the current form, whose signature covers it whether it is written or not', () => {
    const { schema, ...unwritten } = token()
    expect(schema).toBe('chio.capability.v1')
    expect(verify(unwritten)).toBe('verified')
  })

  test('of the older form verifies while it is simple', () => {
    expect(verify(plain(tokenMembers()))).toBe('verified')
    expect(verify({ ...plain(tokenMembers()), schema: 'chio.capability.v1' })).toBe('verified')
  })

  test.each([
    ['a share', { budget_share_bps: 100 }],
    ['an aggregate budget', { aggregate_invocation_budget: { max_invocations: 3, scope: 'capability' } }],
    [
      'cumulative approval',
      {
        scope: {
          grants: [toolGrant({ constraints: [{ type: 'require_cumulative_approval_above', value: {} }] })],
        },
      },
    ],
  ] as const)('of the older form is refused with %s, which its signature does not bind', (_what, changes) => {
    expect(verify(plain(tokenMembers(changes)))).toMatch(/signature refused/)
  })

  test('of another issuer is refused before its signature is looked at', () => {
    expect(verify(token({ issuer: stranger.publicKey }, stranger))).toMatch(/^capability_denied: .*issuer/)
  })

  test.each(['expires_at', 'id', 'subject'] as const)('with another %s is refused', member => {
    const other = { expires_at: 3_000, id: 'another', subject: stranger.publicKey }
    expect(verify({ ...token(), [member]: other[member] })).toMatch(/signature refused/)
  })

  test('with a caveat is refused: nobody here enforces one', () => {
    const members = { ...tokenMembers(), caveats: [{ kind: 'restrict_tool' }] }
    const withSchema = canonicalBytes({ ...members, schema: 'chio.capability.v1' })
    const signature = Buffer.from(issuer.sign(withSchema)).toString('hex')
    expect(verify({ ...members, signature })).toMatch(/^capability_denied: .*caveats/)
    expect(() => signCapabilityToken(members, issuer)).toThrow(/caveats/)
  })

  test('of another schema, with an empty list or an unknown member is no token', () => {
    const text = (changes: object): Uint8Array => canonicalBytes({ ...token(), ...changes })
    for (const changes of [{ schema: 'chio.capability.v2' }, { delegation_chain: [] }, { surplus: 1 }]) {
      expect(() => decode(CapabilityToken, text(changes), 'token')).toThrow(/token refused/)
    }
  })

  test('whose share is a basis point above all is no token', () => {
    const text = canonicalBytes({ ...token(), budget_share_bps: 10_001 })
    expect(() => decode(CapabilityToken, text, 'token')).toThrow(/budget_share_bps/)
  })
})
