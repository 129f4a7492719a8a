// What a report does to its call's budget, and what guards make of its output. Every story is told to one kernel; then it
// ends, and its budgets are read as they are on disk.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { kernelStorePath } from '../../../kernel/start-kernel.js'
import type { CallerReportBody } from '../../../protocol/caller-report.js'
import type { CapabilityToken } from '../../../protocol/capability-token.js'
import { NO_CONTENT_HASH } from '../../../protocol/kernel-receipt.js'
import type { ReportAnswer } from '../../../protocol/tool-call-rpc.js'
import { TestExecutor } from '../../support/caller-executor.js'
import type { TestKernel } from '../../support/kernel.js'
import { type KernelTables, openKernelTables } from '../../support/kernel-tables.js'
import { callKernel, callUnder, reservedCall, startWith, tokenOf } from '../../support/tool-call.js'

const executor = new TestExecutor()
const EURO = (units: number) => ({ currency: 'EUR', units })
const PRICED = { max_cost_per_invocation: EURO(10), max_total_cost: EURO(30) }
const TOO_LONG = { note: 'a needle that is far too long for the guard'.repeat(2) }
const CEILING = { aggregate_invocation_budget: { max_invocations: 3, scope: 'capability' } } as const

/** What was answered to the reports of one call, and what is looked up of it afterwards. */
interface Told {
  readonly answers: readonly ReportAnswer[]
  readonly holdId: string
  readonly next: string
  readonly token: CapabilityToken
}

let kernel: TestKernel
let tables: KernelTables
const told: Record<string, Told> = {}
beforeAll(async () => {
  const outputGuards = { jsonSchema: null, maximumBodyBytes: 64, secretScan: true }
  kernel = await callKernel({ callerExecutor: executor.pin, outputGuards })
  const priced = () => tokenOf(kernel, PRICED)
  told['real'] = await tell(priced(), { realized_cost: EURO(4) })
  told['unsaid'] = await tell(priced(), { realized_cost: null })
  told['nothing'] = await tell(priced(), { realized_cost: EURO(0) })
  told['beyond'] = await tell(
    priced(),
    { realized_cost: EURO(11) },
    { realized_cost: { currency: 'USD', units: 1 } },
  )
  told['unbounded'] = await tell(tokenOf(kernel, { max_invocations: 1 }), { realized_cost: EURO(900) })
  told['ceiling'] = await tell(tokenOf(kernel, {}, CEILING), {})
  const withheld = { claim_id: 'claim', output: TOO_LONG }
  told['withheld'] = await tell(priced(), withheld, withheld)
  kernel.client.close()
  await kernel.running.close()
  tables = await openKernelTables(kernelStorePath(kernel.config), kernel.folder)
})
afterAll(() => tables.remove())

async function tell(token: CapabilityToken, ...reports: readonly Partial<CallerReportBody>[]): Promise<Told> {
  const request = callUnder(token)
  const ready = await reservedCall(kernel, request)
  const { authorization, operationId, reason } = await startWith(kernel, request, ready)
  if (authorization === null) throw new Error(`expected an authorization, got ${reason}`)
  const answers: ReportAnswer[] = []
  for (const changes of reports) {
    const report = executor.report(authorization, changes)
    answers.push(await kernel.client.call('call_reconcile', { authorization, report }))
  }
  const { explanation } = await kernel.client.call('explain', { id: operationId as string })
  const { budget_hold_id: holdId } = authorization.authorization.committed
  return { answers, holdId, next: explanation.next, token }
}

const of = (story: string): Told => told[story] as Told

function budgetOf({ holdId, token }: Told) {
  return tables.commit(move => ({
    ceiling: move.budgets.hold(`${holdId}:aggregate`),
    hold: move.budgets.hold(holdId),
    row: move.budgets.row(token.id, 0),
  }))
}

describe('the budget of a reported call', () => {
  test.each([
    ['its real cost', 'real', 4],
    ['all that was held, where nobody says what it cost', 'unsaid', 10],
    ['nothing, where it cost nothing', 'nothing', 0],
  ])('is spent by %s', async (_what, story, realizedUnits) => {
    expect(of(story).answers).toMatchObject([{ state: 'completed' }])
    const { hold, row } = await budgetOf(of(story))
    expect(hold).toMatchObject({ realizedUnits, remainingUnits: 0, state: 'reconciled' })
    expect(row).toMatchObject({ exposedUnits: 0, invocations: 1, realizedUnits })
  })

  test('is not overdrawn: a cost beyond the hold, or in another currency, changes nothing', async () => {
    const refused = {
      code: 'conflict',
      output: null,
      reason: expect.stringContaining('chio operation reconcile') as string,
      state: 'awaiting_caller_report',
    }
    expect(of('beyond').answers).toMatchObject([refused, refused])
    const { hold, row } = await budgetOf(of('beyond'))
    expect(hold).toMatchObject({ remainingUnits: 10, state: 'open' })
    expect(row).toMatchObject({ exposedUnits: 10, invocations: 1, realizedUnits: 0 })
  })

  test('under a grant without a bound of cost counts the invocation alone; the receipt says the cost', async () => {
    const [answer] = of('unbounded').answers
    expect(answer?.receipt?.metadata).toMatchObject({ realized_cost: EURO(900) })
    const { hold, row } = await budgetOf(of('unbounded'))
    expect(hold).toMatchObject({ realizedUnits: 0, state: 'reconciled' })
    expect(row).toMatchObject({ exposedUnits: 0, invocations: 1, realizedUnits: 0 })
  })

  test('ends together with its place under a ceiling', async () => {
    const { ceiling, hold } = await budgetOf(of('ceiling'))
    expect([ceiling?.state, hold?.state]).toEqual(['reconciled', 'reconciled'])
  })
})

test('an output that a guard refuses is withheld, under the same receipt again, and what was held is given back', async () => {
  const { answers, next } = of('withheld')
  const [first, again] = answers
  expect(first).toMatchObject({
    check: 'output',
    code: 'guard_denied',
    output: null,
    reason: expect.stringContaining('output guard size') as string,
    receipt: {
      content_hash: NO_CONTENT_HASH,
      decision: { guard: 'size', verdict: 'deny' },
      evidence: [{ guard_name: 'size', verdict: false }],
      metadata: { attested_by: 'executor' },
    },
    state: 'denied_after_delivery',
    verdict: 'deny',
  })
  expect(again).toEqual(first)
  expect(JSON.stringify(answers)).not.toContain('needle')
  expect(next).toContain('the output is kept from you')
  const { hold, row } = await budgetOf(of('withheld'))
  expect(hold).toMatchObject({ realizedUnits: 0, remainingUnits: 0, state: 'released' })
  expect(row).toMatchObject({ exposedUnits: 0, invocations: 1, realizedUnits: 0 })
})
