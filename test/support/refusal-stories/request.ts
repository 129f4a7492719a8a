// Owns the stories of ordinary operations that are refused, and of attempts that stay what they were.
import { setTimeout as delay } from 'node:timers/promises'
import { signingKey } from '../../../protocol/keys.js'
import { AdminAuthorization } from '../../../protocol/administration.js'
import { executeEnvelope } from '../../../protocol/attempt-request.js'
import { encode } from '../../../protocol/codec.js'
import { CredentialListRequest } from '../../../protocol/credential-mutation.js'
import type { BrokerOperation } from '../../../protocol/envelope.js'
import { AttemptStatusRequest } from '../../../protocol/status.js'
import { attemptEnvelope } from '../../../client/broker-client.js'
import { brokerStorePath } from '../../../daemon/broker-store.js'
import type { BrokerWorld } from '../broker-world.js'
import { answer } from '../provider.js'
import { ask, type Seen, soonBootNs } from '../raw-broker.js'
import { TENANT, type TestAttempt } from '../test-attempt.js'
import { holdStore } from '../test-store.js'
import { type Stories, story } from './story.js'

const list = encode(CredentialListRequest, { schema: 'chio.broker-credential-list-request.v1' })
const stranger = signingKey(Buffer.alloc(32, 9))

const say = (world: BrokerWorld, operation: BrokerOperation, attempt: TestAttempt): Promise<Seen> =>
  ask(world, attemptEnvelope(operation, attempt.authorized(ACTIONS[operation] ?? 'register'), TENANT))
const ACTIONS: Partial<Record<BrokerOperation, 'register' | 'prepare' | 'release'>> = {
  prepare_connection: 'prepare',
  register_attempt: 'register',
  release_attempt: 'release',
}
const administer = (
  world: BrokerWorld,
  operation: string,
  payload: Uint8Array,
  of = payload,
): Promise<Seen> => {
  const { authorization } = world.administered(operation, of, 'request-1')
  const bytes = encode(AdminAuthorization, authorization)
  return ask(world, { authorization: bytes, operation, payload, tenantScope: TENANT })
}
const asAdministrator = (
  world: BrokerWorld,
  { request, authorization }: ReturnType<BrokerWorld['administered']>,
): Promise<Seen> => ask(world, { ...request, authorization: encode(AdminAuthorization, authorization) })
const executed = async (world: BrokerWorld): Promise<TestAttempt> => {
  const attempt = await world.prepared()
  await attempt.preparation.stream.submit(soonBootNs())
  return attempt
}

export const REQUEST_STORIES: Stories = {
  'operation_unserved at request': story(async world => ({ seen: await administer(world, 'rotate', list) })),
  'broker_closing at request': story(async world => {
    const [reached, answered] = gate(world)
    const attempt = await world.prepared()
    const submitted = attempt.preparation.stream.submit(soonBootNs())
    await reached
    const closing = world.broker.close()
    const seen = await say(world, 'register_attempt', world.attempt())
    answered()
    await Promise.all([submitted, closing])
    return { seen }
  }),
  'call_capacity at request': story(async world => {
    const [reached, answered] = gate(world)
    const attempt = await world.prepared()
    const submitted = attempt.preparation.stream.submit(soonBootNs())
    await reached
    const replays: Promise<unknown>[] = []
    const other = world.attempt()
    let seen: Seen
    do {
      replays.push(ask(world, executeEnvelope(attempt.request, TENANT)))
      seen = await say(world, 'register_attempt', other)
    } while (seen !== 'closed' && seen.accepted)
    answered()
    await Promise.all([submitted, ...replays])
    return { seen }
  }),
  'payload_malformed at request': story(async world => ({
    seen: await ask(world, {
      authorization: Buffer.from('{}'),
      operation: 'register_attempt',
      payload: Buffer.from('{}'),
      tenantScope: TENANT,
    }),
  })),
  'document_malformed at request': story(async world => ({
    seen: await ask(world, {
      authorization: Buffer.from('{}'),
      operation: 'execute',
      payload: Buffer.from('{}'),
      tenantScope: TENANT,
    }),
  })),
  'authorization_missing at request': story(async world => {
    const envelope = executeEnvelope(world.attempt().request, TENANT)
    const other = executeEnvelope(world.attempt().request, TENANT)
    return { seen: await ask(world, { ...envelope, authorization: other.authorization }) }
  }),
  'registration_refused at request': story(async world => ({
    seen: await say(world, 'register_attempt', world.attempt({ quotas: 'own_only' })),
  })),
  'authorization_refused at request': story(async world => {
    const signed = world.attempt().authorized('register', stranger)
    return { seen: await ask(world, attemptEnvelope('register_attempt', signed, TENANT)) }
  }),
  'caller_key_mismatch at request': story(
    async world => ({ seen: await say(world, 'register_attempt', world.attempt()) }),
    { callerOfClients: stranger.publicKey },
  ),
  'request_unfit at request': story(async world => ({
    seen: await say(world, 'register_attempt', world.attempt({ capabilityLifetimeSeconds: 0 })),
  })),
  'administrator_refused at request': story(async world => ({
    seen: await administer(world, 'credential_list', list, Buffer.from('another payload')),
  })),
  'administrator_conflict at request': story(async world => {
    const { request, authorization } = world.administered('credential_list', list)
    await world.client.administer({ ...request, operation: 'credential_list' }, authorization)
    const bytes = encode(AdminAuthorization, authorization)
    const other = { authorization: bytes, operation: 'revoke', payload: list, tenantScope: TENANT }
    return { seen: await ask(world, other) }
  }),
  'credential_exists at request': story(async world => {
    return { seen: await asAdministrator(world, world.provisioning('another-secret', 1)) }
  }),
  'credential_unknown at request': story(async world => ({
    seen: await asAdministrator(world, world.disabling(7)),
  })),
  'attempt_differs at request': story(async world => {
    const attempt = world.attempt()
    await attempt.register()
    return { seen: await say(world, 'register_attempt', attempt.withGrantMaximum(5)) }
  }),
  'registration_ended at request': story(async world => {
    const attempt = world.attempt()
    await attempt.register()
    await attempt.release()
    return { seen: await say(world, 'register_attempt', attempt) }
  }),
  'attempt_dispatched at request': story(async world => ({
    seen: await say(world, 'release_attempt', await executed(world)),
  })),
  'attempt_unknown at request': story(async world => ({
    seen: await ask(world, {
      authorization: new Uint8Array(0),
      operation: 'attempt_status',
      payload: encode(AttemptStatusRequest, {
        attemptId: 'broker-attempt-none',
        schema: 'chio.broker-attempt-status-request.v1',
      }),
      tenantScope: TENANT,
    }),
  })),
  'attempt_pending at request': story(async world => {
    const attempt = world.attempt()
    await attempt.register()
    return { seen: await ask(world, executeEnvelope(attempt.request, TENANT)) }
  }),
  'outcome_unrecorded at request': story(async world => {
    const [reached, answered] = gate(world)
    const attempt = await world.prepared({ timeoutMs: 1_500 })
    const submitted = attempt.preparation.stream.submit(soonBootNs())
    submitted.catch(() => undefined)
    await reached
    const holder = await holdStore(brokerStorePath(world.stateDirectory))
    answered()
    const seen = await ask(world, executeEnvelope(attempt.request, TENANT))
    await holder.letGo()
    await delay(100)
    return { seen }
  }),
  'store_fault at request': story(async world => {
    const holder = await holdStore(brokerStorePath(world.stateDirectory))
    const seen = await say(world, 'register_attempt', world.attempt())
    await holder.letGo()
    return { seen }
  }),
  'internal_fault at request': story(
    async world => ({
      seen: await say(world, 'register_attempt', world.attempt()),
    }),
    { atCutpoint: failAt('broker.registered.before') },
  ),
}

/** A cutpoint that throws where a crash test would end the process. */
export function failAt(name: string): (reached: string) => void {
  return reached => {
    if (reached === name) throw new TypeError('a fault of our own')
  }
}

/** The provider's answer waits; the first promise resolves when the request is there. */
export function gate(world: BrokerWorld): [reached: Promise<void>, answered: () => void] {
  let tell = (): void => {}
  let open = (): void => {}
  const reached = new Promise<void>(resolve => {
    tell = resolve
  })
  const opened = new Promise<void>(resolve => {
    open = resolve
  })
  world.provider.behave(async ({ socket }) => {
    tell()
    await opened
    answer(socket, 'late')
  })
  return [reached, () => open()]
}
