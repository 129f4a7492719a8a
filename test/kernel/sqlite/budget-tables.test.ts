// Budgets in their tables, against a plain model: random events, repeated ones, transactions that end in the middle, and
// openings between them. Whatever happens, nothing is counted twice, nothing leaks, and no limit is passed.
import fc from 'fast-check'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { BudgetEvent, BudgetOutcome } from '../../../kernel/calls/budget.js'
import { fullCount, FULL_RUN_TIMEOUT_MS } from '../../support/counts.js'
import { type KernelTables, makeKernelTables } from '../../support/kernel-tables.js'
import { runSql } from '../../support/test-store.js'

let tables: KernelTables
beforeEach(async () => {
  tables = await makeKernelTables()
})
afterEach(() => tables.remove())

const LIMITS = { maximumInvocations: 3, maximumUnits: 20, maximumUnitsPerCall: 9 }
const authorize = (holdId: string, units: number, capabilityId = 'capability'): BudgetEvent => ({
  kind: 'authorize',
  capabilityId,
  grantIndex: 0,
  holdId,
  limits: LIMITS,
  units,
})
const apply = (eventId: string, event: BudgetEvent): Promise<BudgetOutcome> =>
  tables.commit(move => move.budgets.apply(eventId, event))

test('an event that is repeated is answered as it was the first time and counts once', async () => {
  const first = await apply('hold:authorize', authorize('hold', 5))
  await apply('other:authorize', authorize('other', 5))
  await tables.reopen()
  expect(await apply('hold:authorize', authorize('hold', 5))).toEqual(first)
  expect(await tables.commit(move => move.budgets.row('capability', 0))).toMatchObject({
    exposedUnits: 10,
    invocations: 2,
  })
})

test('an event id with another request is refused and changes nothing', async () => {
  await apply('hold:authorize', authorize('hold', 5))
  await expect(apply('hold:authorize', authorize('hold', 6))).rejects.toMatchObject({ code: 'invariant' })
  expect(await tables.commit(move => move.budgets.row('capability', 0))).toMatchObject({ exposedUnits: 5 })
})

test('a denial is kept with a number of its own and stays a denial', async () => {
  for (const id of ['1', '2', '3']) await apply(`${id}:authorize`, authorize(id, 1))
  const denied = await apply('4:authorize', authorize('4', 1))
  expect(denied).toMatchObject({ denial: 'invocations', eventSeq: 4, holdState: null })
  await apply('1:reverse', { kind: 'reverse', holdId: '1', units: 1 })
  expect(await apply('4:authorize', authorize('4', 1))).toEqual(denied)
  expect(await apply('5:authorize', authorize('5', 1))).toMatchObject({ denial: null, eventSeq: 6 })
})

test('calls that come at once spend no more than there is', async () => {
  const asked = Array.from({ length: 20 }, (_, index) => apply(`${index}:a`, authorize(`${index}`, 1)))
  const outcomes = await Promise.all(asked)
  expect(outcomes.filter(({ denial }) => denial === null)).toHaveLength(LIMITS.maximumInvocations)
})

test('a transaction that ends in the middle leaves no hold and no event', async () => {
  const broken = tables.commit(move => {
    move.budgets.apply('hold:authorize', authorize('hold', 5))
    throw new RangeError('the process ends here')
  })
  await expect(broken).rejects.toThrow('the process ends here')
  await tables.reopen()
  expect(await apply('hold:authorize', authorize('hold', 5))).toMatchObject({ denial: null, eventSeq: 1 })
})

test('the limits of a budget are those of its first call', async () => {
  await apply('hold:authorize', authorize('hold', 5))
  const wider = { ...authorize('wider', 5), limits: { ...LIMITS, maximumInvocations: 100 } } as BudgetEvent
  await expect(apply('wider:authorize', wider)).rejects.toMatchObject({ code: 'invariant' })
})

test.each([
  ['UPDATE budgets SET invocations = 4', 'CHECK'],
  ['UPDATE budgets SET exposed_units = 21', 'CHECK'],
  ['UPDATE budgets SET maximum_invocations = 100', 'the limits of a budget are fixed'],
  ['DELETE FROM budgets', 'budgets are kept'],
  ['DELETE FROM budget_holds', 'holds are kept'],
  [`UPDATE budget_holds SET state = 'open'`, 'a hold ends once'],
  ['DELETE FROM budget_events', 'append-only'],
])('the tables refuse by themselves: %s', async (statement, reason) => {
  await apply('hold:authorize', authorize('hold', 5))
  await apply('hold:reverse', { kind: 'reverse', holdId: 'hold', units: 5 })
  const { status, stderr } = runSql(tables.path, statement)
  expect(status).not.toBe(0)
  expect(stderr).toContain(reason)
})

interface ModelHold {
  readonly at: string
  left: number
  state: 'open' | 'ended'
}

/** The same accounts without a database: what the tables have to agree with. */
class Model {
  readonly rows = new Map<string, { count: number; exposed: number; realized: number }>()
  readonly holds = new Map<string, ModelHold>()
  readonly answered = new Map<string, { readonly asked: string; readonly outcome: BudgetOutcome | null }>()

  row(at: string) {
    const known = this.rows.get(at) ?? { count: 0, exposed: 0, realized: 0 }
    this.rows.set(at, known)
    return known
  }

  /** @returns whether it is allowed; null where it must be refused. */
  act(event: BudgetEvent): boolean | null {
    const hold = this.holds.get(event.holdId)
    if (event.kind === 'authorize') {
      if (hold !== undefined) return null
      const row = this.row(event.capabilityId)
      const fits =
        row.count < LIMITS.maximumInvocations &&
        event.units <= LIMITS.maximumUnitsPerCall &&
        row.exposed + row.realized + event.units <= LIMITS.maximumUnits
      if (!fits) return false
      row.count += 1
      row.exposed += event.units
      this.holds.set(event.holdId, { at: event.capabilityId, left: event.units, state: 'open' })
      return true
    }
    if (hold?.state !== 'open') return null
    return this.#end(hold, event)
  }

  #end(hold: ModelHold, event: Exclude<BudgetEvent, { kind: 'authorize' }>): true | null {
    const row = this.row(hold.at)
    const units = event.kind === 'reconcile' ? event.exposedUnits : event.units
    if (event.kind === 'release' ? units > hold.left : units !== hold.left) return null
    if (event.kind === 'reconcile' && event.realizedUnits > units) return null
    row.exposed -= units
    hold.left -= units
    if (event.kind === 'reverse') row.count -= 1
    if (event.kind === 'reconcile') row.realized += event.realizedUnits
    if (hold.left === 0 || event.kind !== 'release') hold.state = 'ended'
    return true
  }
}

const units = fc.integer({ min: 0, max: 10 })
const holdId = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f')
const event: fc.Arbitrary<BudgetEvent> = fc.oneof(
  fc
    .tuple(holdId, units, fc.constantFrom('left', 'right'))
    .map(([id, cost, capability]) => authorize(id, cost, capability)),
  fc.record({ kind: fc.constant('reverse' as const), holdId, units }),
  fc.record({ kind: fc.constant('release' as const), holdId, units }),
  fc.record({
    kind: fc.constant('reconcile' as const),
    exposedUnits: units,
    holdId,
    realizedUnits: units,
  }),
)
interface Step {
  readonly event: BudgetEvent
  readonly eventId: string
  readonly end: 'commit' | 'crash' | 'reopen'
}
const step: fc.Arbitrary<Step> = fc.record({
  event,
  eventId: fc.integer({ min: 0, max: 30 }).map(number => `event-${number}`),
  end: fc.constantFrom<Step['end'][]>('commit', 'commit', 'commit', 'commit', 'crash', 'crash', 'reopen'),
})

/** Every run has ids of its own in the one store. */
function ofRun({ end, event: asked, eventId }: Step, run: number): Step {
  const holdId = `${run}-${asked.holdId}`
  const own =
    asked.kind === 'authorize'
      ? { ...asked, capabilityId: `${run}-${asked.capabilityId}`, holdId }
      : { ...asked, holdId }
  return { end, event: own, eventId: `${run}-${eventId}` }
}

async function take(model: Model, { event: asked, eventId, end }: Step) {
  if (end === 'reopen') await tables.reopen()
  if (end === 'crash') {
    const broken = tables.commit(move => {
      move.budgets.apply(eventId, asked)
      throw new RangeError('crash')
    })
    await broken.catch(() => undefined)
    return
  }
  const known = model.answered.get(eventId)
  const got = await apply(eventId, asked).catch((error: unknown) => (error as { code: string }).code)
  const text = JSON.stringify(asked)
  if (known !== undefined) {
    expect(got).toEqual(known.asked === text ? known.outcome : 'invariant')
    return
  }
  const allowed = model.act(asked)
  if (allowed === null) return expect(['conflict', 'invariant']).toContain(got)
  const outcome = got as BudgetOutcome
  expect(outcome.denial === null).toBe(allowed)
  model.answered.set(eventId, { asked: text, outcome })
}

test(
  'random events with crashes and openings leave the accounts of a plain model',
  async () => {
    let run = 0
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40 }), async steps => {
        run += 1
        const model = new Model()
        for (const one of steps) await take(model, ofRun(one, run))
        for (const [capability, { count, exposed, realized }] of model.rows) {
          const row = await tables.commit(move => move.budgets.row(capability, 0))
          const counted = { exposedUnits: exposed, invocations: count, realizedUnits: realized }
          expect(row).toMatchObject(counted)
        }
      }),
      { numRuns: fullCount(6, 300) },
    )
  },
  FULL_RUN_TIMEOUT_MS,
)
