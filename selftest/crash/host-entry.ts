// A host under test: takes orders line by line on standard input, runs each to its end, and says what `chio run`
// would have told. It stands still at a named moment until it is killed there.
// Must never: be started by anything but a crash run.
import { writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { cagePolicy, resolveTool } from '../../cage/index.js'
import { runBrokered } from '../../host/brokered-run.js'
import type { HostSession } from '../../host/session.js'
import { readIdentities } from '../../system/identities.js'
import { layoutOf } from '../../system/layout.js'
import { openTrialHost } from '../trial.js'
import type { HostOrder, HostWord } from './host-process.js'
import { measured } from '../soak/measured.js'
import { runPlain } from '../soak/plain-run.js'
import { Steering, type SteeringOrder } from './steering.js'
import { toldByError, toldByRun } from './told.js'

const STANDARD_OUTPUT = 1
const [state = '', aheadMs = '0'] = process.argv.slice(2)
const say = (word: HostWord): void => void writeSync(STANDARD_OUTPUT, `${JSON.stringify(word)}\n`)

let standsAt: string | undefined

async function atMoment(moment: string): Promise<void> {
  if (moment !== standsAt) return
  say({ stands: moment })
  await new Promise<never>(() => undefined)
}

const layout = layoutOf(state)
const steering = new Steering({ endAt: null, aheadMs: Number(aheadMs) })
const session: HostSession = openTrialHost(layout, { clock: steering.clock, atMoment })
const { cage: identity } = readIdentities(layout.identities)

async function obey(order: HostOrder): Promise<void> {
  standsAt = order.standsAt
  if (order.aheadMs !== undefined) steering.aheadMs = order.aheadMs
  if (order.way !== undefined) {
    const { grantId, body, way, timeoutMs, waitForSlotMs = 0 } = order
    return say({ told: await runPlain(session, { grantId, body, way, timeoutMs, waitForSlotMs }) })
  }
  const [program = '', ...args] = order.tool
  try {
    const run = await runBrokered(session, {
      grantId: order.grantId,
      body: Buffer.from(order.body),
      headers: [],
      timeoutMs: order.timeoutMs,
      waitForSlotMs: order.waitForSlotMs ?? 0,
      toolGraceMs: 1_000,
      cage: cagePolicy({ ...resolveTool(program, args), exec: 'allowed', identity }),
    })
    say({ told: toldByRun(run) })
  } catch (error) {
    say({ told: toldByError(error) })
  }
}

createInterface({ input: process.stdin })
  .on('line', line => {
    const order = JSON.parse(line) as HostOrder | SteeringOrder
    if ('body' in order) void obey(order)
    else if (order.measure) say({ measured: measured() })
    else steering.steer(order)
  })
  .on('close', () => session.close())
say({ ready: true })
