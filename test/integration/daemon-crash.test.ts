// A broker that is killed at each durable boundary, and what its next life says of the attempt: known is said, lost is
// unknown, and nothing is executed a second time.
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { verifyOutcome } from '../../client/outcome.js'
import { BrokerWorld } from '../support/broker-world.js'
import { startChild, type CompiledChild } from '../support/compiled-child.js'
import { soonBootNs } from '../support/raw-broker.js'

/** Runs a broker that ends itself with SIGKILL at a cutpoint. */
const CRASHING = `
const { startBroker } = await compiled('daemon/broker')
const { readConfig } = await compiled('daemon/config')
const { openLog } = await compiled('daemon/log')
const { systemClock } = await compiled('native/clock')
const { signingKey } = await compiled('protocol/keys')
const { readKey } = await compiled('system/key-file')
const [config, master, receipt, cutpoint] = args
await startBroker({
  config: readConfig(config),
  masterKey: readKey({ file: master }, 'master key'),
  receiptKey: signingKey(readKey({ file: receipt }, 'receipt key')),
  clock: systemClock,
  log: { info: () => {}, warn: () => {}, error: () => {} },
  atCutpoint: name => { if (name === cutpoint) process.kill(process.pid, 'SIGKILL') },
})
say({ ready: true })
`

let world: BrokerWorld
let child: CompiledChild | undefined
beforeEach(async () => {
  world = new BrokerWorld({})
  await world.found()
})
afterEach(async () => {
  await child?.kill()
  await world.close()
})

/** Executes under a broker that dies at the cutpoint, then starts the next life of it in this process. */
async function crashedAt(cutpoint: string) {
  const { config, masterKey, receiptKey } = world.writeFiles()
  child = startChild(CRASHING, [config, masterKey, receiptKey, cutpoint])
  await child.next()
  await world.provision()
  const attempt = world.attempt()
  const submitted = await attempt
    .register()
    .then(() => attempt.prepare())
    .then(({ stream }) => stream.submit(soonBootNs()))
    .catch((error: unknown) => error)
  await child.ended()
  await world.start()
  return { attempt, submitted }
}

const NOT_SENT = { state: 'failed', reason: 'broker_restarted' }
const LOST = { state: 'unknown_outcome', reason: 'outcome_lost' }

describe('a broker killed', () => {
  test('before the registration is on disk knows nothing of the attempt, after it has failed it', async () => {
    const before = await crashedAt('broker.registered.before')
    await expect(before.attempt.status()).rejects.toMatchObject({ code: 'attempt_unknown' })
    await world.stopBroker()
    await expectFresh()
    const after = await crashedAgainAt('broker.registered.after')
    expect(await after.attempt.status()).toMatchObject(NOT_SENT)
  })

  test.each([
    ['broker.acknowledged', NOT_SENT, 0],
    ['broker.dispatch_committed.before', NOT_SENT, 0],
    ['broker.dispatch_committed.after', LOST, 0],
    ['broker.completed.before', LOST, 1],
  ])('at %s says what is known', async (cutpoint, known, hits) => {
    const { attempt, submitted } = await crashedAt(cutpoint)
    expect(submitted).toBeInstanceOf(Error)
    expect(await attempt.status()).toMatchObject(known)
    expect(world.provider.hits).toBe(hits)
    const { response, frame } = await attempt.replay()
    const outcome = verifyOutcome(response, frame, attempt.context)
    const knowledge = known === LOST ? 'unknown' : 'not_started'
    expect(outcome).toMatchObject({
      kind: 'failure',
      failure: { receipt: { body: { dispatchKnowledge: knowledge } } },
    })
    await expect(attempt.prepare()).rejects.toMatchObject({ code: 'conflict' })
    expect(world.provider.hits).toBe(hits)
  })

  test('after the record is on disk replays the response that the tool never got', async () => {
    const { attempt, submitted } = await crashedAt('broker.completed.after')
    expect(submitted).toBeInstanceOf(Error)
    const { response, frame } = await attempt.replay()
    expect(verifyOutcome(response, frame, attempt.context).kind).toBe('response')
    expect(world.provider.hits).toBe(1)
  })
})

async function expectFresh(): Promise<void> {
  await child?.kill()
  child = undefined
}

async function crashedAgainAt(cutpoint: string) {
  const { config, masterKey, receiptKey } = world.writeFiles()
  child = startChild(CRASHING, [config, masterKey, receiptKey, cutpoint])
  await child.next()
  const attempt = world.attempt()
  await attempt.register().catch(() => undefined)
  await child.ended()
  await world.start()
  return { attempt }
}
