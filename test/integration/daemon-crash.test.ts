// What the next life of a killed broker replays and refuses: the signed record of what is known, byte for byte, and no
// second preparation. Where it ends in all its other states, the crash table shows.
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { verifyOutcome } from '../../client/outcome.js'
import { BrokerWorld } from '../support/broker-world.js'
import { startChild, type CompiledChild } from '../support/compiled-child.js'
import { soonBootNs } from '../support/raw-broker.js'

/** Several processes are started one after the other. */
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
  test.each([
    ['broker.dispatch_committed.before', NOT_SENT, 0],
    ['broker.dispatch_committed.after', LOST, 0],
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
