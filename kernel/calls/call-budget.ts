// Owns: how a call's budget is asked: judged in advance, taken with the reserve, or held already at the start; and how a
// hold is given back.
// Must never: take from a grant that asks for a bound nobody can hold, pass a shared ceiling over, or give a hold back
// under another event than its own.
// Source: budget holds of a tool call, their ids and events; `max_cost_preauthorize_then_reconcile_actual`.
import { type AggregateInvocationBudget, familyOwner } from '../../protocol/aggregate-budget.js'
import type { CapabilityToken } from '../../protocol/capability-token.js'
import type { ChosenGrant } from '../../protocol/scope.js'
import { type BudgetDenial, type BudgetEvent, denialOf, limitsOf } from './budget.js'
import { callRefusal, type CallRefusal, isRefusal, judged } from './call-refusal.js'
import type { SqliteMove } from '../sqlite/move.js'
import { budgetHoldId } from './tool-call-terms.js'

/** The budget as `evaluateCall` asks it. */
export interface CallBudget {
  take(token: CapabilityToken, covering: readonly ChosenGrant[]): ChosenGrant | CallRefusal
  giveBack(): void
}

export interface TakenBudget extends CallBudget {
  /** Of the hold that was taken. */
  readonly holdId: string | null
}

type Authorize = Extract<BudgetEvent, { kind: 'authorize' }>

/** What a call under a grant would hold: the most that one invocation may cost, and its place under a shared ceiling. */
function eventsUnder(
  requestId: string,
  token: CapabilityToken,
  { grant, index: grantIndex }: ChosenGrant,
): readonly Authorize[] {
  const holdId = budgetHoldId(requestId, token.id, grantIndex)
  const own: Authorize = {
    kind: 'authorize',
    capabilityId: token.id,
    grantIndex,
    holdId,
    limits: limitsOf(grant),
    units: grant.max_cost_per_invocation?.units ?? 0,
  }
  const ceiling = token.aggregate_invocation_budget
  if (ceiling === undefined) return [own]
  const limits = {
    maximumInvocations: ceiling.max_invocations,
    maximumUnits: null,
    maximumUnitsPerCall: null,
  }
  const capabilityId = ceilingOwner(token, ceiling)
  return [
    own,
    { kind: 'authorize', capabilityId, grantIndex: 0, holdId: ceilingHoldId(holdId), limits, units: 0 },
  ]
}

/** Under which name a ceiling is counted: no capability that is admitted here has a colon in its id. */
function ceilingOwner({ id }: CapabilityToken, { root_binding }: AggregateInvocationBudget): string {
  return root_binding === undefined ? `aggregate:${id}` : `aggregate-family:${familyOwner(root_binding)}`
}

/** The hold under a ceiling goes with the hold of the grant. */
function ceilingHoldId(holdId: string): string {
  return `${holdId}:aggregate`
}

/** The first grant that a call may be made under; the refusal names what stopped each. */
function firstAllowed(
  token: CapabilityToken,
  covering: readonly ChosenGrant[],
  ask: (events: readonly Authorize[]) => BudgetDenial | null,
  requestId: string,
): ChosenGrant | CallRefusal {
  if (covering.some(isUnbounded)) return callRefusal('budget', 'capability_denied', UNBOUNDED)
  const denials: string[] = []
  for (const chosen of covering) {
    const denial = judged('budget', () => ask(eventsUnder(requestId, token, chosen)))
    if (isRefusal(denial)) return denial
    if (denial === null) return chosen
    denials.push(`${denial} of grant ${chosen.index}`)
  }
  const got = `got none: ${denials.join(', ')}`
  return callRefusal(
    'budget',
    'grant_exhausted',
    `capability ${token.id} refused: expected a grant with budget left, ${got}`,
  )
}

/** A total without a bound for one call is not passed over: nothing could be held. */
function isUnbounded({ grant }: ChosenGrant): boolean {
  return grant.max_total_cost !== undefined && grant.max_cost_per_invocation === undefined
}
const UNBOUNDED =
  'capability refused: expected a cap for one invocation beside the total, got none: nothing could be held'

/** Looks, and takes nothing: what a preflight may know. */
export function judgedBudget(move: SqliteMove, requestId: string): CallBudget {
  const denialIn = (event: Authorize) =>
    denialOf(move.budgets.row(event.capabilityId, event.grantIndex), event)
  const look = (events: readonly Authorize[]) => events.map(denialIn).find(denial => denial !== null) ?? null
  return {
    giveBack() {},
    take: (token, covering) => firstAllowed(token, covering, look, requestId),
  }
}

/** Takes holds under their own events; a denial is recorded and the next grant asked. */
export function takenBudget(move: SqliteMove, requestId: string): TakenBudget {
  let holdId: string | null = null
  const takeAll = (events: readonly Authorize[]): BudgetDenial | null => {
    for (const event of events) {
      const { denial } = move.budgets.apply(`${event.holdId}:authorize`, event)
      if (denial === null) continue
      if (event !== events[0]) reverseHold(move, events[0]?.holdId as string)
      return denial
    }
    holdId = events[0]?.holdId ?? null
    return null
  }
  return {
    giveBack() {
      if (holdId !== null) reverseHold(move, holdId)
    },
    get holdId() {
      return holdId
    },
    take: (token, covering) => firstAllowed(token, covering, takeAll, requestId),
  }
}

/** The grant that a reserve took a hold of, while it is open; the start takes no other. */
export function heldBudget(move: SqliteMove, holdId: string): CallBudget {
  return {
    giveBack() {},
    take(_token, covering) {
      const hold = move.budgets.hold(holdId)
      const chosen = covering.find(({ index }) => index === hold?.grantIndex)
      if (hold?.state === 'open' && chosen !== undefined) return chosen
      const expected = 'expected the grant of its open hold to cover it still'
      return callRefusal('budget', 'capability_denied', `call refused: ${expected}; reserve it anew`)
    },
  }
}

/** Gives a whole hold back, once, and with it the one under a ceiling. */
export function reverseHold(move: SqliteMove, holdId: string): void {
  for (const id of [holdId, ceilingHoldId(holdId)]) {
    const hold = move.budgets.hold(id)
    if (hold === undefined && id !== holdId) continue
    const units = hold?.remainingUnits ?? 0
    move.budgets.apply(`${id}:reverse`, { kind: 'reverse', holdId: id, units })
  }
}

/**
 * Ends a whole hold after its call was delivered, and with it the one under a ceiling, which holds no units. The
 * invocation stays counted.
 * @param spent the real cost, null for all that is held; null as a whole where nothing is captured.
 */
export function endHold(
  move: SqliteMove,
  holdId: string,
  spent: { readonly realizedUnits: number | null } | null,
): void {
  for (const id of [holdId, ceilingHoldId(holdId)]) {
    const hold = move.budgets.hold(id)
    if (hold === undefined && id !== holdId) continue
    const exposedUnits = hold?.remainingUnits ?? 0
    const realizedUnits = id === holdId ? (spent?.realizedUnits ?? exposedUnits) : 0
    if (spent === null)
      move.budgets.apply(`${id}:release`, { kind: 'release', holdId: id, units: exposedUnits })
    else {
      const event = { exposedUnits, holdId: id, kind: 'reconcile', realizedUnits } as const
      move.budgets.apply(`${id}:reconcile`, event)
    }
  }
}
