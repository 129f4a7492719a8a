// Owns the stories of what may end a dispatch after its commit, and of what a restart finds.
import { brokerStorePath } from '../../../daemon/broker-store.js'
import { executeEnvelope } from '../../../protocol/attempt-request.js'
import type { BrokerWorld, WorldOptions } from '../broker-world.js'
import { answer, type ProviderBehaviour } from '../provider.js'
import { ask, seenOn, write } from '../raw-broker.js'
import { type AttemptOptions, TENANT } from '../test-attempt.js'
import { runSql } from '../test-store.js'
import { failAt } from './request.js'
import { type Stories, type Story, story } from './story.js'

/** Submits to a provider that behaves so. */
function answeredBy(behaviour: ProviderBehaviour, options: AttemptOptions = {}, world?: WorldOptions): Story {
  return story(async made => {
    made.provider.behave(behaviour)
    const attempt = await made.prepared(options)
    const descriptor = attempt.preparation.stream.takeDescriptor()
    await write(descriptor, attempt.preparation.stream.frame)
    return { seen: await seenOn(descriptor), attempt, decryptions: 1 }
  }, world)
}

const sql = (world: BrokerWorld, ...statements: string[]): void => {
  const { status, stderr } = runSql(brokerStorePath(world.stateDirectory), statements.join(';\n'))
  if (status !== 0) throw new Error(stderr)
}

/** Holds the run of the commit until a timeout of one millisecond has passed. */
function linger(reached: string): void {
  if (reached !== 'broker.dispatch_committed.before') return
  lingering = true
}
let lingering = false
function lingerAfter(reached: string): void {
  linger(reached)
  if (reached !== 'broker.dispatch_committed.after' || !lingering) return
  lingering = false
  const until = Date.now() + 5
  while (Date.now() < until) continue
}

const move = (state: string): string => `UPDATE attempts SET state = '${state}', version = version + 1`

export const DISPATCHED_STORIES: Stories = {
  'custody_fault at dispatched': story(async world => {
    const attempt = await world.prepared()
    sql(
      world,
      'DROP TRIGGER credentials_are_immutable',
      'UPDATE credentials SET sealed_secret = zeroblob(60)',
    )
    const descriptor = attempt.preparation.stream.takeDescriptor()
    await write(descriptor, attempt.preparation.stream.frame)
    return { seen: await seenOn(descriptor), attempt, decryptions: 1 }
  }),
  'request_not_sent at dispatched': answeredBy(
    () => undefined,
    { timeoutMs: 1 },
    { atCutpoint: lingerAfter },
  ),
  'credential_reflected at dispatched': answeredBy(({ request, socket }) => answer(socket, request.head)),
  'response_too_large at dispatched': answeredBy(({ socket }) => answer(socket, 'a'.repeat(70_000))),
  'response_rejected at dispatched': answeredBy(
    ({ socket }) => void socket.end('HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n'),
  ),
  'provider_lost at dispatched': answeredBy(({ socket }) => void socket.destroy()),
  'provider_timeout at dispatched': answeredBy(() => undefined, { timeoutMs: 300 }),
  'stop_hurried at dispatched': story(async world => {
    const attempt = await world.prepared()
    const descriptor = attempt.preparation.stream.takeDescriptor()
    const asked = new Promise<void>(resolve => world.provider.behave(() => resolve()))
    await write(descriptor, attempt.preparation.stream.frame)
    await asked
    const closing = world.broker.close()
    world.broker.hurry()
    const seen = await seenOn(descriptor)
    await closing
    return { seen, attempt, decryptions: 1 }
  }),
  'dispatch_fault at dispatched': answeredBy(
    () => undefined,
    {},
    { atCutpoint: failAt('broker.provider_written') },
  ),
}

export const START_STORIES: Stories = {
  'broker_restarted at start': story(async world => {
    const attempt = world.attempt()
    await attempt.register()
    await world.stopBroker()
    await world.start()
    return { seen: await ask(world, executeEnvelope(attempt.request, TENANT)), attempt }
  }),
  'outcome_lost at start': story(async world => {
    const attempt = world.attempt()
    await attempt.register()
    await world.stopBroker()
    // As a process leaves it that ends between its dispatch commit and its record.
    sql(world, move('prepared'), move('captured'), move('dispatch_committed'))
    await world.start()
    return { seen: await ask(world, executeEnvelope(attempt.request, TENANT)), attempt }
  }),
}
