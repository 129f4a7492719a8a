// Owns hosts in processes of their own: one brokered run, which stands still before or after a named step until it is
// killed or told to go on. What runs is the compiled host; only the standing still is ours.
import type { Trial } from '../../selftest/trial.js'
import { type ChildOptions, type CompiledChild, startChild } from './compiled-child.js'
import type { HostStep } from './host-steps.js'

const SCRIPT = `
const { state, runs } = JSON.parse(args[0])
const { Timeline } = await compiled('host/timeline')
const { runBrokered } = await compiled('host/brokered-run')
const { cagePolicy, resolveTool } = await compiled('cage/index')
const { layoutOf } = await compiled('system/layout')
const { readIdentities } = await compiled('system/identities')
const { openTrialHost } = await compiled('selftest/trial')
const { outcomeMembers } = await compiled('host/run-record')
const step = Timeline.prototype.step
let moment
const stand = async now => {
  if (now !== moment) return
  say({ stands: now })
  await new Promise(resolve => process.stdin.once('data', resolve))
}
Timeline.prototype.step = async function (name, run) {
  await stand('before ' + name)
  const value = await step.call(this, name, run)
  if (value?.operationId) say({ operationId: value.operationId })
  await stand('after ' + name)
  return value
}
const layout = layoutOf(state)
const { cage: identity } = readIdentities(layout.identities)
const session = openTrialHost(layout)
const body = Buffer.from('{"title":"it broke"}')
for (const order of runs) {
  moment = order.moment
  say({ run: order.name })
  const [program, ...rest] = order.tool
  const cage = cagePolicy({ ...resolveTool(program, rest), exec: 'allowed', identity })
  const { grantId, timeoutMs, waitForSlotMs } = order
  try {
    const run = await runBrokered(session, { grantId, body, headers: [], timeoutMs, cage, waitForSlotMs })
    say({ ended: run.operation?.state ?? null, ...outcomeMembers(run.outcome) })
  } catch (error) {
    say({ refused: error.code, outcome: error.outcome, sentence: error.message })
  }
}
session.close()
process.stdin.unref()
`

export type HostMoment = `${'after' | 'before'} ${HostStep}`

export interface HostOrder {
  readonly name?: string
  readonly grantId: string
  readonly tool: readonly string[]
  readonly timeoutMs: number
  readonly moment?: HostMoment
  /** Others of the same story hold the slot for a while. */
  readonly waitForSlotMs?: number
}

/** Starts runs, one after the other, in a process of its own on a trial. */
export function startHost(
  trial: Trial,
  orders: readonly HostOrder[],
  options: ChildOptions = {},
): CompiledChild {
  const runs = orders.map(order => ({ name: 'run', waitForSlotMs: 20_000, ...order }))
  return startChild(SCRIPT, [JSON.stringify({ state: trial.layout.state, runs })], options)
}

/** Lets a host that stands go on. */
export function goOn(host: CompiledChild): void {
  host.process.stdin?.write('\n')
}

/** Lets it run to its moment. @returns the operation that it had reserved by then, if any. */
export async function untilItStands(host: CompiledChild): Promise<string | undefined> {
  let operationId: string | undefined
  for (;;) {
    const said = await host.next()
    if (said['run'] !== undefined) continue
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
    if (said['ended'] !== undefined || said['refused'] !== undefined) return said
  }
}
