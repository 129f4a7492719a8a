import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spawn } from 'node:child_process'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import * as native from '../../native/index.js'
import { systemClock } from '../../native/clock.js'
import {
  codeOf,
  deadlineIn,
  descriptorFlags,
  openDescriptorCount,
  runPython,
  startProcess,
} from '../support/descriptors.js'

const text = (value: string): Uint8Array => new TextEncoder().encode(value)

describe('connecting', () => {
  let folder: string
  let path: string

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'chio-connect-'))
    path = join(folder, 'sock')
  })

  afterEach(() => rmSync(folder, { recursive: true }))

  const LISTENER =
    'import socket, sys\nl = socket.socket(socket.AF_UNIX); l.bind(sys.argv[1]); l.listen(int(sys.argv[2]))\nprint("up", flush=True)\n'

  test('gives a blocking, close-on-exec descriptor without timeouts', async () => {
    const body = `${LISTENER}c, _ = l.accept(); c.sendall(c.recv(16)); sys.stdin.read()`
    const server = await startProcess('/usr/bin/python3', ['-c', body, path, '1'])
    const fd = await native.connectUnix(path, deadlineIn(2000))
    expect(descriptorFlags(fd)).toBe(0o2000002) // O_RDWR | O_CLOEXEC
    expect(native.peerCredentials(fd).pid).toBe(server.pid)
    const zeros = `b'${'\\x00'.repeat(16)}'`
    expect(
      runPython('print(s.getsockopt(S, socket.SO_RCVTIMEO, 16), s.getsockopt(S, socket.SO_SNDTIMEO, 16))', [
        fd,
      ]).stdout.trim(),
    ).toBe(`${zeros} ${zeros}`)
    await native.writeFully(fd, text('echo'), deadlineIn(1000))
    expect(await native.readExact(fd, 4, deadlineIn(1000))).toEqual(text('echo'))
    native.closeDescriptor(fd)
    await server.end()
  })

  test('to nothing or to a socket that nobody serves fails at once', async () => {
    expect(await codeOf(() => native.connectUnix(path, deadlineIn(2000)))).toBe('ENOENT')
    const dead = await startProcess('/usr/bin/python3', ['-c', `${LISTENER}sys.stdin.read()`, path, '1'])
    await dead.end()
    await expect(native.connectUnix(path, deadlineIn(2000))).rejects.toMatchObject({
      code: 'ECONNREFUSED',
      syscall: 'connect',
    })
  })

  test('waits for a full backlog up to the deadline, and gets in when there is room', async () => {
    const body = `${LISTENER}sys.stdin.readline(); l.accept(); l.accept(); sys.stdin.read()`
    const child = spawn('/usr/bin/python3', ['-c', body, path, '0'], { stdio: ['pipe', 'pipe', 'inherit'] })
    await once(child.stdout, 'data')
    const first = await native.connectUnix(path, deadlineIn(2000))
    const before = openDescriptorCount()
    const start = systemClock.bootNs()
    expect(await codeOf(() => native.connectUnix(path, deadlineIn(150)))).toBe('ETIMEDOUT')
    expect(Number(systemClock.bootNs() - start) / 1e6).toBeGreaterThanOrEqual(149)
    expect(openDescriptorCount()).toBe(before)
    const waiting = native.connectUnix(path, deadlineIn(5000))
    child.stdin.write('\n')
    native.closeDescriptor(await waiting)
    native.closeDescriptor(first)
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
})
