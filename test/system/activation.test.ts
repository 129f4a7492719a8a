import { spawnSync } from 'node:child_process'
import { chmodSync, closeSync, existsSync, openSync } from 'node:fs'
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../native/clock.js'
import { closeDescriptor, duplicateDescriptor, peerCredentials, socketPair } from '../../native/index.js'
import { isBrokerError } from '../../protocol/errors.js'
import { activatedSockets } from '../../system/activation.js'
import { connectPinned } from '../../system/connect.js'
import { descriptorOf } from '../../system/socket-descriptor.js'
import { startChild } from '../support/compiled-child.js'
import { deadlineIn } from '../support/descriptors.js'
import { SKIP_REASONS } from '../support/skips.js'
import { makeSocketFolder, plainClient, serve, type SocketFolder } from '../support/test-listener.js'
import { testWhen } from '../support/when.js'

const isRoot = process.geteuid?.() === 0

let place: SocketFolder
const servers: Server[] = []
const descriptors: number[] = []
beforeEach(() => {
  place = makeSocketFolder()
})
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
  for (const descriptor of descriptors.splice(0)) closeDescriptor(descriptor)
  place.remove()
})

/** A listening socket, as a manager holds it. */
async function bound(where: string | { port: number; host: string }): Promise<number> {
  const server = createServer()
  servers.push(server)
  server.listen(typeof where === 'string' ? { path: where } : where)
  await once(server, 'listening')
  return (server as unknown as { _handle: { fd: number } })._handle.fd
}

/** Two neighbouring descriptors, so that the second can be judged after the first. */
function inARow(...of: number[]): number {
  const first = duplicateDescriptor(of[0] ?? 0, 200)
  descriptors.push(first)
  for (const [index, descriptor] of of.slice(1).entries()) {
    const next = duplicateDescriptor(descriptor, first + index + 1)
    expect(next).toBe(first + index + 1)
    descriptors.push(next)
  }
  return first
}

/** Typed, where the matcher is not. */
const containing = (text: string): unknown => expect.stringContaining(text)
const refusal = (sentence: RegExp | string): object => ({
  asymmetricMatch: (error: unknown) =>
    isBrokerError(error) &&
    error.code === 'activation_refused' &&
    (typeof sentence === 'string' ? error.message.includes(sentence) : sentence.test(error.message)),
})

const forUs = (fds: string) => ({ pid: `${process.pid}`, fds })

describe('activation', () => {
  test('hands over exactly the configured sockets, in whatever order', async () => {
    const [left, right] = [join(place.folder, 'left'), join(place.folder, 'right')]
    const first = inARow(await bound(right), await bound(left))
    const sockets = activatedSockets(forUs('2'), [left, right], first)
    expect(Object.fromEntries(sockets)).toEqual({ [left]: first + 1, [right]: first })
  })

  test('is none without a manager', () => {
    expect(activatedSockets(null, ['/run/chio/broker/sock']).size).toBe(0)
  })

  test.each([
    ['another LISTEN_PID', { pid: '1', fds: '1' }, /LISTEN_PID to be \d+, the pid of this process, got 1;/],
    ['no LISTEN_PID', { pid: undefined, fds: '1' }, /LISTEN_PID to be .*, got none;/],
    ['no LISTEN_FDS', { pid: `${process.pid}`, fds: undefined }, /LISTEN_FDS to be 1, .*, got none;/],
    ['none', forUs('0'), /LISTEN_FDS to be 1, .*, got 0;/],
    ['one too many', forUs('2'), /LISTEN_FDS to be 1, .*, got 2;/],
    ['far too many', forUs('99999'), /LISTEN_FDS to be 1, .*, got 99999;/],
    ['a text', forUs('x\u001b[2J'), /LISTEN_FDS to be 1, .*, got another text;/],
  ])('is refused with %s', (_what, listen, sentence) => {
    expect(() => activatedSockets(listen, ['/run/chio/broker/sock'])).toThrow(refusal(sentence))
  })

  const judge =
    (descriptor: number, paths = [place.path]) =>
    () =>
      activatedSockets(forUs(`${paths.length}`), paths, descriptor)

  test('is refused on what is no socket, and on nothing', () => {
    const file = openSync('/dev/null', 'r')
    expect(judge(file)).toThrow(refusal('to be a socket, got ENOTSOCK'))
    closeSync(file)
    expect(judge(900)).toThrow(refusal('to be a socket, got EBADF'))
  })

  test('is refused on a socket of another family, kind or state', async () => {
    expect(judge(await bound({ port: 0, host: '127.0.0.1' }))).toThrow(
      refusal('a Unix socket, got one of inet'),
    )
    const [stream, peer] = socketPair('stream')
    const [packet, other] = socketPair('seqpacket')
    descriptors.push(stream, peer, packet, other)
    expect(judge(stream)).toThrow(refusal('a listening socket, Accept=no, got one that does not listen'))
    expect(judge(packet)).toThrow(refusal('a stream socket, ListenStream=, got seqpacket'))
  })

  test('is refused on a socket at another path, and on one given twice', async () => {
    const other = join(place.folder, 'other')
    expect(judge(await bound(other))).toThrow(
      refusal(`to be a socket at ${place.path}, got one at "${other}"`),
    )
    const descriptor = await bound(place.path)
    expect(judge(inARow(descriptor, descriptor), [place.path, other])).toThrow(refusal('got it twice'))
  })
})

describe('an activated socket', () => {
  test('is served under our own credentials and keeps its name when we end', async () => {
    const path = place.path
    const umask = process.umask(0o177)
    const descriptor = duplicateDescriptor(await bound(path), 3)
    process.umask(umask)
    const listener = await serve(path, {
      activatedDescriptor: descriptor,
      onConnection: async connection => void (await connection.ended),
    })
    const client = await plainClient(path)
    expect(peerCredentials(descriptorOf(client) ?? -1).pid).toBe(process.pid)
    await expect(serve(path, { onConnection: async () => {} })).rejects.toMatchObject({
      code: 'another_instance',
    })
    await listener.close()
    client.destroy()
    // The manager listens on: whoever takes its name for a stale one would cut it off.
    await expect(serve(path, { onConnection: async () => {} })).rejects.toMatchObject({
      code: 'another_instance',
      message: containing('a listener without its lock'),
    })
  })

  test('is refused where its mode or directory is not ours', async () => {
    const umask = process.umask(0)
    const descriptor = duplicateDescriptor(await bound(place.path), 3)
    process.umask(umask)
    descriptors.push(descriptor)
    await expect(
      serve(place.path, { activatedDescriptor: descriptor, onConnection: async () => {} }),
    ).rejects.toMatchObject({ code: 'custody', message: containing('mode 0600') })
  })
})

describe('a client that was faster than the daemon', () => {
  testWhen(
    isRoot,
    SKIP_REASONS.needsRoot,
    'sees the manager, says nothing, and meets the daemon',
    async () => {
      const daemon = { uid: 61_234, gid: 61_234 }
      const script = `const { systemClock } = await compiled('native/clock')
      const { listen } = await compiled('system/listener')
      await listen({
        path: args[0], activatedDescriptor: 3, socketGid: null, clock: systemClock, mode: 'exchange', admit: () => true,
        onFault: () => {}, onConnection: connection => connection.ended,
      })
      say({ serves: true })`
      spawnSync('chown', ['-R', `${daemon.uid}:${daemon.gid}`, place.folder])
      const child = startChild(script, [place.path], {
        wrapper: [
          'systemd-socket-activate',
          '-l',
          place.path,
          'setpriv',
          `--reuid=${daemon.uid}`,
          `--regid=${daemon.gid}`,
          '--clear-groups',
          '--',
        ],
      })
      onTestFinished(() => child.kill())
      while (!existsSync(place.path)) await delay(10)
      spawnSync('chown', [`${daemon.uid}:${daemon.gid}`, place.path])
      chmodSync(place.path, 0o600)
      const pins = { path: place.path, ownerUid: daemon.uid, socketGid: null, clock: systemClock }
      const descriptor = await connectPinned({ ...pins, deadlineBootNs: deadlineIn(20_000) })
      descriptors.push(descriptor)
      expect(await child.next()).toEqual({ serves: true })
      expect(peerCredentials(descriptor)).toEqual({ ...daemon, pid: child.process.pid })
    },
  )
})
