// Owns: how a call's budget is asked: judged in advance, taken with the reserve, or held already at the start; and how a
// hold is given back.
// Must never: take from a grant that asks for a bound nobody can hold, or give a hold back under another event than its own.
// Source: budget holds of a tool call, their ids and events; `max_cost_preauthorize_then_reconcile_actual`.
import type { CapabilityToken } from '../protocol/capability-token.js'
import type { ChosenGrant } from '../protocol/scope.js'
import { type BudgetDenial, type BudgetEvent, denialOf, limitsOf } from './budget.js'
import { callRefusal, type CallRefusal, isRefusal, judged } from './call-refusal.js'
import type { SqliteMove } from './sqlite/move.js'
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

/** What a call under a grant would hold: the most that one invocation may cost. */
function authorizeUnder(
  requestId: string,
  { id: capabilityId }: CapabilityToken,
  { grant, index: grantIndex }: ChosenGrant,
): Authorize {
  return {
    kind: 'authorize',
    capabilityId,
    grantIndex,
    holdId: budgetHoldId(requestId, capabilityId, grantIndex),
    limits: limitsOf(grant),
    units: grant.max_cost_per_invocation?.units ?? 0,
  }
}

/** The first grant that a call may be made under; the refusal names what stopped each. */
function firstAllowed(
  token: CapabilityToken,
  covering: readonly ChosenGrant[],
  ask: (chosen: ChosenGrant) => BudgetDenial | null,
): ChosenGrant | CallRefusal {
  const uncounted = uncountedOf(token, covering)
  if (uncounted !== undefined) return callRefusal('budget', 'capability_denied', uncounted)
  const denials: string[] = []
  for (const chosen of covering) {
    const denial = judged('budget', () => ask(chosen))
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

/** A bound that this kernel cannot count under is not one to be passed over. */
function uncountedOf(token: CapabilityToken, covering: readonly ChosenGrant[]): string | undefined {
  if (token.aggregate_invocation_budget !== undefined) {
    return 'capability refused: expected no aggregate ceiling: this kernel counts each grant by itself'
  }
  const isOpen = ({ grant }: ChosenGrant): boolean =>
    grant.max_total_cost !== undefined && grant.max_cost_per_invocation === undefined
  return covering.some(isOpen)
    ? 'capability refused: expected a cap for one invocation beside the total, got none: nothing could be held'
    : undefined
}

/** Looks, and takes nothing: what a preflight may know. */
export function judgedBudget(move: SqliteMove, requestId: string): CallBudget {
  return {
    giveBack() {},
    take: (token, covering) =>
      firstAllowed(token, covering, chosen => {
        const event = authorizeUnder(requestId, token, chosen)
        return denialOf(move.budgets.row(token.id, chosen.index), event)
      }),
  }
}

/** Takes a hold under its own event; a denial is recorded and the next grant asked. */
export function takenBudget(move: SqliteMove, requestId: string): TakenBudget {
  let holdId: string | null = null
  return {
    giveBack() {
      if (holdId !== null) reverseHold(move, holdId)
    },
    get holdId() {
      return holdId
    },
    take: (token, covering) =>
      firstAllowed(token, covering, chosen => {
        const event = authorizeUnder(requestId, token, chosen)
        const { denial } = move.budgets.apply(`${event.holdId}:authorize`, event)
        if (denial === null) holdId = event.holdId
        return denial
      }),
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

/** Gives a whole hold back, once. */
export function reverseHold(move: SqliteMove, holdId: string): void {
  const units = move.budgets.hold(holdId)?.remainingUnits ?? 0
  move.budgets.apply(`${holdId}:reverse`, { kind: 'reverse', holdId, units })
}
