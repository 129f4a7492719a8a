import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { MAXIMUM_ACCEPTS_PER_TURN } from '../../protocol/limits.js'
import type { ConnectionRefusal, Listener } from '../../system/listener.js'
import type { PeerIdentity } from '../../system/peer.js'
import { startChild } from '../support/compiled-child.js'
import { deadlineIn, openDescriptorCount } from '../support/descriptors.js'
import { SKIP_REASONS } from '../support/skips.js'
import {
  makeSocketFolder,
  plainClient,
  prefixed,
  readAll,
  serve,
  type SocketFolder,
} from '../support/test-listener.js'
import { testWhen } from '../support/when.js'

/** A few turns of accepting, within the backlog. */
const MANY = 5 * MAXIMUM_ACCEPTS_PER_TURN
let place: SocketFolder
const listeners: Listener[] = []

beforeEach(() => {
  place = makeSocketFolder()
})
afterEach(async () => {
  for (const listener of listeners.splice(0)) await listener.close()
  place.remove()
})

const isRoot = process.geteuid?.() === 0
const untilEnd = async (connection: { ended: Promise<unknown> }): Promise<void> =>
  void (await connection.ended)

async function serveHere(options: Partial<Parameters<typeof serve>[1]> = {}): Promise<Listener> {
  const listener = await serve(place.path, { onConnection: untilEnd, ...options })
  listeners.push(listener)
  return listener
}

describe('peers', () => {
  test('are known before a byte: uid, gid, groups and a live process', async () => {
    const peers: PeerIdentity[] = []
    await serveHere({
      onConnection: async (connection, peer) => {
        peers.push(peer)
        await connection.ended
      },
    })
    await plainClient(place.path)
    await expect.poll(() => peers).toHaveLength(1)
    expect(peers[0]).toMatchObject({ uid: process.geteuid?.(), gid: process.getegid?.(), pid: process.pid })
    expect(process.getgroups?.()).toEqual(expect.arrayContaining([...(peers[0]?.gids ?? [])]))
    expect(peers[0]?.isAlive()).toBe(true)
  })

  test('that are not admitted get no byte, and nothing of theirs is read', async () => {
    const refusals: ConnectionRefusal[] = []
    let served = false
    await serveHere({
      admit: () => false,
      onRefused: refusal => refusals.push(refusal),
      onConnection: async () => {
        served = true
      },
    })
    const client = await plainClient(place.path)
    expect(await readAll(client)).toHaveLength(0)
    expect(refusals).toEqual([{ reason: 'not_admitted', uid: process.geteuid?.(), pid: process.pid }])
    expect(served).toBe(false)
  })

  test('are refused when the judgement itself fails', async () => {
    const faults: unknown[] = []
    await serveHere({
      admit: () => {
        throw new Error('fault')
      },
      onFault: error => faults.push(error),
    })
    const client = await plainClient(place.path)
    expect(await readAll(client)).toHaveLength(0)
    expect(faults).toHaveLength(1)
  })

  testWhen(isRoot, SKIP_REASONS.needsRoot, 'with the overflow uid are refused', async () => {
    const refusals: ConnectionRefusal[] = []
    await serveHere({ onRefused: refusal => refusals.push(refusal) })
    spawnSync('chmod', ['0777', place.folder, place.path])
    const connector =
      'import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\nprint(len(s.recv(1)))'
    const peer = spawn('setpriv', [
      '--reuid',
      '65534',
      '--regid',
      '65534',
      '--clear-groups',
      '--',
      '/usr/bin/python3',
      '-c',
      connector,
      place.path,
    ])
    await once(peer, 'exit')
    expect(refusals).toMatchObject([{ reason: 'overflow_uid', uid: 65_534 }])
  })

  test('of a handler that throws are closed, and the next is served', async () => {
    const faults: unknown[] = []
    const listener = await serveHere({
      onFault: error => faults.push(error),
      onConnection: async () => {
        throw new Error('handler fault')
      },
    })
    expect(await readAll(await plainClient(place.path))).toHaveLength(0)
    expect(await readAll(await plainClient(place.path))).toHaveLength(0)
    expect(faults).toHaveLength(2)
    expect(listener.connections).toBe(0)
  })

  test('leave no descriptor behind', async () => {
    const listener = await serveHere()
    const before = openDescriptorCount()
    const clients = await Promise.all(Array.from({ length: 20 }, () => plainClient(place.path)))
    await expect.poll(() => listener.connections).toBe(20)
    await listener.close()
    for (const client of clients) client.destroy()
    await delay(20)
    expect(openDescriptorCount()).toBeLessThanOrEqual(before)
  })

  test('that use up the daemon’s descriptors do not stop it', async () => {
    const child = startChild(
      `const { systemClock } = await compiled('native/clock')
       const { listen } = await compiled('system/listener')
       let faults = 0
       const listener = await listen({
         path: args[0], socketGid: null, clock: systemClock, mode: 'exchange', backlog: 128, admit: () => true,
         onFault: () => { faults += 1 },
         onConnection: async connection => {
           const deadlineBootNs = systemClock.bootNs() + 60_000_000_000n
           await connection.writeFrame(await connection.readFrame({ maximumFrameBytes: 9, deadlineBootNs }), deadlineBootNs)
         },
       })
       say({ listening: true })`,
      [place.path],
      { wrapper: ['bash', '--norc', '-c', 'ulimit -n 60; exec "$@"', 'bash'] },
    )
    await child.next()
    const idle = await Promise.all(Array.from({ length: 60 }, () => plainClient(place.path)))
    await delay(100)
    for (const client of idle) client.destroy()
    await delay(100)
    const client = await plainClient(place.path)
    client.write(prefixed(Buffer.from('hello')))
    expect((await readAll(client)).subarray(4).toString()).toBe('hello')
    await child.kill()
  })
})

describe('accepting', () => {
  test('gives the loop back, however quickly connectors come: what is connected is served meanwhile', async () => {
    const listener = await serveHere({
      maximumConnections: 1_000,
      maximumConnectionsPerUid: 1_000,
      maximumConnectionsPerConnector: 1_000,
      onConnection: async connection => {
        const body = await connection.readFrame({ maximumFrameBytes: 9, deadlineBootNs: deadlineIn(60_000) })
        await connection.writeFrame(body, deadlineIn(60_000))
      },
    })
    const clients = await Promise.all(
      Array.from({ length: MANY }, async () => {
        const client = await plainClient(place.path)
        client.write(prefixed(Buffer.from('hello')))
        client.end()
        return client
      }),
    )
    for (const client of clients) expect((await readAll(client)).subarray(4).toString()).toBe('hello')
    await expect.poll(() => listener.connections).toBe(0)
    expect(listener.isListening).toBe(true)
  })

  test('goes on under the same name and inode after any number of turns', async () => {
    await serveHere({ admit: () => false })
    const { ino } = statSync(place.path)
    for (let round = 0; round < 3; round += 1) {
      const clients = await Promise.all(Array.from({ length: MANY }, () => plainClient(place.path)))
      for (const client of clients) expect(await readAll(client)).toHaveLength(0)
    }
    expect(statSync(place.path).ino).toBe(ino)
  })
})
