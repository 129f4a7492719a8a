// The order of checks of a tool call: what each refuses, by name, and that an earlier one is always asked first.
import { describe, expect, test } from 'vitest'
import { callRefusal, CALL_CHECKS, judged } from '../../../kernel/calls/call-refusal.js'
import { type CallAuthority, evaluateCall, type JudgedCall } from '../../../kernel/calls/evaluate-call.js'
import type { CapabilityToken } from '../../../protocol/capability-token.js'
import { BrokerError } from '../../../protocol/errors.js'
import type { ChosenGrant } from '../../../protocol/scope.js'
import {
  child,
  delegated,
  issuer,
  linkFrom,
  root,
  stranger,
  token,
  toolGrant,
  TOKEN_NOW_UNIX_SECONDS,
  WIDE,
} from '../../support/capability-tokens.js'

const CONTEXT = { generation: 1, labels: [], schema: 'chio.invocation-context.v1', session_id: 's' } as const

function callUnder(capability: CapabilityToken, changes: Partial<JudgedCall> = {}): JudgedCall {
  return {
    agentId: capability.subject,
    context: CONTEXT,
    nowUnixSeconds: TOKEN_NOW_UNIX_SECONDS,
    request: {
      capability_token: capability,
      id: 'call-1',
      params: { path: '/workspace/notes.md' },
      server_id: 'files',
      tool: 'read',
      type: 'tool_call_request',
    },
    ...changes,
  }
}

/** Everything in order; what differs is given. */
function authority(changes: Partial<CallAuthority> = {}): CallAuthority & { readonly asked: string[] } {
  const asked: string[] = []
  return {
    asked,
    giveBudgetBack: () => asked.push('budget given back'),
    guards: [],
    isRevoked: () => false,
    isTarget: () => true,
    judgeApprovals: () => null,
    judgePossession: () => null,
    keptOtherwise: [],
    pins: { issuers: [issuer.publicKey] },
    remember: () => true,
    snapshotOf: () => undefined,
    takeBudget(_token, covering) {
      asked.push('budget taken')
      return covering[0] as ChosenGrant
    },
    ...changes,
  }
}

test('a call in order is allowed under the grant that covers it', () => {
  expect(evaluateCall(callUnder(token()), authority())).toMatchObject({
    evidence: [],
    grant: { index: 0 },
    verdict: 'allow',
  })
})

test('a delegated token is allowed through the ancestors that were admitted here', () => {
  const parent = token()
  const capability = delegated(parent)
  const call = callUnder(capability)
  expect(evaluateCall(call, authority({ snapshotOf: () => parent })).verdict).toBe('allow')
  expect(evaluateCall(call, authority())).toMatchObject({ check: 'delegation', code: 'capability_denied' })
})

const broken = (capability: CapabilityToken): CapabilityToken => ({
  ...capability,
  signature: '0'.repeat(128),
})
const guard = (name: string, judge: () => string | null) => ({ name, judge })
const deniedBudget = () => callRefusal('budget', 'grant_exhausted', 'budget refused')

test.each([
  [
    'an issuer that is not trusted',
    callUnder(token()),
    { pins: { issuers: [stranger.publicKey] } },
    'token',
    'issuer',
  ],
  ['a signature that is not the issuer’s', callUnder(broken(token())), {}, 'token', 'signature'],
  ['a token that has expired', callUnder(token({ expires_at: 1_000 })), {}, 'token', 'time'],
  ['a token that is not valid yet', callUnder(token({ issued_at: 1_001 })), {}, 'token', 'time'],
  [
    'a revoked token',
    callUnder(token()),
    { isRevoked: () => true },
    'revocation',
    'capability has been revoked: capability-root',
  ],
  [
    'a token of a revoked ancestor',
    callUnder(delegated(token())),
    { isRevoked: (id: string) => id === 'capability-root', snapshotOf: () => token() },
    'revocation',
    'delegation chain revoked at ancestor capability-root',
  ],
  ['another agent', callUnder(token(), { agentId: stranger.publicKey }), {}, 'subject', 'subject'],
  ['arguments outside the constraints', outside(), {}, 'grant', 'these arguments'],
  [
    'a proof of possession that is missing',
    callUnder(token()),
    { judgePossession: () => callRefusal('proof_of_possession', 'possession_denied', 'a proof, got none') },
    'proof_of_possession',
    'a proof, got none',
  ],
  ['a tool that is not here', callUnder(token()), { isTarget: () => false }, 'target', 'read on files'],
  ['an id of another token', callUnder(token()), { remember: () => false }, 'snapshot', 'first used for'],
  ['an empty budget', callUnder(token()), { takeBudget: deniedBudget }, 'budget', 'budget refused'],
  [
    'approvals that are missing',
    callUnder(token()),
    { judgeApprovals: () => callRefusal('approval', 'approval_required', 'two approvals') },
    'approval',
    'two approvals',
  ],
  [
    'a guard that denies',
    callUnder(token()),
    { guards: [guard('egress', () => 'no way out')] },
    'guard',
    'no way out',
  ],
] as const)('%s is refused as a value', (_what, call, changes, check, said) => {
  const evaluation = evaluateCall(call, authority(changes))
  expect(evaluation).toMatchObject({ check, verdict: 'deny' })
  expect(evaluation).toHaveProperty('reason', expect.stringContaining(said))
})

function outside(): JudgedCall {
  const call = callUnder(token())
  return { ...call, request: { ...call.request, params: { path: '/etc/passwd' } } }
}

test('of everything that is wrong, the first check in the order is named', () => {
  const faults: [string, Partial<CallAuthority>][] = [
    ['revocation', { isRevoked: () => true }],
    [
      'proof_of_possession',
      { judgePossession: () => callRefusal('proof_of_possession', 'possession_denied', 'none') },
    ],
    ['target', { isTarget: () => false }],
    ['snapshot', { remember: () => false }],
    ['budget', { takeBudget: deniedBudget }],
    ['approval', { judgeApprovals: () => callRefusal('approval', 'approval_required', 'none') }],
    ['guard', { guards: [guard('closed', () => 'closed')] }],
  ]
  for (const [at, [check]] of faults.entries()) {
    const rest = Object.assign(
      {},
      ...faults.slice(at).map(([, changes]) => changes),
    ) as Partial<CallAuthority>
    expect(evaluateCall(callUnder(token()), authority(rest))).toHaveProperty('check', check)
  }
  const order = faults.map(([check]) => CALL_CHECKS.indexOf(check as (typeof CALL_CHECKS)[number]))
  expect(order).toEqual(order.toSorted((a, b) => a - b))
})

describe('what follows the budget', () => {
  test('gives it back when it denies', () => {
    for (const changes of [
      { judgeApprovals: () => callRefusal('approval', 'approval_required', 'none') },
      { guards: [guard('closed', () => 'closed')] },
    ] as const) {
      const with_ = authority(changes)
      evaluateCall(callUnder(token()), with_)
      expect(with_.asked).toEqual(['budget taken', 'budget given back'])
    }
  })

  test('is never asked when an earlier check denies', () => {
    const with_ = authority({ isTarget: () => false })
    evaluateCall(callUnder(token()), with_)
    expect(with_.asked).toEqual([])
  })
})

describe('guards', () => {
  test('are asked in their order, and the first that denies ends it', () => {
    const asked: string[] = []
    const guards = ['first', 'second', 'third'].map(name =>
      guard(name, () => {
        asked.push(name)
        return name === 'second' ? 'no' : null
      }),
    )
    expect(evaluateCall(callUnder(token()), authority({ guards }))).toMatchObject({
      code: 'guard_denied',
      evidence: [
        { guard_name: 'first', verdict: true },
        { details: 'no', guard_name: 'second', verdict: false },
      ],
      guard: 'second',
      verdict: 'deny',
    })
    expect(asked).toEqual(['first', 'second'])
  })

  test('deny when they fail', () => {
    const guards = [
      guard('broken', () => {
        throw new TypeError('out of order')
      }),
    ]
    expect(evaluateCall(callUnder(token()), authority({ guards }))).toHaveProperty(
      'reason',
      'guard "broken" error (fail-closed): out of order',
    )
  })
})

test('a chain whose last delegatee is another is not admitted, whatever its signatures say', () => {
  const parent = token()
  const link = linkFrom(parent, { delegatee: stranger.publicKey }, root)
  const capability = delegated(parent, { delegation_chain: [link], subject: child.publicKey })
  const call = callUnder(capability)
  expect(evaluateCall(call, authority({ snapshotOf: () => parent }))).toMatchObject({ check: 'delegation' })
})

test('every covering grant is offered to the budget, the most exact first', () => {
  const grants = [...(WIDE.grants ?? []), toolGrant({ server_id: '*', tool_name: '*' })]
  const seen: number[][] = []
  const takeBudget: CallAuthority['takeBudget'] = (_token, covering) => {
    seen.push(covering.map(({ index }) => index))
    return covering.at(-1) as ChosenGrant
  }
  evaluateCall(callUnder(token({ scope: { grants } })), authority({ takeBudget }))
  expect(seen).toEqual([[0, 1]])
})

test('faults of this machine are thrown, not told as refusals', () => {
  const fault = new BrokerError('storage', 'disk refused')
  expect(() =>
    judged('snapshot', () => {
      throw fault
    }),
  ).toThrow(fault)
  expect(
    judged('admission', () => {
      throw new BrokerError('operation_state', 'operation refused: expected another')
    }),
  ).toMatchObject({
    reason: 'durable admission failed: operation refused: expected another',
    verdict: 'deny',
  })
})
