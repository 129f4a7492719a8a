// Owns: the rules of a budget, which counts what one grant of one capability was used for: what an event asks, when it is
// allowed, what it does to the row of the grant and to its hold.
// Must never: read or write a store, or let the same event count twice: the store finds an event by its id first.
// Source: budget holds of the kernel (authorize, reverse, release, reconcile) and their conditions.
import { type Infer, identifier, integer, nullable, object, oneOf, tagged } from '../../protocol/codec.js'
import { BrokerError } from '../../protocol/errors.js'
import { MAXIMUM_INTEGER, MAXIMUM_INVOCATIONS_COUNT } from '../../protocol/limits.js'
import type { ToolGrant } from '../../protocol/scope.js'
import { Count } from '../../protocol/unix-time.js'

/** What the grant allows; null where it does not bound it. Units are minor units of the grant's one currency. */
export const BudgetLimits = object({
  maximumInvocations: nullable(integer({ min: 0, max: MAXIMUM_INVOCATIONS_COUNT })),
  maximumUnits: nullable(Count),
  maximumUnitsPerCall: nullable(Count),
})
export type BudgetLimits = Infer<typeof BudgetLimits>

/** A grant by its place in the token: what invocations and cost are counted under. */
const place = { capabilityId: identifier(), grantIndex: Count }

export const BudgetEvent = tagged('kind', {
  authorize: object({ ...place, holdId: identifier(), limits: BudgetLimits, units: Count }),
  /** Also called capture: what was exposed becomes what it really cost. */
  reconcile: object({ exposedUnits: Count, holdId: identifier(), realizedUnits: Count }),
  release: object({ holdId: identifier(), units: Count }),
  reverse: object({ holdId: identifier(), units: Count }),
})
export type BudgetEvent = Infer<typeof BudgetEvent>
type EventOf<K extends BudgetEvent['kind']> = Extract<BudgetEvent, { kind: K }>

export const BudgetRow = object({
  ...place,
  exposedUnits: Count,
  invocations: Count,
  realizedUnits: Count,
  /** Number of the event that changed it last; 0 before the first. */
  seq: Count,
})
export type BudgetRow = Infer<typeof BudgetRow>

export const BUDGET_HOLD_STATES = ['open', 'reconciled', 'released', 'reversed'] as const

export interface BudgetHold {
  readonly holdId: string
  readonly capabilityId: string
  readonly grantIndex: number
  readonly authorizedUnits: number
  readonly remainingUnits: number
  readonly realizedUnits: number
  readonly state: (typeof BUDGET_HOLD_STATES)[number]
}

/** Which limit stopped an authorization, in the order in which they are asked. */
export const BUDGET_DENIALS = ['invocations', 'cost_per_call', 'total_cost'] as const
export type BudgetDenial = (typeof BUDGET_DENIALS)[number]

/** The answer to an event, and to every repetition of it. */
export const BudgetOutcome = object({
  denial: nullable(oneOf(...BUDGET_DENIALS)),
  eventSeq: Count,
  holdState: nullable(oneOf(...BUDGET_HOLD_STATES)),
  row: BudgetRow,
})
export type BudgetOutcome = Infer<typeof BudgetOutcome>

/** What an event meets, and what it leaves behind. */
export interface Budget {
  readonly row: BudgetRow
  readonly hold: BudgetHold | undefined
}

/** The limits of a tool grant. @throws BrokerError `capability_denied` for caps in two currencies: nothing adds them up. */
export function limitsOf({
  max_cost_per_invocation: perCall,
  max_invocations,
  max_total_cost: total,
}: ToolGrant): BudgetLimits {
  if (perCall !== undefined && total !== undefined && perCall.currency !== total.currency) {
    throw new BrokerError(
      'capability_denied',
      'capability grant refused: expected its cost caps in one currency, got two',
    )
  }
  return {
    maximumInvocations: max_invocations ?? null,
    maximumUnits: total?.units ?? null,
    maximumUnitsPerCall: perCall?.units ?? null,
  }
}

/**
 * Whether the limits leave room for one more call of this cost. What is exposed counts as spent until it is known.
 * @returns the limit that does not; null when all do.
 */
export function denialOf(row: BudgetRow, { limits, units }: EventOf<'authorize'>): BudgetDenial | null {
  const { maximumInvocations, maximumUnits, maximumUnitsPerCall } = limits
  if (row.invocations >= (maximumInvocations ?? MAXIMUM_INTEGER)) return 'invocations'
  if (units > (maximumUnitsPerCall ?? MAXIMUM_INTEGER)) return 'cost_per_call'
  const committed = row.exposedUnits + row.realizedUnits
  return units > (maximumUnits ?? MAXIMUM_INTEGER) - committed ? 'total_cost' : null
}

/**
 * What an event makes of a budget. A denied authorization leaves both as they are.
 * @throws BrokerError `invariant` for a hold id that is taken, `conflict` for a hold that is not open or not of these units.
 */
export function applyBudgetEvent(
  budget: Budget,
  event: BudgetEvent,
): Budget & { readonly denial: BudgetDenial | null } {
  if (event.kind === 'authorize') return authorized(budget, event)
  return { ...ended(budget.row, openHold(budget.hold, event.holdId), event), denial: null }
}

function authorized({ hold, row }: Budget, event: EventOf<'authorize'>) {
  const { capabilityId, grantIndex, holdId, units } = event
  if (hold !== undefined) {
    throw new BrokerError('invariant', `budget hold ${holdId} refused: expected a new id, got a known one`)
  }
  const denial = denialOf(row, event)
  if (denial !== null) return { denial, hold, row }
  const opened: BudgetHold = {
    authorizedUnits: units,
    capabilityId,
    grantIndex,
    holdId,
    realizedUnits: 0,
    remainingUnits: units,
    state: 'open',
  }
  const debited = { ...row, exposedUnits: row.exposedUnits + units, invocations: row.invocations + 1 }
  return { denial, hold: opened, row: debited }
}

function ended(row: BudgetRow, hold: BudgetHold, event: Exclude<BudgetEvent, { kind: 'authorize' }>): Budget {
  switch (event.kind) {
    case 'reverse': {
      assertUnits(hold, hold.remainingUnits, event.units)
      const given = { ...without(row, event.units), invocations: row.invocations - 1 }
      return { hold: { ...hold, remainingUnits: 0, state: 'reversed' }, row: given }
    }
    case 'release': {
      assertUnits(hold, Math.min(event.units, hold.remainingUnits), event.units)
      const remainingUnits = hold.remainingUnits - event.units
      const state = remainingUnits === 0 ? 'released' : 'open'
      return { hold: { ...hold, remainingUnits, state }, row: without(row, event.units) }
    }
    case 'reconcile':
      return reconciled(row, hold, event)
  }
}

function reconciled(row: BudgetRow, hold: BudgetHold, event: EventOf<'reconcile'>): Budget {
  const { exposedUnits, realizedUnits } = event
  assertUnits(hold, hold.remainingUnits, exposedUnits)
  if (realizedUnits > exposedUnits) {
    refuse(hold.holdId, `a real cost of at most the ${exposedUnits} units held, got ${realizedUnits}`)
  }
  const spent = { ...without(row, exposedUnits), realizedUnits: row.realizedUnits + realizedUnits }
  return { hold: { ...hold, realizedUnits, remainingUnits: 0, state: 'reconciled' }, row: spent }
}

function without(row: BudgetRow, units: number): BudgetRow {
  return { ...row, exposedUnits: row.exposedUnits - units }
}

function openHold(hold: BudgetHold | undefined, holdId: string): BudgetHold {
  if (hold === undefined) refuse(holdId, 'one that was authorized, got none')
  if (hold.state !== 'open') refuse(holdId, `an open one, got one that is ${hold.state}`)
  return hold
}

/** Whoever ends a hold knows what it still holds. */
function assertUnits(hold: BudgetHold, held: number, units: number): void {
  if (held === units) return
  refuse(hold.holdId, `an event over the ${hold.remainingUnits} units that it still holds, got ${units}`)
}

function refuse(holdId: string, expected: string): never {
  throw new BrokerError('conflict', `budget hold ${holdId} refused: expected ${expected}`)
}
