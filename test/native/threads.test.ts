import { Worker } from 'node:worker_threads'
import { once } from 'node:events'
import { writeSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import * as native from '../../native/index.js'
import { systemClock } from '../../native/clock.js'
import { codeOf, deadlineIn, nodeScript, openDescriptorCount, runNode } from '../support/descriptors.js'
import { fullCount } from '../support/counts.js'

function pair(): [number, number] {
  return native.socketPair('stream')
}

function close(...descriptors: number[]): void {
  for (const fd of descriptors) native.closeDescriptor(fd)
}

async function until(condition: () => boolean): Promise<void> {
  for (let tries = 0; tries < 500 && !condition(); tries++)
    await new Promise(resolve => setTimeout(resolve, 2))
  expect(condition()).toBe(true)
}

describe('an operation whose descriptor we close', () => {
  test('ends with ECANCELED, and the peer sees the end of the stream at once', async () => {
    const [left, right] = pair()
    const reading = codeOf(() => native.readExact(left, 1, deadlineIn(20_000)))
    native.closeDescriptor(left)
    expect(await reading).toBe('ECANCELED')
    await until(() => native.hungUp(right))
    native.closeDescriptor(right)
  })

  test('ends for writers, frames, messages and waits alike', async () => {
    for (const start of [
      (fd: number) => native.writeFully(fd, new Uint8Array(1024 * 1024), deadlineIn(20_000)),
      (fd: number) => native.readFrame(fd, { maximumFrameBytes: 10, deadlineBootNs: deadlineIn(20_000) }),
      (fd: number) => native.readToEnd(fd, 10, deadlineIn(20_000)),
      (fd: number) => native.receiveMessage(fd, deadlineIn(20_000), 10),
      (fd: number) => native.awaitReadable(fd, deadlineIn(20_000)),
    ]) {
      const [left, right] = pair()
      const outcome = codeOf(() => start(left))
      native.closeDescriptor(left)
      expect(await outcome).toBe('ECANCELED')
      native.closeDescriptor(right)
    }
  })

  test('does not touch an operation on another descriptor', async () => {
    const [left, right] = pair()
    const [other, peer] = pair()
    const reading = native.readExact(left, 1, deadlineIn(20_000))
    close(other, peer)
    writeSync(right, Buffer.from([5]))
    expect(await reading).toEqual(new Uint8Array([5]))
    close(left, right)
  })

  test('is woken by shutdownBoth with the end of the stream', async () => {
    const [left, right] = pair()
    const reading = native.readFrame(left, { maximumFrameBytes: 10, deadlineBootNs: deadlineIn(20_000) })
    native.shutdownBoth(left)
    expect(await reading).toBeNull()
    close(left, right)
  })
})

describe('many operations', () => {
  test('wait side by side: sixty-four stalled peers hold up neither each other nor the loop', async () => {
    const pairs = Array.from({ length: 64 }, pair)
    const before = openDescriptorCount()
    const reading = pairs.map(([left]) => native.readExact(left, 1, deadlineIn(20_000)))
    const [extra, other] = pair()
    expect(await codeOf(() => native.readExact(extra, 1, deadlineIn(1000)))).toBe('EAGAIN')
    const start = systemClock.bootNs()
    for (const [, right] of pairs.toReversed()) writeSync(right, Buffer.from([1]))
    await Promise.all(reading)
    expect(Number(systemClock.bootNs() - start) / 1e6).toBeLessThan(2000)
    writeSync(other, Buffer.from([1]))
    expect(await native.readExact(extra, 1, deadlineIn(1000))).toHaveLength(1)
    close(extra, other)
    expect(openDescriptorCount()).toBe(before)
    for (const each of pairs) close(...each)
  })

  test('leave libuv’s pool free for files and names', async () => {
    const { readFile } = await import('node:fs/promises')
    const pairs = Array.from({ length: 16 }, pair)
    const reading = pairs.map(([left]) => codeOf(() => native.readExact(left, 1, deadlineIn(20_000))))
    expect((await readFile('/etc/passwd')).length).toBeGreaterThan(0)
    for (const [left] of pairs) native.closeDescriptor(left)
    expect(new Set(await Promise.all(reading))).toEqual(new Set(['ECANCELED']))
    for (const [, right] of pairs) native.closeDescriptor(right)
  })
})

describe('the process', () => {
  test('stays for a running operation and leaves when none runs', () => {
    const waiting = runNode(`
      const [left, right] = addon.socketPair(1)
      addon.readExact(left, 1, addon.bootTimeNs() + 300000000n).catch(error => console.log(error.code))`)
    expect(waiting.stdout.trim()).toBe('ETIMEDOUT')
    const idle = runNode(`
      const [left, right] = addon.socketPair(1)
      addon.writeFully(left, new Uint8Array([1]), addon.bootTimeNs() + 60000000000n).then(() => console.log('done'))`)
    expect(idle.stdout.trim()).toBe('done')
    expect(idle.status).toBe(0)
  })

  test('exits cleanly in the middle of operations', () => {
    for (const end of ['process.exit(7)', 'process.exitCode = 7; addon.closeDescriptor(left)']) {
      const run = runNode(`
        const [left, right] = addon.socketPair(1)
        const later = () => addon.bootTimeNs() + 60000000000n
        for (let n = 0; n < 20; n++) addon.readExact(left, 1, later()).catch(() => {})
        setTimeout(() => { ${end} }, 20)`)
      expect(run).toMatchObject({ status: 7, signal: null, stderr: '' })
    }
  })
})

const WORKER = nodeScript(`
  const { parentPort } = require('node:worker_threads')
  const [left, right] = addon.socketPair(1)
  const later = () => addon.bootTimeNs() + 60000000000n
  ;(async () => {
    await addon.writeFully(left, new Uint8Array([0, 0, 0, 1, 7]), later())
    const body = await addon.readFrame(right, 16, later())
    for (let n = 0; n < 8; n++) addon.readExact(right, 1, later()).catch(() => {})
    parentPort.postMessage([...body, left, right])
  })()`)

describe('worker threads', () => {
  test('run operations of their own, and are ended in the middle of them without a trace', async () => {
    await runWorker() // what Node opens for its first worker stays open
    const before = openDescriptorCount()
    for (let round = 0; round < fullCount(15, 200); round++) await runWorker()
    expect(openDescriptorCount()).toBe(before)
  })

  test('run several at once', async () => {
    await Promise.all(Array.from({ length: 4 }, runWorker))
  })
})

async function runWorker(): Promise<void> {
  const worker = new Worker(WORKER, { eval: true })
  const [[byte, left, right]] = (await once(worker, 'message')) as [[number, number, number]]
  expect(byte).toBe(7)
  await worker.terminate()
  close(left, right)
}
