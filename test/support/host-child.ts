// Owns hosts in processes of their own: one brokered run, which stands still before or after a named step until it is
// killed or told to go on. What runs is the compiled host; only the standing still is ours.
import type { Trial } from '../../selftest/trial.js'
import { type ChildOptions, type CompiledChild, startChild } from './compiled-child.js'
import type { HostStep } from './host-steps.js'

const SCRIPT = `
const order = JSON.parse(args[0])
const { Timeline } = await compiled('host/timeline')
const { runBrokered } = await compiled('host/brokered-run')
const { cagePolicy, resolveTool } = await compiled('cage/index')
const { layoutOf } = await compiled('system/layout')
const { readIdentities } = await compiled('system/identities')
const { openTrialHost } = await compiled('selftest/trial')
const { outcomeMembers } = await compiled('host/run-record')
const step = Timeline.prototype.step
const stand = moment => moment === order.moment
  ? (say({ stands: moment }), new Promise(() => setInterval(() => {}, 1_000)))
  : undefined
Timeline.prototype.step = async function (name, run) {
  await stand('before ' + name)
  const value = await step.call(this, name, run)
  if (value?.operationId) say({ operationId: value.operationId })
  await stand('after ' + name)
  return value
}
const layout = layoutOf(order.state)
const session = openTrialHost(layout)
const [program, ...rest] = order.tool
const { cage: identity } = readIdentities(layout.identities)
const cage = cagePolicy({ ...resolveTool(program, rest), exec: 'allowed', identity })
const body = Buffer.from('{"title":"it broke"}')
try {
  const run = await runBrokered(session, { grantId: order.grantId, body, headers: [], timeoutMs: order.timeoutMs, cage,
    waitForSlotMs: 20_000 })
  say({ ended: run.operation?.state ?? null, ...outcomeMembers(run.outcome) })
} catch (error) {
  say({ refused: error.code, outcome: error.outcome, sentence: error.message })
}
session.close()
`

export type HostMoment = `${'after' | 'before'} ${HostStep}`

export interface HostOrder {
  readonly grantId: string
  readonly tool: readonly string[]
  readonly timeoutMs: number
  readonly moment?: HostMoment
}

/** Starts a run of its own process on a trial. */
export function startHost(trial: Trial, order: HostOrder, options: ChildOptions = {}): CompiledChild {
  return startChild(SCRIPT, [JSON.stringify({ ...order, state: trial.layout.state })], options)
}

/** Lets it run to its moment. @returns the operation that it had reserved by then, if any. */
export async function untilItStands(host: CompiledChild): Promise<string | undefined> {
  let operationId: string | undefined
  for (;;) {
    const said = await host.next()
    if (said['stands'] !== undefined) return operationId
    const { operationId: reserved } = said
    if (typeof reserved !== 'string') throw new Error(`the host ended first: ${JSON.stringify(said)}`)
    operationId = reserved
  }
}

/** Its last word: how the run ended. */
export async function lastWord(host: CompiledChild): Promise<Record<string, unknown>> {
  for (;;) {
    const said = await host.next()
    if (said['operationId'] === undefined && said['stands'] === undefined) return said
  }
}
