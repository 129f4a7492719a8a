import { openSync, readSync, closeSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import * as native from '../../native/index.js'
import { systemClock } from '../../native/clock.js'
import {
  codeOf,
  deadlineIn,
  descriptorFlags,
  NONBLOCK,
  openDescriptorCount,
  runPython,
  startProcess,
} from '../support/descriptors.js'
import { fullCount } from '../support/counts.js'

let left: number
let right: number

beforeEach(() => {
  ;[left, right] = native.socketPair('stream')
})

afterEach(() => {
  for (const fd of [left, right]) if (fd >= 0) native.closeDescriptor(fd)
})

/** Closes the right end now; its number may belong to something else afterwards, and is forgotten. */
function closeRight(): void {
  native.closeDescriptor(right)
  right = -1
}

const text = (value: string): Uint8Array => new TextEncoder().encode(value)

function frame(body: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(4 + body.length)
  new DataView(bytes.buffer).setUint32(0, body.length)
  bytes.set(body, 4)
  return bytes
}

const limits = (maximumFrameBytes: number, milliseconds = 2000) => ({
  maximumFrameBytes,
  deadlineBootNs: deadlineIn(milliseconds),
})

function millisecondsSince(startNs: bigint): number {
  return Number(systemClock.bootNs() - startNs) / 1e6
}

describe('a frame', () => {
  test('is read to its last byte and not one further: what follows is the tool’s', async () => {
    await native.writeFully(
      left,
      new Uint8Array([...frame(text('first')), ...frame(text('second')), 9]),
      deadlineIn(1000),
    )
    expect(await native.readFrame(right, limits(64))).toEqual(text('first'))
    const rest = Buffer.alloc(64)
    expect(readSync(right, rest)).toBe(11)
    expect(rest.subarray(0, 11)).toEqual(Buffer.from([...frame(text('second')), 9]))
  })

  test('arrives byte by byte from another process as it does whole', async () => {
    const run = startProcess(
      '/usr/bin/python3',
      [
        '-c',
        `import os, sys, time\nprint("go", flush=True)\nfor b in b"\\0\\0\\0\\5hello": os.write(3, bytes([b])); time.sleep(0.01)\nsys.stdin.read()`,
      ],
      [left],
    )
    expect(await native.readFrame(right, limits(5))).toEqual(text('hello'))
    await (await run).end()
  })

  test('is taken at the limit and refused one over, before its body is waited for', async () => {
    const large = new Uint8Array(70_000).fill(5)
    const writing = native.writeFully(left, frame(large), deadlineIn(2000))
    expect(await native.readFrame(right, limits(70_000))).toEqual(large)
    await writing
    writeSync(left, Buffer.from([0, 1, 0x11, 0x71])) // 70,001 claimed, no byte of it sent
    const start = systemClock.bootNs()
    await expect(native.readFrame(right, limits(70_000, 5000))).rejects.toMatchObject({
      code: 'EMSGSIZE',
      message: 'EMSGSIZE: too long: expected at most 70000 bytes, got a longer frame',
    })
    expect(millisecondsSince(start)).toBeLessThan(1000)
  })

  test('of four gigabytes that a peer claims costs no memory', async () => {
    writeSync(left, Buffer.from([0xff, 0xff, 0xff, 0xff]))
    expect(await codeOf(() => native.readFrame(right, limits(native.STREAM_MAXIMUM_BYTES)))).toBe('EMSGSIZE')
  })

  test('of no bytes is an empty body, not the end', async () => {
    writeSync(left, frame(new Uint8Array(0)))
    expect(await native.readFrame(right, limits(1))).toEqual(new Uint8Array(0))
  })

  test('is null at a clean end, ETRUNC when the stream ends inside prefix or body', async () => {
    for (const [sent, outcome] of [
      [[], null],
      [[0], 'ETRUNC'],
      [[0, 0, 0], 'ETRUNC'],
      [[0, 0, 0, 2], 'ETRUNC'],
      [[0, 0, 0, 2, 65], 'ETRUNC'],
    ] as const) {
      const [near, far] = native.socketPair('stream')
      if (sent.length > 0) writeSync(near, Buffer.from(sent))
      native.closeDescriptor(near)
      const reading = native.readFrame(far, limits(16))
      if (outcome === null) expect(await reading).toBeNull()
      else expect(await codeOf(() => reading)).toBe(outcome)
      native.closeDescriptor(far)
    }
  })

  test('is null after a half-close too, and the other direction still carries bytes', async () => {
    native.shutdownWrite(left)
    expect(await native.readFrame(right, limits(16))).toBeNull()
    await native.writeFully(right, frame(text('answer')), deadlineIn(1000))
    expect(await native.readFrame(left, limits(16))).toEqual(text('answer'))
  })

  test('that was answered before the peer reset is still read', async () => {
    await native.writeFully(left, text('never read by the peer'), deadlineIn(1000))
    await native.writeFully(right, frame(text('refused')), deadlineIn(1000))
    closeRight()
    expect(await native.readFrame(left, limits(16))).toEqual(text('refused'))
    expect(await codeOf(() => native.readFrame(left, limits(16)))).toBe('ECONNRESET')
  })
})

describe('reading and writing', () => {
  test('carry 8 MiB through a small socket buffer, unchanged, with both ends at work', async () => {
    const bytes = new Uint8Array(8 * 1024 * 1024).map((_, index) => index % 251)
    const [got] = await Promise.all([
      native.readExact(right, bytes.length, deadlineIn(10_000)),
      native.writeFully(left, bytes, deadlineIn(10_000)),
    ])
    expect(Buffer.compare(got, bytes)).toBe(0)
  })

  test('send the bytes as they were at the call, whatever becomes of them afterwards', async () => {
    const bytes = text('authorized')
    const writing = native.writeFully(left, bytes, deadlineIn(1000))
    bytes.fill(0)
    await writing
    expect(await native.readExact(right, 10, deadlineIn(1000))).toEqual(text('authorized'))
  })

  test('to the end take the maximum and refuse one byte more', async () => {
    await native.writeFully(left, new Uint8Array(100), deadlineIn(1000))
    native.shutdownWrite(left)
    expect(await native.readToEnd(right, 100, deadlineIn(1000))).toHaveLength(100)
    await native.writeFully(right, new Uint8Array(101), deadlineIn(1000))
    native.shutdownWrite(right)
    expect(await codeOf(() => native.readToEnd(left, 100, deadlineIn(1000)))).toBe('EMSGSIZE')
  })

  test('work on pipes as on sockets', async () => {
    const [reading, writing] = native.pipe()
    const bytes = new Uint8Array(300_000).fill(3)
    const [got] = await Promise.all([
      native.readExact(reading, bytes.length, deadlineIn(5000)),
      native.writeFully(writing, bytes, deadlineIn(5000)),
    ])
    expect(got).toEqual(bytes)
    native.closeDescriptor(writing)
    expect(await native.readToEnd(reading, 10, deadlineIn(1000))).toHaveLength(0)
    native.closeDescriptor(reading)
  })

  test('on a pipe that nobody reads end at the deadline, and without a reader in EPIPE', async () => {
    const [reading, writing] = native.pipe()
    expect(await codeOf(() => native.writeFully(writing, new Uint8Array(1_000_000), deadlineIn(60)))).toBe(
      'ETIMEDOUT',
    )
    native.closeDescriptor(reading)
    expect(await codeOf(() => native.writeFully(writing, new Uint8Array(1), deadlineIn(1000)))).toBe('EPIPE')
    native.closeDescriptor(writing)
  })

  test('never leave O_NONBLOCK or a timeout on the shared description', async () => {
    await native.writeFully(left, frame(text('x')), deadlineIn(1000))
    await native.readFrame(right, limits(16))
    await codeOf(() => native.readFrame(right, limits(16, 20)))
    const reading = native.readFrame(right, limits(16, 300))
    expect(descriptorFlags(left) & NONBLOCK).toBe(0)
    expect(descriptorFlags(right) & NONBLOCK).toBe(0)
    await codeOf(() => reading)
    const run = runPython(
      'print(s.getblocking(), s.getsockopt(S, socket.SO_RCVTIMEO, 16), s.getsockopt(S, socket.SO_SNDTIMEO, 16))',
      [right],
    )
    expect(run.stdout.trim()).toBe(`True ${`b'${'\\x00'.repeat(16)}'`} ${`b'${'\\x00'.repeat(16)}'`}`)
  })

  test('to a peer that closed are EPIPE, without a signal', async () => {
    closeRight()
    expect(await codeOf(() => native.writeFully(left, text('x'), deadlineIn(1000)))).toBe('EPIPE')
  })

  test('of something that is not open is EBADF, of a file it is an error, not a hang', async () => {
    expect(await codeOf(() => native.readExact(2_000_000, 1, deadlineIn(1000)))).toBe('EBADF')
    const folder = openSync(tmpdir(), 'r')
    expect(await codeOf(() => native.readExact(folder, 1, deadlineIn(1000)))).toBe('EISDIR')
    closeSync(folder)
  })

  test('of a thousand operations leave no descriptor behind', async () => {
    const before = openDescriptorCount()
    for (let round = 0; round < fullCount(500, 5000); round++) {
      await native.writeFully(left, frame(text('x')), deadlineIn(5000))
      await native.readFrame(right, limits(16, 5000))
    }
    expect(openDescriptorCount()).toBe(before)
  })
})

describe('the deadline', () => {
  test('ends a read of a silent peer, a trickle, and a write to a stopped reader', async () => {
    for (const operation of [
      () => native.readFrame(right, limits(16, 120)),
      () => native.writeFully(left, new Uint8Array(1024 * 1024), deadlineIn(120)),
      () => native.awaitReadable(left, deadlineIn(120)),
    ]) {
      const start = systemClock.bootNs()
      await expect(operation()).rejects.toMatchObject({ code: 'ETIMEDOUT', errno: -110 })
      expect(millisecondsSince(start)).toBeGreaterThanOrEqual(119)
      expect(millisecondsSince(start)).toBeLessThan(600)
    }
  })

  test('is not moved by trickled bytes', async () => {
    const trickle = setInterval(() => writeSync(left, Buffer.from([0])), 20)
    writeSync(left, Buffer.from([0, 0, 1, 0]))
    const start = systemClock.bootNs()
    expect(await codeOf(() => native.readFrame(right, limits(1000, 200)))).toBe('ETIMEDOUT')
    expect(millisecondsSince(start)).toBeLessThan(700)
    clearInterval(trickle)
  })

  test('that has passed refuses even what already lies there', async () => {
    await native.writeFully(left, frame(text('late')), deadlineIn(1000))
    expect(await codeOf(() => native.readFrame(right, limits(16, -1)))).toBe('ETIMEDOUT')
    expect(await codeOf(() => native.writeFully(left, text('x'), 0n))).toBe('ETIMEDOUT')
    expect(await native.readFrame(right, limits(16))).toEqual(text('late'))
  })

  test('longer than one slice of waiting still delivers', async () => {
    const reading = native.readFrame(right, limits(16, 10_000))
    setTimeout(() => writeSync(left, frame(text('late'))), 1300)
    expect(await reading).toEqual(text('late'))
  })
})
