import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { once } from 'node:events'
import { spawn } from 'node:child_process'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import * as native from '../../native/index.js'
import {
  CLOEXEC,
  codeOf,
  descriptorFlags,
  nodeScript,
  openDescriptorCount,
  runNodeUnprivileged,
  runWith,
  startProcess,
} from '../support/descriptors.js'
import { SKIP_REASONS } from '../support/skips.js'

const descriptorOf = (socket: Socket): number => (socket as unknown as { _handle: { fd: number } })._handle.fd

let folder: string
let path: string
let server: Server

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'chio-peer-'))
  path = join(folder, 'sock')
  server = createServer({ allowHalfOpen: true, pauseOnConnect: true }).listen(path)
  await once(server, 'listening')
})

afterEach(() => {
  server.close()
  rmSync(folder, { recursive: true })
})

const CONNECTOR = [
  'import socket, sys',
  's = socket.socket(socket.AF_UNIX)',
  's.connect(sys.argv[1])',
  'print("connected", flush=True)',
  'sys.stdin.read()',
].join('\n')

async function accepted(program: string, args: readonly string[]) {
  const arrival = once(server, 'connection') as Promise<[Socket]>
  const peer = await startProcess(program, args)
  const [socket] = await arrival
  return { peer, socket, fd: descriptorOf(socket) }
}

describe('the peer of a connection', () => {
  test('is the process that connected', async () => {
    const { peer, socket, fd } = await accepted('/usr/bin/python3', ['-c', CONNECTOR, path])
    expect(native.peerCredentials(fd)).toEqual({
      pid: peer.pid,
      uid: process.getuid!(),
      gid: process.getgid!(),
    })
    await peer.end()
    socket.destroy()
  })

  test('has the groups of the process that connected', async () => {
    const { peer, socket, fd } = await accepted('/usr/bin/python3', ['-c', CONNECTOR, path])
    // Node and the socket differ in whether the primary group is listed among the others.
    const beside = (groups: readonly number[]) =>
      groups.filter(group => group !== process.getgid!()).sort((a, b) => a - b)
    expect(beside(native.peerGroups(fd))).toEqual(beside(process.getgroups!()))
    await peer.end()
    socket.destroy()
  })

  test('has exactly the groups it connected with, few or many', async context => {
    if (process.getuid!() !== 0) context.skip(SKIP_REASONS.needsRoot)
    const { chmodSync } = await import('node:fs')
    chmodSync(folder, 0o755)
    chmodSync(path, 0o666)
    for (const count of [0, 3, 300]) {
      const groups = Array.from({ length: count }, (_, index) => 70_000 + index)
      const choice = count === 0 ? ['--clear-groups'] : ['--groups', groups.join(',')]
      const command = [
        '--reuid',
        '61200',
        '--regid',
        '61201',
        ...choice,
        '/usr/bin/python3',
        '-c',
        CONNECTOR,
        path,
      ]
      const { peer, socket, fd } = await accepted('/usr/bin/setpriv', command)
      expect(native.peerGroups(fd)).toEqual(groups)
      expect(native.peerCredentials(fd)).toMatchObject({ uid: 61200, gid: 61201 })
      await peer.end()
      socket.destroy()
    }
  })

  test('gives a close-on-exec pidfd that turns dead when the process ends, also as a zombie', async () => {
    const { peer, socket, fd } = await accepted('/usr/bin/python3', ['-c', CONNECTOR, path])
    const { pidfd, source } = native.peerPidfd(fd)
    expect(['so_peerpidfd', 'pidfd_open']).toContain(source)
    expect(descriptorFlags(pidfd) & CLOEXEC).toBe(CLOEXEC)
    expect(native.pidfdAlive(pidfd)).toBe(true)
    await peer.end()
    expect(native.pidfdAlive(pidfd)).toBe(false)
    native.closeDescriptor(pidfd)
    socket.destroy()
  })

  test('that ended before we asked is never alive: a dead pidfd or ESRCH, whichever the kernel gives', async () => {
    const { peer, socket, fd } = await accepted('/usr/bin/python3', ['-c', CONNECTOR, path])
    await peer.end()
    expect(native.peerCredentials(fd).pid).toBe(peer.pid)
    const before = openDescriptorCount()
    try {
      const { pidfd } = native.peerPidfd(fd)
      expect(native.pidfdAlive(pidfd)).toBe(false)
      expect(await codeOf(() => native.pidfdSignal(pidfd, 0))).toBe('ESRCH')
      native.closeDescriptor(pidfd)
    } catch (error) {
      expect(error).toMatchObject({ code: 'ESRCH' })
    }
    expect(openDescriptorCount()).toBe(before)
    socket.destroy()
  })

  test('has no pidfd on a TCP socket, and nothing on a file', async () => {
    const tcp = createServer().listen(0, '127.0.0.1')
    await once(tcp, 'listening')
    const { connect } = await import('node:net')
    const client = connect((tcp.address() as AddressInfo).port, '127.0.0.1')
    await once(client, 'connect')
    expect(await codeOf(() => native.peerPidfd(descriptorOf(client)))).toMatch(
      /^(ENODATA|ESRCH|ENOPROTOOPT)$/,
    )
    client.destroy()
    tcp.close()
    const file = openSync('/dev/null', 'r')
    expect(await codeOf(() => native.peerPidfd(file))).toBe('ENOTSOCK')
    expect(await codeOf(() => native.peerGroups(file))).toBe('ENOTSOCK')
    closeSync(file)
  })
})

const STRACE = '/usr/bin/strace'

function traced(options: readonly string[], script: string) {
  return runWith(STRACE, ['-f', '-qq', ...options, process.execPath, '-e', nodeScript(script)])
}

/** The first SO_PEERPIDFD of the script fails; Node's own calls before it are counted in a first run. */
function injected(error: string, script: string) {
  const log = join(folder, 'strace')
  traced(['-o', log, '-e', 'trace=getsockopt'], script)
  const calls = readFileSync(log, 'utf8').split('\n')
  const ours = calls.findIndex(line => /SO_PEERPIDFD|0x4d/.test(line)) + 1
  expect(ours).toBeGreaterThan(0)
  return traced(['-o', '/dev/null', '-e', `inject=getsockopt:error=${error}:when=${ours}`], script)
}

describe('the pidfd on older kernels', () => {
  test('is opened by number when the option is unknown, and says that it is the weaker source', () => {
    const run = injected(
      'ENOPROTOOPT',
      `const [a] = addon.socketPair(1); const peer = addon.peerPidfd(a)
       console.log(peer.source, addon.pidfdAlive(peer.pidfd))`,
    )
    expect(run.stderr).toBe('')
    expect(run.stdout.trim()).toBe('pidfd_open true')
  })

  test('is not opened by number when the kernel says that the peer is gone', () => {
    const run = injected(
      'EINVAL',
      `const [a] = addon.socketPair(1)
       try { addon.peerPidfd(a); console.log('opened') } catch (error) { console.log(error.code) }`,
    )
    expect(run.stdout.trim()).toBe('ESRCH')
  })
})

describe('a pidfd', () => {
  test('follows a process that we start, and signals it', async () => {
    const child = spawn('/bin/sleep', ['60'], { stdio: 'ignore' })
    const pidfd = native.pidfdOpen(child.pid!)
    expect(native.pidfdAlive(pidfd)).toBe(true)
    native.pidfdSignal(pidfd, 0)
    const exit = once(child, 'exit')
    native.pidfdSignal(pidfd, 'SIGTERM')
    expect((await exit)[1]).toBe('SIGTERM')
    expect(native.pidfdAlive(pidfd)).toBe(false)
    expect(await codeOf(() => native.pidfdSignal(pidfd, 0))).toBe('ESRCH')
    native.closeDescriptor(pidfd)
  })

  test('of a process that we may not signal is alive', () => {
    const run = runNodeUnprivileged('console.log(addon.pidfdAlive(addon.pidfdOpen(1)))')
    expect(run.stdout.trim() || run.stderr).toBe('true')
  })

  test('is not just any descriptor: a socket in its place is EBADF, not a living peer', async () => {
    const [left, right] = native.socketPair('stream')
    expect(await codeOf(() => native.pidfdAlive(left))).toBe('EBADF')
    expect(await codeOf(() => native.pidfdAlive(2_000_000))).toBe('EBADF')
    native.closeDescriptor(left)
    native.closeDescriptor(right)
  })

  test('of no process is ESRCH', async () => {
    const child = spawn('/bin/true')
    await once(child, 'exit')
    expect(await codeOf(() => native.pidfdOpen(child.pid!))).toBe('ESRCH')
  })
})
