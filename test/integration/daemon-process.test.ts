// The broker as a process of its own: how it starts and ends, what it says, what it never says. What it does with
// random bytes stands in test/fuzz/daemons.test.ts.
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { BrokerProcess, type BrokerProcessOptions } from '../support/broker-process.js'
import { BrokerWorld, SECRET } from '../support/broker-world.js'
import { answer } from '../support/provider.js'
import { seenOn, soonBootNs, write } from '../support/raw-broker.js'
import { standStill } from '../support/stop.js'

let world: BrokerWorld
const started: BrokerProcess[] = []
beforeEach(async () => {
  world = new BrokerWorld({})
  await world.found()
})
afterEach(async () => {
  await Promise.all(started.splice(0).map(broker => broker.stop('SIGKILL')))
  await world.close()
})

function launch(options: BrokerProcessOptions = {}): BrokerProcess {
  const broker = new BrokerProcess(world, options)
  started.push(broker)
  return broker
}
async function serving(options: BrokerProcessOptions = {}): Promise<BrokerProcess> {
  const broker = await launch(options).ready()
  await world.provision()
  return broker
}

describe('the daemon', () => {
  test('says that it serves, executes, and ends with 0 on SIGTERM', async () => {
    const broker = await serving()
    const attempt = await world.prepared()
    expect((await attempt.preparation.stream.submit(soonBootNs())).response.accepted).toBe(true)
    expect(await broker.stop()).toBe(0)
    expect(broker.lines.at(-1)).toMatchObject({ event: 'stopped' })
  })

  test('hears a signal to end from the moment at which it says that it serves', async () => {
    const broker = launch()
    broker.child.stderr?.on('data', (chunk: Buffer) => {
      if (chunk.includes('"event":"ready"')) broker.child.kill('SIGTERM')
    })
    expect(await broker.ended()).toBe(0)
    expect(broker.lines.at(-1)).toMatchObject({ event: 'stopped' })
  })

  test('starts without its authority, and serves once that is there', async () => {
    await world.authority.close()
    await serving()
    const attempt = world.attempt()
    await attempt.register()
    await expect(attempt.prepare()).rejects.toMatchObject({ code: 'authority_unavailable' })
    await world.authority.start()
    const next = await world.prepared()
    expect((await next.preparation.stream.submit(soonBootNs())).response.accepted).toBe(true)
  })

  test('leaves a second instance out with exit 73 and a sentence that names the first', async () => {
    const first = await serving()
    const second = launch()
    expect(await second.ended()).toBe(73)
    expect(second.lines.at(-1)?.['sentence']).toContain(`pid ${first.child.pid}`)
    expect((await world.client.slotStatus()).state).toBe('free')
  })

  test.each([
    ['SIGTERM', []],
    ['SIGINT', []],
    ['SIGHUP', ['SIGHUP', 'SIGTERM']],
  ] as const)(
    'at %s finishes what it dispatched before it ends, and takes nothing new',
    async (signal, more) => {
      const broker = await serving()
      world.provider.behave(async ({ socket }) => {
        await delay(500)
        answer(socket, 'in time')
      })
      const attempt = await world.prepared()
      const submitted = attempt.preparation.stream.submit(soonBootNs())
      while (world.provider.hits === 0) await delay(5)
      const ended = broker.stop(signal)
      await delay(50)
      // A closing terminal says it again, and who started the daemon says it in other words: neither is impatience.
      for (const next of more) broker.child.kill(next)
      expect((await submitted).response.accepted).toBe(true)
      expect(await ended).toBe(0)
    },
  )

  test('recovers a socket that a killed daemon left, and settles its attempts', async () => {
    const broker = await serving()
    const waiting = world.attempt()
    await waiting.register()
    await broker.stop('SIGKILL')
    await launch().ready()
    expect(await waiting.status()).toMatchObject({ state: 'failed', reason: 'broker_restarted' })
  })

  test.each([
    ['without arguments', { args: [] }, 2, 'exactly one --config'],
    ['with a hostile environment', { environment: { NODE_OPTIONS: '--no-warnings' } }, 1, 'NODE_OPTIONS'],
    ['with verification switched off', { environment: { NODE_TLS_REJECT_UNAUTHORIZED: '0' } }, 1, 'NODE_TLS'],
  ])('does not start %s', async (_name, options, status, word) => {
    const broker = launch(options)
    expect(await broker.ended()).toBe(status)
    expect(broker.text.join('\n')).toContain(word)
  })

  test('does not start with a receipt key of another identity, nor on a store that nobody provisioned', async () => {
    const { config, masterKey } = world.writeFiles()
    const other = join(world.folder, 'other.key')
    writeFileSync(other, randomBytes(32), { mode: 0o600 })
    const args = ['--config', config, '--master-key-file', masterKey, '--receipt-key-file', other]
    const wrong = launch({ args })
    expect(await wrong.ended()).toBe(1)
    expect(wrong.lines.at(-1)).toMatchObject({ code: 'custody' })
    const empty = new BrokerWorld({
      provider: false,
      config: { stateDirectory: join(world.folder, 'broker') },
    })
    const absent = new BrokerProcess(empty)
    expect(await absent.ended()).toBe(1)
    expect(absent.lines.at(-1)).toMatchObject({ code: 'store_missing' })
    await empty.close()
  })
})

describe('a stopped daemon', () => {
  test('that continues after the deadline refuses the exact frame: the stopped time counted', async () => {
    const broker = await serving()
    const attempt = await world.prepared({ capabilityLifetimeSeconds: 2 })
    const descriptor = attempt.preparation.stream.takeDescriptor()
    await standStill(broker.child.pid ?? 0)
    await write(descriptor, attempt.preparation.stream.frame)
    await delay(2_300)
    broker.child.kill('SIGCONT')
    expect(await seenOn(descriptor)).toBe('closed')
    expect(await attempt.status()).toMatchObject({ state: 'failed', reason: 'deadline_expired' })
    expect(await world.client.slotStatus()).toMatchObject({ state: 'free', decryptions: 0 })
    expect(world.provider.hits).toBe(0)
  })
})

describe('the secret', () => {
  test('stands in no log line, no file of the state, no environment and no argument', async () => {
    const broker = await serving()
    world.provider.behave(({ request, socket, hit }) => answer(socket, hit === 1 ? 'ok' : request.head))
    for (let round = 0; round < 2; round += 1) {
      const attempt = await world.prepared()
      await attempt.preparation.stream.submit(soonBootNs())
    }
    const { pid } = broker.child
    const places = [
      broker.text.join('\n'),
      environmentOf(pid ?? 0),
      readFileSync(`/proc/${pid}/cmdline`, 'latin1'),
      ...filesBelow(world.stateDirectory).map(file => readFileSync(file, 'latin1')),
    ]
    const forms = [SECRET, Buffer.from(SECRET).toString('base64'), Buffer.from(SECRET).toString('hex')]
    for (const form of forms) expect(places.some(place => place.includes(form))).toBe(false)
    expect(places[0]).toContain('credential_reflected')
  })
})

/** Root reads it; the daemon's own user is refused, as it forbids dumps: then that refusal is the proof. */
function environmentOf(pid: number): string {
  const read = (): string => readFileSync(`/proc/${pid}/environ`, 'latin1')
  if (process.getuid?.() === 0) return read()
  expect(read).toThrow('EACCES')
  return ''
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder)
    .map(name => join(folder, name))
    .filter(path => statSync(path).isFile())
}
