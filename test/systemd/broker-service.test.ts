// The broker as systemd runs it: real datagrams to a real receiver, real signals while a provider keeps it waiting, a
// socket that systemd itself bound.
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { brokerStorePath } from '../../daemon/broker-store.js'
import { closeDescriptor, connectUnix, peerCredentials } from '../../native/index.js'
import { encode } from '../../protocol/codec.js'
import { encodeRequest } from '../../protocol/envelope.js'
import { encodeFrame } from '../../protocol/frame.js'
import { SlotStatusRequest } from '../../protocol/status.js'
import { BrokerProcess, type BrokerProcessOptions } from '../support/broker-process.js'
import { BrokerWorld } from '../support/broker-world.js'
import { NotifyReceiver } from '../support/notify-receiver.js'
import { answer, type ProviderExchange } from '../support/provider.js'
import { connectRaw, seenOn, soonBootNs, write } from '../support/raw-broker.js'
import { TENANT } from '../support/test-attempt.js'

let world: BrokerWorld
let manager: NotifyReceiver
const started: BrokerProcess[] = []
beforeEach(async () => {
  world = new BrokerWorld({})
  await world.found()
  manager = new NotifyReceiver()
})
afterEach(async () => {
  await Promise.all(started.splice(0).map(broker => broker.stop('SIGKILL')))
  manager.close()
  await world.close()
})

function launch(options: BrokerProcessOptions = {}): BrokerProcess {
  const environment = { NOTIFY_SOCKET: manager.path, ...options.environment }
  const broker = new BrokerProcess(world, { ...options, environment })
  started.push(broker)
  return broker
}

/** A busy machine takes its time; the provider's own deadline must not be what ends the story. */
const PATIENCE_MS = 30_000

/** A dispatched execution whose provider answers when it is told to. */
async function dispatched() {
  const asked = new Promise<ProviderExchange>(resolve => world.provider.behave(resolve))
  const attempt = await world.prepared({ timeoutMs: PATIENCE_MS })
  const submitted = attempt.preparation.stream.submit(soonBootNs(PATIENCE_MS))
  const exchange = await asked
  return { attempt, submitted, answerNow: () => answer(exchange.socket, 'at last') }
}

function attemptsOnDisk(): string {
  const script = `import sqlite3, sys
print(sqlite3.connect(sys.argv[1]).execute('SELECT state, reason FROM attempts').fetchall())`
  const store = brokerStorePath(world.stateDirectory)
  return spawnSync('/usr/bin/python3', ['-c', script, store], { encoding: 'utf8' }).stdout.trim()
}

describe('a service', { timeout: 90_000 }, () => {
  test('is ready without its kernel, says how it stands and that it lives, and drains when it is stopped', async () => {
    await world.authority.close()
    const broker = launch({ environment: { WATCHDOG_USEC: '600000' } })
    expect(await manager.heard(/^READY=1$/)).toContain('STATUS=slot free; kernel not asked yet')
    await manager.heard(/^STATUS=slot free; kernel does not answer$/)
    await world.authority.start()
    await manager.heard(/^STATUS=slot free; kernel answers$/)
    await manager.heard(/^WATCHDOG=1$/, 3)

    await world.provision()
    const { submitted, answerNow } = await dispatched()
    await manager.heard(/^STATUS=slot executing; kernel answers$/)
    broker.child.kill('SIGTERM')
    const stopping = await manager.heard(/^STOPPING=1$/)
    expect(stopping).toContain('STATUS=stopping; slot executing')
    expect(Number(/^EXTEND_TIMEOUT_USEC=(\d+)$/m.exec(stopping)?.[1])).toBeGreaterThan(1_000_000)
    await expect(world.attempt().register()).rejects.toMatchObject({ code: 'broker_stopping' })
    expect((await world.client.slotStatus()).state).toBe('executing')
    const signs = manager.holding(/^WATCHDOG=1$/).length
    await manager.heard(/^WATCHDOG=1$/, signs + 2)
    answerNow()
    expect((await submitted).response.accepted).toBe(true)
    expect(await broker.ended()).toBe(0)
    expect(manager.holding(/attempt|tenant/)).toEqual([])
  })

  test('that is told twice waits for no provider, and records what it does not know', async () => {
    const broker = await launch().ready()
    await world.provision()
    const { submitted } = await dispatched()
    broker.child.kill('SIGTERM')
    await manager.heard(/^STOPPING=1$/)
    // Another signal is no impatience: a terminal sends its own beside whoever started us.
    broker.child.kill('SIGINT')
    expect((await world.client.slotStatus()).state).toBe('executing')
    broker.child.kill('SIGTERM')
    expect((await submitted).response.accepted).toBe(false)
    expect(await broker.ended()).toBe(0)
    expect(world.provider.hits).toBe(1)
    expect(attemptsOnDisk()).toBe("[('unknown_outcome', 'stop_hurried')]")
    expect(broker.lines.at(-1)).toMatchObject({ event: 'stopped' })
  })
})

const SLOT_STATUS = {
  authorization: new Uint8Array(0),
  operation: 'slot_status',
  payload: encode(SlotStatusRequest, { schema: 'chio.broker-slot-status-request.v1' }),
  tenantScope: TENANT,
} as const

describe('an activated service', { timeout: 90_000 }, () => {
  /** Unlike a socket unit, this program knows no SocketMode=. */
  async function bound(path: string): Promise<void> {
    while (!existsSync(path)) await delay(10)
    chmodSync(path, 0o600)
  }

  test('serves who connected before it started, as itself, and leaves the name to systemd', async () => {
    const broker = launch({
      wrapper: ['systemd-socket-activate', '-l', world.socketPath, '-E', 'NOTIFY_SOCKET'],
    })
    await bound(world.socketPath)
    expect(manager.messages).toEqual([])
    const early = await connectRaw(world)
    await write(early, encodeFrame(encodeRequest(SLOT_STATUS)))
    await manager.heard(/^READY=1$/)
    expect(await seenOn(early)).toMatchObject({ accepted: true })
    const descriptor = await connectUnix(world.socketPath, soonBootNs())
    expect(peerCredentials(descriptor).pid).toBe(broker.child.pid)
    closeDescriptor(descriptor)

    const second = launch()
    expect(await second.ended()).toBe(73)
    expect(second.lines.at(-1)?.['sentence']).toContain(`pid ${broker.child.pid}`)
    expect(await broker.stop()).toBe(0)
    expect(existsSync(world.socketPath)).toBe(true)
    // Nobody listens there any more: the name is a stale one now, and a daemon of its own may take it.
    await launch().ready()
  })

  test('does not start on a socket at another path, nor on one too many', async () => {
    const other = `${world.socketPath}.other`
    const broker = launch({ wrapper: ['systemd-socket-activate', '-l', world.socketPath, '-l', other] })
    await bound(other)
    await connectUnix(other, soonBootNs()).then(closeDescriptor)
    expect(await broker.ended()).toBe(1)
    expect(broker.lines.at(-1)).toMatchObject({ code: 'activation_refused' })
    expect(broker.lines.at(-1)?.['sentence']).toContain('LISTEN_FDS to be 1')
  })
})
