import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readSync,
  rmSync,
  symlinkSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import * as native from '../../native/index.js'
import {
  CLOEXEC,
  codeOf,
  descriptorFlags,
  NONBLOCK,
  openDescriptorCount,
  runNode,
} from '../support/descriptors.js'
import { isFullRun } from '../support/counts.js'

describe('descriptors that are made here', () => {
  test('are close-on-exec and blocking, whatever they are', () => {
    const made = [
      ...native.socketPair('stream'),
      ...native.socketPair('seqpacket'),
      ...native.pipe(),
      native.sealedMemfd('chio-test', new Uint8Array([1, 2, 3])),
      native.openDirectory(tmpdir()),
    ]
    made.push(native.duplicateDescriptor(made[0]!, 10))
    for (const fd of made) {
      expect(descriptorFlags(fd) & CLOEXEC).toBe(CLOEXEC)
      expect(descriptorFlags(fd) & NONBLOCK).toBe(0)
      native.closeDescriptor(fd)
    }
  })

  test('take the lowest free number at or above the minimum', () => {
    const [reading, writing] = native.pipe()
    const high = native.duplicateDescriptor(reading, 500)
    const next = native.duplicateDescriptor(reading, 500)
    expect(high).toBeGreaterThanOrEqual(500)
    expect(next).toBe(high + 1)
    for (const fd of [reading, writing, high, next]) native.closeDescriptor(fd)
  })

  test('are closed by number: one that is not open is EBADF', async () => {
    const [reading, writing] = native.pipe()
    native.closeDescriptor(reading)
    native.closeDescriptor(writing)
    expect(await codeOf(() => native.closeDescriptor(2_000_000))).toBe('EBADF')
  })

  test('of a folder are refused through a link or for a file', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'chio-folder-'))
    mkdirSync(join(folder, 'real'))
    symlinkSync('real', join(folder, 'link'))
    expect(await codeOf(() => native.openDirectory(join(folder, 'link')))).toMatch(/^(ENOTDIR|ELOOP)$/)
    expect(await codeOf(() => native.openDirectory('/etc/passwd'))).toBe('ENOTDIR')
    rmSync(folder, { recursive: true })
  })
})

describe('a sealed memfd', () => {
  test('holds its bytes and can be neither written, grown, shrunk nor unsealed', async () => {
    const fd = native.sealedMemfd('chio-test', new TextEncoder().encode('plan'))
    expect(native.memfdSeals(fd)).toBe(native.FULL_SEALS)
    expect(await codeOf(() => writeSync(fd, 'x', 0))).toBe('EPERM')
    const { ftruncateSync } = await import('node:fs')
    expect(await codeOf(() => ftruncateSync(fd, 0))).toBe('EPERM')
    expect(await codeOf(() => ftruncateSync(fd, 100))).toBe('EPERM')
    expect(new TextDecoder().decode(native.readSealed(fd, { exactBytes: 4 }))).toBe('plan')
    native.closeDescriptor(fd)
  })

  test('is read from its start, and the shared offset stays where it was', () => {
    const fd = native.sealedMemfd('chio-test', new TextEncoder().encode('plan'))
    const two = Buffer.alloc(2)
    readSync(fd, two, 0, 2, null)
    expect(two.toString()).toBe('pl')
    expect(native.readSealed(fd, { maximumBytes: 10 })).toHaveLength(4)
    readSync(fd, two, 0, 2, null)
    expect(two.toString()).toBe('an')
    native.closeDescriptor(fd)
  })

  test('is taken at the maximum and refused one over, and at any other than the exact size', async () => {
    const fd = native.sealedMemfd('chio-test', new Uint8Array(8))
    expect(native.readSealed(fd, { maximumBytes: 8 })).toHaveLength(8)
    expect(await codeOf(() => native.readSealed(fd, { maximumBytes: 7 }))).toBe('EMSGSIZE')
    expect(await codeOf(() => native.readSealed(fd, { exactBytes: 9 }))).toBe('EMSGSIZE')
    native.closeDescriptor(fd)
    const empty = native.sealedMemfd('chio-test', new Uint8Array(0))
    expect(native.readSealed(empty, { exactBytes: 0 })).toHaveLength(0)
    native.closeDescriptor(empty)
  })

  test('is refused when a seal is missing, and a file is no memfd', async () => {
    const script = 'import os; fd = os.memfd_create("x", os.MFD_ALLOW_SEALING); os.write(fd, b"abc")'
    const { spawn } = await import('node:child_process')
    const child = spawn('/usr/bin/python3', ['-c', `${script}; print(fd, flush=True); input()`], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    const number = Number(await new Promise<Buffer>(resolve => child.stdout.once('data', resolve)))
    const unsealed = openSync(`/proc/${child.pid}/fd/${number}`, 'r')
    expect(native.memfdSeals(unsealed)).toBe(0)
    expect(await codeOf(() => native.readSealed(unsealed, { exactBytes: 3 }))).toBe('EUNSEALED')
    closeSync(unsealed)
    child.kill('SIGKILL')
    const file = openSync('/etc/passwd', 'r')
    expect(await codeOf(() => native.memfdSeals(file))).toBe('EINVAL')
    expect(await codeOf(() => native.readSealed(file, { maximumBytes: 1024 }))).toBe('EINVAL')
    closeSync(file)
  })

  test('of 1,000 rounds leaves no descriptor behind', () => {
    const before = openDescriptorCount()
    for (let round = 0; round < 1000; round++) {
      native.closeDescriptor(native.sealedMemfd('chio-test', new Uint8Array(100)))
    }
    expect(openDescriptorCount()).toBe(before)
  })
})

const INHERITED = `
  const fs = require('node:fs'), { spawnSync } = require('node:child_process')
  const listed = () => spawnSync('/bin/ls', ['/proc/self/fd'], { stdio: ['ignore', 'pipe', 'inherit'] })
    .stdout.toString().trim().split('\\n').map(Number).filter(fd => fd > 3)
  const before = listed()
  addon.markCloseOnExecFrom(3, [EXCEPT])
  console.log(JSON.stringify({ before, after: listed(), open: fs.existsSync('/proc/self/fd/40') }))`

function inheritance(except: string, wrapper: readonly string[] = []) {
  const shell = 'exec 12</dev/null 20</dev/null 40</dev/null 41</dev/null; exec "$@"'
  const script = JSON.stringify(INHERITED.replace('EXCEPT', except))
  const run = runNode(
    `const { spawnSync } = require('node:child_process')
     const code = 'const addon = require(' + JSON.stringify(require.resolve(${JSON.stringify(addonFile)})) + ');' + ${script}
     const args = ['-c', ${JSON.stringify(shell)}, 'bash', ...${JSON.stringify(wrapper)}, process.execPath, '-e', code]
     const run = spawnSync('/bin/bash', args, { stdio: ['ignore', 'pipe', 'inherit'] })
     process.stdout.write(run.stdout)`,
  )
  expect(run.stderr).toBe('')
  return JSON.parse(run.stdout) as { before: number[]; after: number[]; open: boolean }
}

const addonFile = join(native.packageRoot(), 'native/build/Release/chio_native.node')

describe('marking inherited descriptors', () => {
  test('keeps them out of children, which Node alone does not, and closes none', () => {
    const { before, after, open } = inheritance('')
    expect(before).toEqual(expect.arrayContaining([40, 41]))
    expect(after).toEqual([])
    expect(open).toBe(true)
  })

  test('leaves the named ones as they were', () => {
    expect(inheritance('40').after).toEqual([40])
    expect(inheritance('20, 41').after).toEqual(expect.arrayContaining([41]))
    expect(inheritance('20, 41').after).not.toContain(40)
  })

  test('walks /proc/self/fd where close_range is missing', () => {
    for (const error of isFullRun ? ['ENOSYS', 'EINVAL', 'EPERM'] : ['ENOSYS']) {
      const inject = ['-f', '-qq', '-o', '/dev/null', '-e', `inject=close_range:error=${error}`]
      const { after, open } = inheritance('40', ['/usr/bin/strace', ...inject])
      expect(after).toEqual([40])
      expect(open).toBe(true)
    }
  })
})
