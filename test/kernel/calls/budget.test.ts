// The rules of budgets by themselves: each condition of the table, and what a denial leaves.
import { expect, test } from 'vitest'
import {
  applyBudgetEvent,
  type Budget,
  type BudgetEvent,
  type BudgetLimits,
  limitsOf,
} from '../../../kernel/calls/budget.js'

const LIMITS: BudgetLimits = { maximumInvocations: 2, maximumUnits: 100, maximumUnitsPerCall: 60 }
const EMPTY: Budget = {
  hold: undefined,
  row: { capabilityId: 'c', exposedUnits: 0, grantIndex: 0, invocations: 0, realizedUnits: 0, seq: 0 },
}
const authorize = (units: number, changes: Partial<BudgetLimits> = {}): BudgetEvent => ({
  kind: 'authorize',
  capabilityId: 'c',
  grantIndex: 0,
  holdId: 'h',
  limits: { ...LIMITS, ...changes },
  units,
})
const opened = (units: number): Budget => applyBudgetEvent(EMPTY, authorize(units))
const reverse = (units: number): BudgetEvent => ({ kind: 'reverse', holdId: 'h', units })
const release = (units: number): BudgetEvent => ({ kind: 'release', holdId: 'h', units })
const reconcile = (exposedUnits: number, realizedUnits: number): BudgetEvent => ({
  kind: 'reconcile',
  exposedUnits,
  holdId: 'h',
  realizedUnits,
})

test('an authorization counts the call and exposes its cost', () => {
  expect(opened(60)).toMatchObject({
    denial: null,
    hold: { remainingUnits: 60, state: 'open' },
    row: { exposedUnits: 60, invocations: 1, realizedUnits: 0 },
  })
})

test.each([
  ['invocations', { ...EMPTY, row: { ...EMPTY.row, invocations: 2 } }, 0, {}],
  ['invocations', EMPTY, 0, { maximumInvocations: 0 }],
  ['cost_per_call', EMPTY, 61, {}],
  ['total_cost', { ...EMPTY, row: { ...EMPTY.row, exposedUnits: 30, realizedUnits: 40 } }, 31, {}],
  [
    'total_cost',
    { ...EMPTY, row: { ...EMPTY.row, realizedUnits: Number.MAX_SAFE_INTEGER } },
    1,
    { maximumUnits: null, maximumUnitsPerCall: null },
  ],
] as const)('%s denies and changes nothing', (denial, budget, units, limits) => {
  expect(applyBudgetEvent(budget, authorize(units, limits))).toEqual({ ...budget, denial })
})

test('the last unit and the last call are still allowed', () => {
  const row = { ...EMPTY.row, exposedUnits: 30, invocations: 1, realizedUnits: 40 }
  expect(applyBudgetEvent({ ...EMPTY, row }, authorize(30))).toMatchObject({
    denial: null,
    row: { exposedUnits: 60, invocations: 2 },
  })
})

test('a reversed hold gives back the call and its cost', () => {
  const { hold, row } = applyBudgetEvent(opened(60), reverse(60))
  expect(hold).toMatchObject({ remainingUnits: 0, state: 'reversed' })
  expect(row).toEqual(EMPTY.row)
})

test('a release gives back cost and never the call, and ends the hold when nothing is left', () => {
  const partly = applyBudgetEvent(opened(60), release(20))
  expect(partly).toMatchObject({
    hold: { remainingUnits: 40, state: 'open' },
    row: { exposedUnits: 40, invocations: 1 },
  })
  expect(applyBudgetEvent(partly, release(40))).toMatchObject({
    hold: { state: 'released' },
    row: { exposedUnits: 0, invocations: 1 },
  })
})

test('a reconciliation turns what was exposed into what it really cost', () => {
  expect(applyBudgetEvent(opened(60), reconcile(60, 25))).toMatchObject({
    hold: { realizedUnits: 25, remainingUnits: 0, state: 'reconciled' },
    row: { exposedUnits: 0, invocations: 1, realizedUnits: 25 },
  })
})

test.each([
  ['a hold that nobody opened', EMPTY, reverse(0)],
  ['a reverse of other units', opened(60), reverse(59)],
  ['a release of more than is left', opened(60), release(61)],
  ['a reconciliation of other units', opened(60), reconcile(59, 1)],
  ['a real cost beyond what was held', opened(60), reconcile(60, 61)],
  ['a second end', applyBudgetEvent(opened(60), reverse(60)), reverse(60)],
  ['a capture of what was given back', applyBudgetEvent(opened(60), reverse(60)), reconcile(60, 1)],
] as const)('%s is refused', (_what, budget, event) => {
  expect(() => applyBudgetEvent(budget, event)).toThrow(expect.objectContaining({ code: 'conflict' }))
})

test('a hold id is used once', () => {
  expect(() => applyBudgetEvent(opened(1), authorize(1))).toThrow(
    expect.objectContaining({ code: 'invariant' }),
  )
})

test('limits are those of the grant, and cost caps in two currencies are none that can be kept', () => {
  const grant = { operations: ['invoke' as const], server_id: 's', tool_name: 't' }
  expect(limitsOf(grant)).toEqual({
    maximumInvocations: null,
    maximumUnits: null,
    maximumUnitsPerCall: null,
  })
  const usd = { currency: 'USD', units: 5 }
  expect(
    limitsOf({ ...grant, max_cost_per_invocation: usd, max_invocations: 3, max_total_cost: usd }),
  ).toEqual({
    maximumInvocations: 3,
    maximumUnits: 5,
    maximumUnitsPerCall: 5,
  })
  expect(() =>
    limitsOf({ ...grant, max_cost_per_invocation: usd, max_total_cost: { currency: 'EUR', units: 5 } }),
  ).toThrow(expect.objectContaining({ code: 'capability_denied' }))
})
