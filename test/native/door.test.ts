import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import * as native from '../../native/index.js'
import { systemClock } from '../../native/clock.js'
import { codeOf, nodeScript, runWith } from '../support/descriptors.js'

describe('the native door', () => {
  test('names the argument, the expectation and what came instead', () => {
    expect(() => native.closeDescriptor(-1)).toThrow(
      new RangeError('"fd" expected an integer from 0 to 2147483647, got -1'),
    )
    expect(() => native.closeDescriptor(1.5)).toThrow(RangeError)
    expect(() => native.peerCredentials('3' as unknown as number)).toThrow(
      new TypeError('"fd" expected an integer, got a string'),
    )
    expect(() => native.socketPair('dgram' as 'stream')).toThrow(RangeError)
    expect(() => native.sealedMemfd('x\0y', new Uint8Array(1))).toThrow(RangeError)
    expect(() => native.sendDescriptors(0, new Uint8Array(0), [])).toThrow(RangeError)
    expect(() =>
      native.sendDescriptors(
        0,
        new Uint8Array(1),
        Array.from({ length: 254 }, () => 0),
      ),
    ).toThrow(RangeError)
    expect(() => native.pidfdSignal(0, 'SIGNOTHING' as 'SIGKILL')).toThrow(RangeError)
    expect(() => native.nativePath('sh' as 'cage-init')).toThrow(RangeError)
  })

  test('turns argument faults of operations into rejections, not throws', async () => {
    expect(await codeOf(() => native.readExact(0, 0, 1n))).toBe('RangeError')
    expect(await codeOf(() => native.readFrame(0, { maximumFrameBytes: 1, deadlineBootNs: -1n }))).toBe(
      'RangeError',
    )
    expect(await codeOf(() => native.writeFully(0, 'text' as unknown as Uint8Array, 1n))).toBe('TypeError')
    expect(await codeOf(() => native.readExact(0, 1, 5 as unknown as bigint))).toBe('TypeError')
  })

  test('takes a socket path of 107 bytes and refuses one of 108 by name', async () => {
    const path = (bytes: number) => `/tmp/${'a'.repeat(bytes - 5)}`
    expect(await codeOf(() => native.connectUnix(path(107), systemClock.bootNs() + 1_000_000_000n))).toBe(
      'ENOENT',
    )
    await expect(native.connectUnix(path(108), 1n)).rejects.toThrow(
      new RangeError('"path" expected at most 107 bytes, got 108'),
    )
    await expect(native.connectUnix(`/tmp/${'ä'.repeat(52)}`, 1n)).rejects.toThrow('got 109')
    expect(await codeOf(() => native.connectUnix('\0abstract', 1n))).toBe('RangeError')
  })

  test('makes errors that look like those of Node', () => {
    try {
      native.peerCredentials(2_000_000)
      expect.unreachable()
    } catch (error) {
      expect(error).toBeInstanceOf(Error)
      expect(error).toMatchObject({ code: 'EBADF', errno: -9, syscall: 'getsockopt' })
      expect((error as Error).message).toBe('EBADF: bad file descriptor, getsockopt')
    }
  })

  test('finds the package and the static programs from its own place', () => {
    expect(existsSync(join(native.packageRoot(), 'package.json'))).toBe(true)
    expect(existsSync(native.nativePath('chio-exec'))).toBe(true)
    expect(existsSync(native.nativePath('cage-init'))).toBe(true)
  })
})

describe('the clock', () => {
  test('is the boot clock and no other: a machine that slept is ahead of its monotonic clock', () => {
    const run = runWith('/usr/bin/unshare', [
      ...(process.getuid!() === 0 ? [] : ['--map-root-user']),
      '--time',
      '--boottime',
      '5000',
      '--fork',
      process.execPath,
      '-e',
      nodeScript(`
        const [left] = addon.socketPair(1)
        const start = process.hrtime.bigint()
        const slept = Number(addon.bootTimeNs() - start) / 1e9
        addon.readExact(left, 1, addon.bootTimeNs() + 100000000n).catch(error => {
          console.log(Math.round(slept), error.code, Number(process.hrtime.bigint() - start) < 2e9)
        })`),
    ])
    expect(run.stderr).toBe('')
    expect(run.stdout.trim()).toBe('5000 ETIMEDOUT true')
  })

  test('reads boot time that only goes forward, and the wall clock in milliseconds', () => {
    const first = systemClock.bootNs()
    const second = systemClock.bootNs()
    expect(second).toBeGreaterThanOrEqual(first)
    expect(Math.abs(systemClock.unixMs() - Date.now())).toBeLessThan(1000)
  })

  test('agrees with /proc/uptime, which also counts sleep', async () => {
    const { readFileSync } = await import('node:fs')
    const uptime = Number.parseFloat(readFileSync('/proc/uptime', 'utf8'))
    expect(Math.abs(Number(systemClock.bootNs()) / 1e9 - uptime)).toBeLessThan(1)
  })
})
