import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import * as native from '../../native/index.js'
import { codeOf, deadlineIn, runPython, startProcess } from '../support/descriptors.js'

const descriptorOf = (socket: { _handle?: unknown }): number => (socket._handle as { fd: number }).fd

describe('what a socket is', () => {
  test('is told for a connected, unnamed pair', () => {
    const [left, right] = native.socketPair('stream')
    const [packet, other] = native.socketPair('seqpacket')
    const expected = { domain: 'unix', listening: false, connected: true, path: null }
    expect(native.socketInfo(left)).toEqual({ ...expected, type: 'stream' })
    expect(native.socketInfo(packet)).toEqual({ ...expected, type: 'seqpacket' })
    for (const fd of [left, right, packet, other]) native.closeDescriptor(fd)
  })

  test('is told for a listener, its clients and what it accepted, each with the path', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'chio-info-'))
    const path = join(folder, 'sock')
    const server = createServer({ pauseOnConnect: true }).listen(path)
    await once(server, 'listening')
    const expected = { domain: 'unix', type: 'stream', path }
    const listener = descriptorOf(server as unknown as { _handle: unknown })
    expect(native.socketInfo(listener)).toEqual({ ...expected, listening: true, connected: false })
    const arrival = once(server, 'connection') as Promise<[Socket]>
    const client = await native.connectUnix(path, deadlineIn(2000))
    const [accepted] = await arrival
    expect(native.socketInfo(client)).toEqual({ ...expected, listening: false, connected: true })
    const fd = descriptorOf(accepted as unknown as { _handle: unknown })
    expect(native.socketInfo(fd)).toEqual({ ...expected, listening: false, connected: true })
    native.closeDescriptor(client)
    accepted.destroy()
    server.close()
    rmSync(folder, { recursive: true })
  })

  test('is told for TCP, datagram, unconnected and abstract sockets', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
    await once(client, 'connect')
    const fd = descriptorOf(client as unknown as { _handle: unknown })
    expect(native.socketInfo(fd)).toMatchObject({
      domain: 'inet',
      type: 'stream',
      connected: true,
      path: null,
    })
    client.destroy()
    server.close()
    const held = await startProcess(
      '/usr/bin/python3',
      [
        '-c',
        [
          'import socket, sys, array',
          'c = socket.socket(fileno=3)',
          'u = socket.socket(socket.AF_UNIX); d = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)',
          'a = socket.socket(socket.AF_UNIX); a.bind("\\0chio-%d" % __import__("os").getpid()); a.listen()',
          'fds = array.array("i", [u.fileno(), d.fileno(), a.fileno()])',
          'c.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)]); print("sent", flush=True); sys.stdin.read()',
        ].join('\n'),
      ],
      [controlPair()[1]],
    )
    const { descriptors } = native.receiveDescriptors(pair![0], { maximumPayloadBytes: 1, descriptors: 3 })
    const [unconnected, datagram, abstract] = descriptors as [number, number, number]
    expect(native.socketInfo(unconnected)).toMatchObject({
      type: 'stream',
      connected: false,
      listening: false,
    })
    expect(native.socketInfo(datagram)).toMatchObject({ type: 'dgram', connected: false })
    expect(native.socketInfo(abstract)).toMatchObject({ listening: true, path: `\0chio-${held.pid}` })
    for (const each of descriptors) native.closeDescriptor(each)
    await held.end()
    closeControlPair()
  })

  test('is ENOTSOCK for anything else, EBADF for nothing', async () => {
    const file = openSync('/dev/null', 'r')
    const [reading, writing] = native.pipe()
    expect(await codeOf(() => native.socketInfo(file))).toBe('ENOTSOCK')
    expect(await codeOf(() => native.socketInfo(reading))).toBe('ENOTSOCK')
    closeSync(file)
    native.closeDescriptor(reading)
    native.closeDescriptor(writing)
    expect(await codeOf(() => native.socketInfo(2_000_000))).toBe('EBADF')
  })
})

let pair: [number, number] | undefined

function controlPair(): [number, number] {
  pair = native.socketPair('stream')
  return pair
}

function closeControlPair(): void {
  for (const fd of pair ?? []) native.closeDescriptor(fd)
  pair = undefined
}

describe('a peer that hung up', () => {
  test('is one that closed, not one that half-closed, nor one that sent and waits', () => {
    const [left, right] = native.socketPair('stream')
    expect(native.hungUp(left)).toBe(false)
    native.shutdownWrite(right)
    expect(native.hungUp(left)).toBe(false)
    native.closeDescriptor(right)
    expect(native.hungUp(left)).toBe(true)
    native.closeDescriptor(left)
  })

  test('is seen while its bytes are still unread', async () => {
    const [left, right] = native.socketPair('stream')
    await native.writeFully(right, new Uint8Array([7]), deadlineIn(1000))
    native.closeDescriptor(right)
    expect(native.hungUp(left)).toBe(true)
    expect(await native.readToEnd(left, 10, deadlineIn(1000))).toEqual(new Uint8Array([7]))
    native.closeDescriptor(left)
    expect(await codeOf(() => native.hungUp(2_000_000))).toBe('EBADF')
  })
})

describe("the sender's credentials", () => {
  test('come with a message only while they are asked for', async () => {
    const [left, right] = native.socketPair('seqpacket')
    const limits = { maximumPayloadBytes: 8, descriptors: 0 }
    runPython('s.send(b"one")', [right])
    expect(native.receiveDescriptors(left, limits).credentials).toBeNull()
    native.setPassCredentials(left, true)
    const run = runPython('s.send(b"two"); print(os.getpid())', [right])
    const { payload, credentials } = native.receiveDescriptors(left, limits)
    expect(Buffer.from(payload).toString()).toBe('two')
    expect(credentials).toEqual({ pid: Number(run.stdout), uid: process.getuid!(), gid: process.getgid!() })
    native.setPassCredentials(left, false)
    runPython('s.send(b"three")', [right])
    expect((await native.receiveMessage(left, deadlineIn(1000), 8))?.credentials).toBeNull()
    native.closeDescriptor(left)
    native.closeDescriptor(right)
  })
})
