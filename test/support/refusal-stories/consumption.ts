// Owns the stories of the exact frame in time, refused by what the broker asks and looks at again before it commits.
import { setTimeout as delay } from 'node:timers/promises'
import { attemptEnvelope } from '../../../client/broker-client.js'
import type { RefusalReason } from '../../../daemon/refusals.js'
import { brokerStorePath } from '../../../daemon/broker-store.js'
import { closeDescriptor } from '../../../native/index.js'
import { executeFrameBody } from '../../../protocol/attempt-request.js'
import { encodeRequest } from '../../../protocol/envelope.js'
import { encodeFrame } from '../../../protocol/frame.js'
import { inOrder, rejected } from '../authority.js'
import type { BrokerWorld, WorldOptions } from '../broker-world.js'
import { SteppedClock } from '../clock.js'
import { testLeaf } from '../certificates.js'
import { orphanedConnector } from '../orphaned-connector.js'
import { startProvider } from '../provider.js'
import { seenOn, write } from '../raw-broker.js'
import { type AttemptOptions, TENANT } from '../test-attempt.js'
import { holdStore, runSql } from '../test-store.js'
import { ended, revokedAtAuthority, slowParent } from './preparation.js'
import { failAt } from './request.js'
import { type Stories, type Story, story } from './story.js'

type Turn = (world: BrokerWorld, attempt: Awaited<ReturnType<BrokerWorld['prepared']>>) => unknown

/** Prepares correctly, lets one thing turn, then submits the exact frame. */
function turned(turn: Turn, options: AttemptOptions = {}, world?: WorldOptions): Story {
  return story(async made => {
    const attempt = await made.prepared(options)
    await turn(made, attempt)
    const descriptor = attempt.preparation.stream.takeDescriptor()
    await write(descriptor, attempt.preparation.stream.frame)
    return { seen: await seenOn(descriptor), attempt }
  }, world)
}

/** Submits, and acts while the broker asks the authority. */
function whileAsking(act: Turn, answerAfter = true): Story {
  return story(async world => {
    const attempt = await world.prepared()
    const answered = slowParent(world)
    const descriptor = attempt.preparation.stream.takeDescriptor()
    await write(descriptor, attempt.preparation.stream.frame)
    await answered.asked
    const acted = act(world, attempt)
    const seen = await seenOn(descriptor)
    await acted
    if (answerAfter) answered.go()
    return { seen, attempt }
  })
}

/** The peer leaves, in its own way, while the broker asks. */
function leaving(reason: RefusalReason, leave: (descriptor: number) => Promise<unknown> | void): Story {
  return story(async world => {
    const attempt = await world.prepared()
    const answered = slowParent(world)
    const descriptor = attempt.preparation.stream.takeDescriptor()
    await write(descriptor, attempt.preparation.stream.frame)
    await answered.asked
    await leave(descriptor)
    await ended(world, reason)
    answered.go()
    return { attempt }
  })
}

const sql = (world: BrokerWorld, text: string): void => {
  const { status, stderr } = runSql(brokerStorePath(world.stateDirectory), text)
  if (status !== 0) throw new Error(stderr)
}
const clock = new SteppedClock()

export const CONSUMPTION_STORIES: Stories = {
  'parent_not_live at consumption': turned(world =>
    world.authority.behave('verify_live_parent', () => rejected),
  ),
  'revoked_by_authority at consumption': turned(world => revokedAtAuthority(world)),
  'revoked_by_broker at consumption': turned(world => world.revoke('grant-late'), { grantId: 'grant-late' }),
  'authority_unreachable at consumption': turned(world => world.authority.close()),
  'request_refused at consumption': turned(
    () => clock.step(4_000),
    { capabilityLifetimeSeconds: 4 },
    { clock },
  ),
  'credential_unavailable at consumption': turned(world => world.disable()),
  'destination_refused at consumption': turned(
    () => undefined,
    { url: 'https://private.test/issues' },
    {
      lookupHost: () => Promise.resolve(['10.0.0.1']),
    },
  ),
  'connector_gone at consumption': story(async world => {
    const attempt = world.attempt()
    await attempt.register()
    const prepare = attemptEnvelope('prepare_connection', attempt.authorized('prepare'), TENANT)
    const frame = encodeFrame(executeFrameBody(attempt.request, TENANT))
    const connector = orphanedConnector(world.socketPath, encodeFrame(encodeRequest(prepare)), frame)
    while (world.broker.slotStatus().state !== 'waiting') await delay(5)
    const answered = slowParent(world)
    connector.write()
    await answered.asked
    await connector.leave()
    answered.go()
    return { seen: await connector.seen(), attempt }
  }),
  'released at consumption': whileAsking((_world, attempt) => attempt.release()),
  'broker_stopping at consumption': whileAsking(world => world.broker.close()),
  'internal_fault at consumption': turned(
    () => undefined,
    {},
    {
      atCutpoint: failAt('broker.dispatch_committed.before'),
    },
  ),
  'deadline_expired at consumption': story(
    async world => {
      const attempt = await world.prepared({ capabilityLifetimeSeconds: 2 })
      world.authority.behave('query_execution_hold', () => undefined)
      const descriptor = attempt.preparation.stream.takeDescriptor()
      await write(descriptor, attempt.preparation.stream.frame)
      return { seen: await seenOn(descriptor), attempt }
    },
    { authorityTimeoutMs: 10_000 },
  ),
  'stream_left at consumption': leaving('stream_left', descriptor => closeDescriptor(descriptor)),
  'surplus_bytes at consumption': leaving('surplus_bytes', async descriptor => {
    await write(descriptor, Buffer.from('x'))
    await seenOn(descriptor)
  }),
  'hold_not_captured at consumption': turned(world =>
    world.authority.behave('query_execution_hold', () => ({ kind: 'hold', response: 'held' })),
  ),
  'revocation_set_changed at consumption': turned(world =>
    world.authority.behave('query_execution_hold', operation => {
      const result = inOrder(world.keys.authority)(operation)
      if (result.kind !== 'hold' || typeof result.response === 'string') return result
      const captured = { ...result.response.captured, checkedRevocationSetDigest: 'b'.repeat(64) }
      return { kind: 'hold', response: { captured } }
    }),
  ),
  'duplicate_state at consumption': turned(world =>
    sql(world, "UPDATE attempts SET state = 'failed', version = version + 1"),
  ),
  'quota_spent at consumption': story(async world => {
    const options = { grantId: 'grant-once', grantMaximum: 1 }
    const first = await world.prepared(options)
    const once = first.preparation.stream.takeDescriptor()
    await write(once, first.preparation.stream.frame)
    await seenOn(once)
    const attempt = await world.prepared(options)
    const descriptor = attempt.preparation.stream.takeDescriptor()
    await write(descriptor, attempt.preparation.stream.frame)
    return { seen: await seenOn(descriptor), attempt, decryptions: 1 }
  }),
  'provider_unresolved at consumption': turned(
    () => undefined,
    { url: 'https://nowhere.test/issues' },
    { lookupHost: () => Promise.reject(Object.assign(new Error('none'), { code: 'ENOTFOUND' })) },
  ),
  'provider_unverified at consumption': story(async world => {
    const { port } = world.provider
    await world.provider.close()
    const { certPem: cert, keyPem: key } = testLeaf(['DNS:other.test'])
    const impostor = await startProvider({ port, tls: { cert, key } })
    const attempt = await world.prepared()
    const descriptor = attempt.preparation.stream.takeDescriptor()
    await write(descriptor, attempt.preparation.stream.frame)
    const seen = await seenOn(descriptor)
    await impostor.close()
    return { seen, attempt }
  }),
  'provider_unreachable at consumption': story(async world => {
    await world.provider.close()
    const attempt = await world.prepared()
    const descriptor = attempt.preparation.stream.takeDescriptor()
    await write(descriptor, attempt.preparation.stream.frame)
    return { seen: await seenOn(descriptor), attempt }
  }),
  'commit_failed at consumption': story(async world => {
    const attempt = await world.prepared()
    const holder = await holdStore(brokerStorePath(world.stateDirectory))
    const descriptor = attempt.preparation.stream.takeDescriptor()
    await write(descriptor, attempt.preparation.stream.frame)
    while (world.linesOf('commit_failed').length === 0) await delay(20)
    await holder.letGo()
    return { seen: await seenOn(descriptor), attempt }
  }),
}
