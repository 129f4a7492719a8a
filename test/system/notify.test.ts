// What a service manager hears: real datagrams, by path through unix-dgram and to an abstract name through the addon.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ServiceManager } from '../../system/notify.js'
import { type SupervisedDaemon, Supervision } from '../../system/supervision.js'
import { NotifyReceiver } from '../support/notify-receiver.js'

let receiver: NotifyReceiver
let faults: unknown[] = []
const started: ChildProcess[] = []
beforeEach(() => {
  receiver = new NotifyReceiver()
  faults = []
})
afterEach(() => {
  receiver.close()
  for (const child of started.splice(0)) child.kill('SIGKILL')
})

function managerAt(notifySocket: string | null): ServiceManager {
  const ownFaults = faults
  return new ServiceManager({ notifySocket }, error => ownFaults.push(error))
}

/** A receiver in Python that prints what comes; it does not read before it is told by a line. */
async function lazyReceiver(address: string) {
  const script = `import socket,sys
s=socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM)
s.bind(sys.argv[1].replace('@','\\0',1))
print('bound',flush=True)
sys.stdin.readline()
while True: print(s.recv(65536).decode().replace('\\n','|'),flush=True)`
  const child = spawn('/usr/bin/python3', ['-c', script, address], { stdio: ['pipe', 'pipe', 'inherit'] })
  started.push(child)
  const lines: string[] = []
  const reader = createInterface({ input: child.stdout }).on('line', line => lines.push(line))
  await once(reader, 'line')
  return { lines, read: () => child.stdin.write('\n') }
}

describe('a service manager', () => {
  test('hears everything by path', async () => {
    const manager = managerAt(receiver.path)
    expect(manager.isPresent).toBe(true)
    manager.ready('slot free')
    manager.status('slot waiting')
    manager.alive()
    manager.stopping('stopping', 36_000.5)
    await receiver.heard(/^STOPPING=1$/)
    expect(receiver.messages).toEqual([
      'READY=1\nSTATUS=slot free',
      'STATUS=slot waiting',
      'WATCHDOG=1',
      'STOPPING=1\nEXTEND_TIMEOUT_USEC=36001000\nSTATUS=stopping',
    ])
    expect(faults).toEqual([])
  })

  test('hears everything at an abstract name', async () => {
    const name = `@chio-notify-${process.pid}`
    const { lines, read } = await lazyReceiver(name)
    managerAt(name).ready('slot free')
    read()
    await expect.poll(() => lines, { timeout: 20_000 }).toContain('READY=1|STATUS=slot free')
    expect(faults).toEqual([])
  })

  test.each(['path', 'abstract name'])('is told again while its queue is full (%s)', async kind => {
    const address = kind === 'path' ? join(receiver.folder, 'lazy') : `@chio-lazy-${process.pid}`
    const { lines, read } = await lazyReceiver(address)
    const manager = managerAt(address)
    for (let sent = 0; sent < 400; sent += 1) manager.status('x'.repeat(200))
    manager.ready('at last')
    read()
    await expect.poll(() => lines, { timeout: 20_000 }).toContain('READY=1|STATUS=at last')
    expect(faults).toEqual([])
  })

  test('that is absent is told nothing, and nothing is opened for it', () => {
    const manager = managerAt(null)
    expect(manager.isPresent).toBe(false)
    manager.ready('slot free')
    manager.stopping('stopping', 1)
    expect(faults).toEqual([])
  })

  test.each(['/nowhere/notify', '@chio-nobody', 'relative', 'vsock:2:1234', `/${'n'.repeat(107)}`])(
    'that cannot be told is one fault and no end: %s',
    name => {
      const manager = managerAt(name)
      manager.ready('slot free')
      manager.alive()
      expect(faults).toHaveLength(1)
      expect(existsSync('relative')).toBe(false)
    },
  )
})

describe('signs of life', () => {
  const supervise = (assertServing: SupervisedDaemon['assertServing']): void => {
    const daemon = { status: () => 'serving', assertServing }
    const onFault = (error: unknown): number => faults.push(error)
    new Supervision(managerAt(receiver.path), daemon, { watchdogMs: 60 }, onFault)
  }

  test('come as long as the daemon proves that it serves, and stay away with a reason when it does not', async () => {
    let serves = true
    supervise(async () => {
      if (!serves) throw new Error('the store is gone')
    })
    await receiver.heard(/^WATCHDOG=1$/, 3)
    serves = false
    await expect.poll(() => faults.length, { timeout: 20_000 }).toBeGreaterThan(2)
    const signs = receiver.holding(/^WATCHDOG=1$/).length
    await expect.poll(() => faults.length, { timeout: 20_000 }).toBeGreaterThan(5)
    expect(receiver.holding(/^WATCHDOG=1$/).length).toBe(signs)
    serves = true
    await receiver.heard(/^WATCHDOG=1$/, signs + 1)
  })

  test('stay away while the proof hangs, and only one is asked for at a time', async () => {
    let asked = 0
    supervise(() => {
      asked += 1
      return new Promise(() => {})
    })
    await receiver.heard(/^READY=1$/)
    await expect.poll(() => asked, { timeout: 20_000 }).toBe(1)
    await delay(200)
    expect(asked).toBe(1)
    expect(receiver.holding(/^WATCHDOG=1$/)).toEqual([])
  })
})
