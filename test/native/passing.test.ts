import { closeSync, openSync, readSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import * as native from '../../native/index.js'
import {
  CLOEXEC,
  codeOf,
  deadlineIn,
  descriptorFlags,
  descriptorTarget,
  NONBLOCK,
  openDescriptorCount,
  runNode,
  runPython,
} from '../support/descriptors.js'
import { fullCount } from '../support/counts.js'

const ONE = new Uint8Array([1])
const expectOne = { maximumPayloadBytes: 16, descriptors: 1 }

function close(...descriptors: number[]): void {
  for (const fd of descriptors) native.closeDescriptor(fd)
}

describe('descriptors over a socket', () => {
  test('arrive as sent, close-on-exec, with the whole payload', () => {
    for (const type of ['stream', 'seqpacket'] as const) {
      const [left, right] = native.socketPair(type)
      const memfd = native.sealedMemfd('chio-passed', new TextEncoder().encode('request'))
      const [reading, writing] = native.pipe()
      native.sendDescriptors(left, new TextEncoder().encode('handoff'), [memfd, reading])
      const received = native.receiveDescriptors(right, { maximumPayloadBytes: 64, descriptors: 2 })
      expect(Buffer.from(received.payload).toString()).toBe('handoff')
      expect(received.credentials).toBeNull()
      for (const fd of received.descriptors) expect(descriptorFlags(fd) & CLOEXEC).toBe(CLOEXEC)
      expect(descriptorTarget(received.descriptors[0]!)).toContain('memfd:chio-passed')
      expect(descriptorTarget(received.descriptors[1]!)).toBe(descriptorTarget(reading))
      close(left, right, memfd, reading, writing, ...received.descriptors)
    }
  })

  test('arrive in another process, which uses them', async () => {
    const [left, right] = native.socketPair('stream')
    const [near, far] = native.socketPair('stream')
    native.sendDescriptors(left, ONE, [far])
    native.closeDescriptor(far)
    const run = runPython(
      `_, anc, flags, _ = s.recvmsg(1, socket.CMSG_SPACE(4), socket.MSG_CMSG_CLOEXEC)
fd, = struct.unpack("i", anc[0][2])
os.write(fd, b"from the other side"); print(flags & socket.MSG_CTRUNC, os.get_blocking(fd))`,
      [right],
    )
    expect(run.stdout.trim()).toBe('0 True')
    expect(Buffer.from(await native.readToEnd(near, 64, deadlineIn(1000))).toString()).toBe(
      'from the other side',
    )
    close(left, right, near)
  })

  test('are passed in the largest number that the kernel takes, and no more', async () => {
    const [left, right] = native.socketPair('stream')
    const file = openSync('/dev/null', 'r')
    const before = openDescriptorCount()
    native.sendDescriptors(
      left,
      ONE,
      Array.from({ length: 253 }, () => file),
    )
    const { descriptors } = native.receiveDescriptors(right, { maximumPayloadBytes: 1, descriptors: 253 })
    expect(new Set(descriptors).size).toBe(253)
    close(...descriptors)
    expect(openDescriptorCount()).toBe(before)
    closeSync(file)
    close(left, right)
  })

  test('are refused with EBADF when one is not open, and nothing is sent', async () => {
    const [left, right] = native.socketPair('stream')
    expect(await codeOf(() => native.sendDescriptors(left, ONE, [left, 2_000_000]))).toBe('EBADF')
    expect(await codeOf(() => native.receiveDescriptors(right, expectOne))).toBe('EAGAIN')
    close(left, right)
  })

  test('to a peer that closed are EPIPE, not a signal, and to a full socket EAGAIN, not a wait', async () => {
    const [left, right] = native.socketPair('seqpacket')
    const message = new Uint8Array(1000)
    const fill = (): void => {
      for (let sent = 0; sent < 10_000; sent++) native.sendDescriptors(left, message, [])
    }
    expect(await codeOf(fill)).toBe('EAGAIN')
    native.closeDescriptor(right)
    expect(await codeOf(() => native.sendDescriptors(left, ONE, []))).toBe('ECONNRESET') // unread bytes were lost
    expect(await codeOf(() => native.sendDescriptors(left, ONE, []))).toBe('EPIPE')
    native.closeDescriptor(left)
  })

  test('that fit only in part are EMSGSIZE on a stream: it is spent', async () => {
    const [left, right] = native.socketPair('stream')
    expect(await codeOf(() => native.sendDescriptors(left, new Uint8Array(1024 * 1024), [left]))).toBe(
      'EMSGSIZE',
    )
    close(left, right)
  })

  test('leave the shared description blocking', () => {
    const [left, right] = native.socketPair('stream')
    native.sendDescriptors(left, ONE, [left])
    const { descriptors } = native.receiveDescriptors(right, expectOne)
    expect(descriptorFlags(left) & NONBLOCK).toBe(0)
    expect(descriptorFlags(right) & NONBLOCK).toBe(0)
    close(left, right, ...descriptors)
  })
})

/** Sends from a second process; then expects a refusal that leaves the number of open descriptors unchanged. */
async function refused(send: string, expected: native.ExpectedDescriptors, prepare?: (fd: number) => void) {
  const [left, right] = native.socketPair('seqpacket')
  prepare?.(left)
  const run = runPython(`n = os.open("/dev/null", os.O_RDONLY)\n${send}`, [right])
  expect(run.stderr).toBe('')
  const before = openDescriptorCount()
  const code = await codeOf(() => native.receiveDescriptors(left, expected))
  expect(openDescriptorCount()).toBe(before)
  close(left, right)
  return code
}

const send = (count: number, payload = 'b"x"') =>
  `s.sendmsg([${payload}], [(S, R, array.array("i", [n] * ${count}))])`

describe('a message that is not what was expected', () => {
  test('is EFEWFD when descriptors are missing', async () => {
    expect(await refused('s.send(b"x")', expectOne)).toBe('EFEWFD')
    expect(await refused(send(1), { maximumPayloadBytes: 1, descriptors: 2 })).toBe('EFEWFD')
  })

  test('is EFEWFD at the end of the stream, and says so', () => {
    const [left, right] = native.socketPair('stream')
    native.closeDescriptor(right)
    expect(() => native.receiveDescriptors(left, expectOne)).toThrow(
      'expected 1 descriptors, got 0 (end of stream)',
    )
    native.closeDescriptor(left)
  })

  test('is EMANYFD with 1, 2 or 200 too many, all of them closed', async () => {
    expect(await refused(send(1), { maximumPayloadBytes: 1, descriptors: 0 })).toBe('EMANYFD')
    for (const surplus of [1, 2, 200]) expect(await refused(send(1 + surplus), expectOne)).toBe('EMANYFD')
  })

  test('is EMSGSIZE when its payload is longer than the maximum, taken at it', async () => {
    expect(await refused(send(1, 'b"12345"'), { maximumPayloadBytes: 4, descriptors: 1 })).toBe('EMSGSIZE')
    const [left, right] = native.socketPair('seqpacket')
    native.sendDescriptors(left, new Uint8Array(4), [left])
    const { payload, descriptors } = native.receiveDescriptors(right, {
      maximumPayloadBytes: 4,
      descriptors: 1,
    })
    expect(payload).toHaveLength(4)
    close(left, right, ...descriptors)
  })

  test('takes credentials that are asked for, and never sees those that are not', async () => {
    const both =
      's.sendmsg([b"x"], [(S, socket.SCM_CREDENTIALS, struct.pack("iII", os.getpid(), os.getuid(), os.getgid())), (S, R, array.array("i", [n]))])'
    const [left, right] = native.socketPair('seqpacket')
    for (const on of [false, true]) {
      native.setPassCredentials(left, on)
      runPython(`n = os.open("/dev/null", os.O_RDONLY)\n${both}`, [right])
      const { descriptors, credentials } = native.receiveDescriptors(left, expectOne)
      expect(credentials === null).toBe(!on)
      close(...descriptors)
    }
    close(left, right)
  })

  test('is EFOREIGNCMSG with a control message of another kind, and the descriptor in it is closed', async () => {
    const SO_PASSPIDFD = 76
    const probe = runPython(`socket.socket(socket.AF_UNIX).setsockopt(S, ${SO_PASSPIDFD}, 1)`)
    if (probe.status !== 0) return // Linux below 6.5 knows no such message
    const prepare = (fd: number): void => {
      expect(runPython(`s.setsockopt(S, ${SO_PASSPIDFD}, 1)`, [fd]).stderr).toBe('')
    }
    expect(await refused(send(1), expectOne, prepare)).toBe('EFOREIGNCMSG')
    expect(await refused('s.send(b"x")', { maximumPayloadBytes: 1, descriptors: 0 }, prepare)).toBe(
      'EFOREIGNCMSG',
    )
  })

  test('is refused by the waiting reader too, with all its descriptors closed', async () => {
    const [left, right] = native.socketPair('seqpacket')
    const file = openSync('/dev/null', 'r')
    const before = openDescriptorCount()
    native.sendDescriptors(right, ONE, [file, file])
    expect(await codeOf(() => native.receiveMessage(left, deadlineIn(1000), 16))).toBe('EMANYFD')
    native.sendDescriptors(right, new Uint8Array(17), [])
    expect(await codeOf(() => native.receiveMessage(left, deadlineIn(1000), 16))).toBe('EMSGSIZE')
    expect(openDescriptorCount()).toBe(before)
    closeSync(file)
    close(left, right)
  })

  test('1,000 times leaves as many descriptors open as before', async () => {
    const [left, right] = native.socketPair('seqpacket')
    const file = openSync('/dev/null', 'r')
    const before = openDescriptorCount()
    for (let round = 0; round < fullCount(1000, 10_000); round++) {
      const count = [0, 2, 3, 200][round % 4]!
      native.sendDescriptors(
        left,
        ONE,
        Array.from({ length: count }, () => file),
      )
      expect(() => native.receiveDescriptors(right, expectOne)).toThrow()
    }
    expect(openDescriptorCount()).toBe(before)
    closeSync(file)
    close(left, right)
  })
})

describe('a full descriptor table', () => {
  const limited = (free: number, count: number) =>
    runNode(`
    const fs = require('node:fs'), { spawnSync } = require('node:child_process')
    const [left, right] = addon.socketPair(5)
    const file = fs.openSync('/dev/null', 'r')
    addon.sendDescriptors(left, new Uint8Array([1]), new Array(${count}).fill(file))
    spawnSync('/bin/true') // Node opens what it needs for children once
    const count = () => fs.readdirSync('/proc/self/fd').length
    const before = count()
    const highest = Math.max(...fs.readdirSync('/proc/self/fd').map(Number))
    const holes = []
    do holes.push(fs.openSync('/dev/null', 'r')); while (holes.at(-1) <= highest)
    const limit = holes.at(-1) + 1 + ${free}
    spawnSync('/usr/bin/prlimit', ['--pid', String(process.pid), '--nofile=' + limit + ':'])
    let code = 'delivered'
    try { addon.receiveDescriptors(right, 16, ${count}) } catch (error) { code = error.code + ' ' + error.message }
    for (const fd of holes) fs.closeSync(fd)
    console.log(code, count() - before)`)

  test('is ECTRUNC: the message came, its descriptor did not, and none of it stays open', () => {
    for (const [free, count] of [
      [0, 1],
      [1, 3],
    ] as const) {
      const run = limited(free, count)
      expect(run.stderr).toBe('')
      expect(run.stdout).toMatch(/^ECTRUNC ECTRUNC: message refused: a descriptor was not delivered.* 0$/m)
    }
  })
})

test('bytes behind a received message stay in the socket for whoever reads next', () => {
  const [left, right] = native.socketPair('stream')
  native.sendDescriptors(left, new Uint8Array([1, 2, 3, 4]), [left])
  const { payload, descriptors } = native.receiveDescriptors(right, {
    maximumPayloadBytes: 2,
    descriptors: 1,
  })
  expect(payload).toEqual(new Uint8Array([1, 2]))
  const rest = Buffer.alloc(8)
  expect(readSync(right, rest)).toBe(2)
  expect(rest.subarray(0, 2)).toEqual(Buffer.from([3, 4]))
  close(left, right, ...descriptors)
})
