import {
  chownSync,
  existsSync,
  linkSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { spawnSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import * as native from '../../native/index.js'
import {
  CLOEXEC,
  codeOf,
  descriptorFlags,
  nodeScript,
  openDescriptorCount,
  runNode,
  startProcess,
} from '../support/descriptors.js'

let folder: string
let path: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'chio-lock-'))
  path = join(folder, 'owner.lock')
})

afterEach(() => rmSync(folder, { recursive: true }))

const tryLock = (target: string) =>
  runNode(
    `try { addon.lockPath(${JSON.stringify(target)}); console.log('held') } catch (error) { console.log(error.code) }`,
  ).stdout.trim()

describe('a lock file', () => {
  test('is made 0600, close-on-exec, and held by exactly one process', () => {
    const fd = native.lockFile(path)
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(descriptorFlags(fd) & CLOEXEC).toBe(CLOEXEC)
    expect(tryLock(path)).toBe('EWOULDBLOCK')
    native.closeDescriptor(fd)
    expect(tryLock(path)).toBe('held')
  })

  test('names EWOULDBLOCK like a system error, and closes what it opened', () => {
    const fd = native.lockFile(path)
    const before = openDescriptorCount()
    for (let round = 0; round < 100; round++) {
      expect(() => native.lockFile(path)).toThrow(
        expect.objectContaining({ code: 'EWOULDBLOCK', errno: -11, syscall: 'flock' }),
      )
    }
    expect(openDescriptorCount()).toBe(before)
    native.closeDescriptor(fd)
  })

  test('is free again at once when its holder is killed', async () => {
    const holder = await startProcess(process.execPath, [
      '-e',
      nodeScript(`addon.lockPath(${JSON.stringify(path)}); console.log('held'); setInterval(() => {}, 1000)`),
    ])
    expect(await codeOf(() => native.lockFile(path))).toBe('EWOULDBLOCK')
    await holder.end()
    native.closeDescriptor(native.lockFile(path))
  })

  test('is never opened through a link, and a linked, foreign or special file is refused', async () => {
    const other = join(folder, 'other')
    writeFileSync(other, '')
    symlinkSync(other, path)
    expect(await codeOf(() => native.lockFile(path))).toBe('ELOOP')
    rmSync(path)
    linkSync(other, path)
    expect(await codeOf(() => native.lockFile(path))).toBe('EMLINK')
    rmSync(path)
    spawnSync('/usr/bin/mkfifo', [path])
    expect(await codeOf(() => native.lockFile(path))).toBe('EFTYPE')
    expect(await codeOf(() => native.lockFile(folder))).toBe('EISDIR')
    if (process.getuid!() === 0) {
      chownSync(other, 61200, 61200)
      expect(await codeOf(() => native.lockFile(other))).toMatch(/^(EPERM|EACCES)$/)
    }
  })

  test('that was replaced while it was being locked is ESTALE', async () => {
    const held = native.openLockFile(path)
    renameSync(path, join(folder, 'gone'))
    writeFileSync(path, '', { mode: 0o600 })
    expect(tryLock(path)).toBe('held')
    native.closeDescriptor(native.lockFile(held))
    expect(existsSync(path)).toBe(true)
    const fresh = join(folder, 'fresh.lock')
    const script = nodeScript(`setInterval(() => {}, 1); setTimeout(() => {
      try { addon.lockPath(${JSON.stringify(fresh)}); console.log('held') } catch (error) { console.log(error.code) }
      process.exit() }, 10)`)
    const { spawn } = await import('node:child_process')
    const slow = [
      '-f',
      '-qq',
      '-o',
      '/dev/null',
      '-e',
      'inject=flock:delay_enter=1000000',
      process.execPath,
      '-e',
      script,
    ]
    const child = spawn('/usr/bin/strace', slow, { stdio: ['ignore', 'pipe', 'inherit'] })
    const answer = new Promise<Buffer>(resolve => child.stdout.once('data', resolve))
    while (!readdirSync(folder).includes('fresh.lock')) await new Promise(resolve => setTimeout(resolve, 5))
    renameSync(fresh, join(folder, 'moved'))
    writeFileSync(fresh, '', { mode: 0o600 })
    expect((await answer).toString().trim()).toBe('ESTALE')
  })

  test('can be a folder, by its own descriptor', async () => {
    const first = native.openDirectory(folder)
    const second = native.openDirectory(folder)
    expect(native.lockFile(first)).toBe(first)
    expect(await codeOf(() => native.lockFile(second))).toBe('EWOULDBLOCK')
    native.closeDescriptor(first)
    expect(native.lockFile(second)).toBe(second)
    native.closeDescriptor(second)
  })

  test('is taken by one of twenty processes that start at once', async () => {
    const { spawn } = await import('node:child_process')
    const script = nodeScript(
      `try { addon.lockPath(${JSON.stringify(path)}); console.log('held') } catch (error) { console.log(error.code) }
       process.stdin.resume()`,
    )
    const children = Array.from({ length: 20 }, () =>
      spawn(process.execPath, ['-e', script], { stdio: ['pipe', 'pipe', 'inherit'] }),
    )
    const answers = await Promise.all(
      children.map(child => new Promise<Buffer>(resolve => child.stdout.once('data', resolve))),
    )
    for (const child of children) child.stdin.end()
    const words = answers.map(answer => answer.toString().trim())
    expect(words.filter(word => word === 'held')).toHaveLength(1)
    expect(words.filter(word => word === 'EWOULDBLOCK')).toHaveLength(19)
  })
})
