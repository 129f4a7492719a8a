// Owns the stories that lead to a cutpoint: what a host, an administrator or nobody at all does until then. Runs are
// the library's own, in this process; tools run in real cages.
// Must never: start what died; that is whoever tells the story.
import { cagePolicy, resolveTool } from '../../cage/index.js'
import { authorize, buildRequest, reserve, type ReservedOperation } from '../../host/admission.js'
import { runBrokered } from '../../host/brokered-run.js'
import { admit, prepare, start, submit } from '../plain-operation.js'
import { type CrashWorld, TIMEOUT_MS } from './crash-world.js'
import { type Told, toldByError, toldByRun } from './told.js'

/** A run of the library, as `chio run` makes it. */
export async function runOnce(world: CrashWorld, body: string, tool?: readonly string[]): Promise<Told> {
  const { aheadMs: _ahead, tool: command, ...order } = world.order(body, tool)
  const [program = '', ...args] = command
  const identity = world.trial.identities.cage
  try {
    const run = await runBrokered(world.session, {
      ...order,
      body: Buffer.from(body),
      headers: [],
      toolGraceMs: 1_000,
      cage: cagePolicy({ ...resolveTool(program, args), exec: 'allowed', identity }),
    })
    return toldByRun(run)
  } catch (error) {
    return toldByError(error)
  }
}

/** A run that finds the slot held by another, and gives its attempt back. */
export async function runBeside(world: CrashWorld, body: string): Promise<Told> {
  const other = await admit(world, Buffer.from(JSON.stringify({ holderOf: body })))
  const stream = await prepare(world, other)
  try {
    return await runOnce(world, body)
  } finally {
    stream.close()
  }
}

/** A run whose provider says nothing until the run is over. */
export async function runUnanswered(world: CrashWorld, body: string): Promise<Told> {
  let answer: () => void = () => undefined
  const silence = new Promise<void>(resolve => {
    answer = resolve
  })
  world.provider.behave(() => silence)
  try {
    return await runOnce(world, body)
  } finally {
    world.provider.behave(() => undefined)
    answer()
  }
}

/** A reservation that is taken back. */
export async function reserveAndCancel(world: CrashWorld, body: string): Promise<Told> {
  const { operationId } = await reserveOnly(world, body)
  try {
    await world.session.kernel.call('cancel', { operationId })
    return { exitCode: 0, outcome: 'not_started', code: null, sentence: 'cancelled' }
  } catch (error) {
    return toldByError(error)
  }
}

/** What a host leaves that dies after its registration. */
export async function leaveRegistered(world: CrashWorld, body: string): Promise<void> {
  const { grant, session } = world
  await admit({ grant, session, timeoutMs: TIMEOUT_MS }, Buffer.from(body))
}

/** What a host leaves that dies once the end is on record. */
export async function leaveRecorded(world: CrashWorld, body: string): Promise<void> {
  const { grant, session } = world
  const admitted = await admit({ grant, session, timeoutMs: TIMEOUT_MS }, Buffer.from(body))
  const stream = await prepare(world, admitted)
  await start(world, admitted)
  await submit(world, stream)
}

/** What a host leaves that starts and never reaches the broker. */
export async function leaveUnregistered(world: CrashWorld, body: string): Promise<void> {
  const reservation = await reserveOnly(world, body)
  await start(world, await authorize(world.session, reservation))
}

function reserveOnly(world: CrashWorld, body: string): Promise<ReservedOperation> {
  const { grant, session } = world
  const { grantId } = grant
  const requested = { grantId, body: Buffer.from(body), headers: [], timeoutMs: TIMEOUT_MS }
  return reserve(session, buildRequest(grant, requested), grantId)
}
