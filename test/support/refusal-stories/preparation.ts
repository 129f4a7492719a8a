// Owns the stories of preparations that are declined: by what came before the claim, and by every check after it.
import { setTimeout as delay } from 'node:timers/promises'
import { attemptEnvelope } from '../../../client/broker-client.js'
import { encodeRequest } from '../../../protocol/envelope.js'
import { encodeFrame } from '../../../protocol/frame.js'
import type { RefusalReason } from '../../../daemon/refusals.js'
import { BACK_OFF_ABANDONED_COUNT, BACK_OFF_ABANDONED_MS } from '../../../protocol/limits.js'
import { signingKey } from '../../../protocol/keys.js'
import { closeDescriptor } from '../../../native/index.js'
import { inOrder, rejected } from '../authority.js'
import type { BrokerWorld, WorldOptions } from '../broker-world.js'
import { FaultyClock, SteppedClock } from '../clock.js'
import { orphanedConnector } from '../orphaned-connector.js'
import { ask, connectRaw, type Seen, seenOn, soonBootNs, write } from '../raw-broker.js'
import { type AttemptOptions, TENANT, type TestAttempt } from '../test-attempt.js'
import { type Stories, story } from './story.js'

const clock = new FaultyClock()
const boot = new SteppedClock()
/** The drain looks at the slot in the run of this call; the preparation is claimed in a later one. */
let stopWhileDecoding: () => Promise<void> = () => Promise.resolve()
const stranger = signingKey(Buffer.alloc(32, 9))
const envelopeOf = (attempt: TestAttempt) =>
  attemptEnvelope('prepare_connection', attempt.authorized('prepare'), TENANT)
const frameOf = (attempt: TestAttempt) => encodeFrame(encodeRequest(envelopeOf(attempt)))

async function registered(world: BrokerWorld, options: AttemptOptions = {}): Promise<TestAttempt> {
  const attempt = world.attempt(options)
  await attempt.register()
  return attempt
}

async function declined(
  world: BrokerWorld,
  attempt: TestAttempt,
): Promise<{ seen: Seen; attempt: TestAttempt }> {
  return { seen: await ask(world, envelopeOf(attempt)), attempt }
}

const preparing = (options: AttemptOptions, world?: WorldOptions) =>
  story(async made => declined(made, await registered(made, options)), world)

/** The authority answers after `action` was taken while the preparation is checked. */
function whileChecking(
  reason: RefusalReason,
  action: (world: BrokerWorld, attempt: TestAttempt) => Promise<unknown>,
) {
  return async (world: BrokerWorld) => {
    const attempt = await registered(world)
    const answered = slowParent(world)
    const seen = ask(world, envelopeOf(attempt))
    await answered.asked
    const done = action(world, attempt)
    await ended(world, reason)
    answered.go()
    const end = { seen: await seen, attempt }
    await done
    return end
  }
}

/** The broker has noticed: a log line is how it says so. */
export async function ended(world: BrokerWorld, reason: RefusalReason): Promise<void> {
  while (world.linesOf(reason).length === 0) await delay(5)
}

/** Holds back the answer about the live parent. */
export function slowParent(world: BrokerWorld): { asked: Promise<void>; go: () => void } {
  let tell = (): void => {}
  let go = (): void => {}
  const asked = new Promise<void>(resolve => {
    tell = resolve
  })
  const opened = new Promise<void>(resolve => {
    go = resolve
  })
  world.authority.behave('verify_live_parent', async operation => {
    tell()
    await opened
    return inOrder(world.keys.authority)(operation)
  })
  return { asked, go: () => go() }
}

export const PREPARATION_STORIES: Stories = {
  'document_malformed at preparation': story(async world => ({
    seen: await ask(world, {
      authorization: Buffer.from('{}'),
      operation: 'prepare_connection',
      payload: Buffer.from('{}'),
      tenantScope: TENANT,
    }),
  })),
  'registration_refused at preparation': story(async world => ({
    seen: (await declined(world, world.attempt({ quotas: 'own_only' }))).seen,
  })),
  'authorization_refused at preparation': story(async world => {
    const signed = (await registered(world)).authorized('prepare', stranger)
    return { seen: await ask(world, attemptEnvelope('prepare_connection', signed, TENANT)) }
  }),
  'caller_key_mismatch at preparation': story(
    async world => ({ seen: (await declined(world, world.attempt())).seen }),
    { callerOfClients: stranger.publicKey },
  ),
  'grant_backed_off at preparation': story(
    async world => {
      const options = { grantId: 'grant-of-an-abuser' }
      for (let count = 0; count < BACK_OFF_ABANDONED_COUNT; count += 1) {
        const { preparation } = await world.prepared(options)
        boot.runOn(BACK_OFF_ABANDONED_MS / 2)
        preparation.stream.close()
        while (world.broker.slotStatus().state !== 'free') await delay(5)
      }
      return { seen: (await declined(world, await registered(world, options))).seen }
    },
    { clock: boot },
  ),
  'provider_paused at preparation': story(async world => {
    world.provider.behave(() => undefined)
    while (world.broker.slotStatus().declining.providers.length === 0) {
      const attempt = await world.prepared({ timeoutMs: 200 })
      await attempt.preparation.stream.submit(soonBootNs())
    }
    return { seen: (await declined(world, await registered(world, { timeoutMs: 200 }))).seen }
  }),
  'broker_closing at preparation': story(
    async world => {
      const attempt = await registered(world)
      stopWhileDecoding = () => world.broker.close()
      return { seen: await ask(world, envelopeOf(attempt)) }
    },
    {
      atCutpoint: name => {
        if (name !== 'broker.prepare_connection.received') return
        void stopWhileDecoding()
      },
    },
  ),
  'slot_held at preparation': story(async world => {
    const holder = await world.prepared()
    const { seen } = await declined(world, await registered(world))
    holder.preparation.stream.close()
    await ended(world, 'stream_closed')
    return { seen }
  }),
  'attempt_unregistered at preparation': story(async world => ({
    seen: (await declined(world, world.attempt())).seen,
  })),
  'attempt_differs at preparation': story(async world => ({
    seen: (await declined(world, (await registered(world)).withGrantMaximum(5))).seen,
  })),
  'attempt_ended at preparation': story(async world => {
    const attempt = await registered(world)
    await attempt.release()
    return { seen: (await declined(world, attempt)).seen }
  }),
  'parent_not_live at preparation': story(async world => {
    world.authority.behave('verify_live_parent', () => rejected)
    return declined(world, await registered(world))
  }),
  'revoked_by_authority at preparation': story(async world => {
    revokedAtAuthority(world)
    return declined(world, await registered(world))
  }),
  'revoked_by_broker at preparation': story(async world => {
    await world.revoke('grant-gone')
    return declined(world, await registered(world, { grantId: 'grant-gone' }))
  }),
  'authority_unreachable at preparation': story(async world => {
    world.authority.behave('check_broker_revocation', () => undefined)
    return declined(world, await registered(world))
  }),
  'request_refused at preparation': preparing({}, { config: { responseFrameBytes: 100_000 } }),
  'credential_unavailable at preparation': preparing({ credentialVersion: 2 }),
  'placement_mismatch at preparation': preparing({ ownedHeader: 'x-api-key' }),
  'destination_refused at preparation': preparing({ url: 'https://127.0.0.1:9/issues' }),
  'lifetime_over at preparation': story(async world => {
    const attempt = await registered(world, { nonceTtlSeconds: 1 })
    const expiryMs = attempt.registration.nonceExpiresAtUnixSeconds * 1000
    await delay(Math.max(0, expiryMs - Date.now() + 50))
    return declined(world, attempt)
  }),
  'preparation_budget at preparation': story(
    async world => {
      world.authority.behave('verify_live_parent', () => undefined)
      return declined(world, await registered(world))
    },
    { authorityTimeoutMs: 10_000 },
  ),
  'connector_gone at preparation': story(async world => {
    const attempt = await registered(world)
    const answered = slowParent(world)
    const connector = orphanedConnector(world.socketPath, frameOf(attempt))
    await answered.asked
    await connector.leave()
    answered.go()
    return { seen: await connector.seen(), attempt }
  }),
  'released at preparation': story(whileChecking('released', (_world, attempt) => attempt.release())),
  'broker_stopping at preparation': story(whileChecking('broker_stopping', world => world.broker.close())),
  'internal_fault at preparation': story(
    async world => {
      const attempt = await registered(world)
      const answered = slowParent(world)
      const seen = ask(world, envelopeOf(attempt))
      await answered.asked
      clock.failNext = true
      answered.go()
      return { seen: await seen, attempt }
    },
    { clock },
  ),
  'stream_closed at preparation': story(async world => {
    const attempt = await registered(world)
    const answered = slowParent(world)
    const descriptor = await connectRaw(world)
    await write(descriptor, frameOf(attempt))
    await answered.asked
    closeDescriptor(descriptor)
    await ended(world, 'stream_closed')
    answered.go()
    return { attempt }
  }),
  'surplus_bytes at preparation': story(async world => {
    const attempt = await registered(world)
    const answered = slowParent(world)
    const descriptor = await connectRaw(world)
    await write(descriptor, frameOf(attempt))
    await answered.asked
    await write(descriptor, Buffer.from('x'))
    const seen = await seenOn(descriptor)
    answered.go()
    return { seen, attempt }
  }),
}

export function revokedAtAuthority(world: BrokerWorld): void {
  world.authority.behave('check_broker_revocation', operation => {
    const result = inOrder(world.keys.authority)(operation)
    if (result.kind === 'revocation') return { ...result, response: { ...result.response, revoked: true } }
    return result
  })
}
