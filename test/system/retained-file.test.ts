import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { readRetainedFile, retainFile, retainFileNow } from '../../system/retained-file.js'
import { startChild } from '../support/compiled-child.js'
import { SKIP_REASONS } from '../support/skips.js'
import { makeSocketFolder, type SocketFolder } from '../support/test-listener.js'
import { testWhen } from '../support/when.js'

let place: SocketFolder
let path: string
const bytes = new TextEncoder().encode('retained')
const RULES = { maximumBytes: 100, ownerUid: process.geteuid?.() ?? 0, forbiddenMode: 0o077 }

beforeEach(() => {
  place = makeSocketFolder()
  path = join(place.folder, 'outcome.json')
})
afterEach(() => place.remove())

describe('a retained file', () => {
  test.each([
    ['asynchronously', retainFile],
    ['at once', async (...parameters: Parameters<typeof retainFileNow>) => retainFileNow(...parameters)],
  ])('is written %s whole, with its mode, and replaces what was there', async (_name, retain) => {
    writeFileSync(path, 'a much longer text that stood here before', { mode: 0o644 })
    const umask = process.umask(0o077)
    await retain(path, bytes, 0o644)
    process.umask(umask)
    expect(readFileSync(path, 'utf8')).toBe('retained')
    expect(lstatSync(path).mode & 0o7777).toBe(0o644)
    expect(readdirSync(place.folder)).toEqual(['outcome.json'])
  })

  test('replaces a link instead of writing through it', async () => {
    const target = join(place.folder, 'target')
    writeFileSync(target, 'untouched')
    symlinkSync(target, path)
    await retainFile(path, bytes, 0o600)
    expect(readFileSync(target, 'utf8')).toBe('untouched')
    expect(lstatSync(path).isFile()).toBe(true)
  })

  test('is synced before it bears its name, and its folder after', async () => {
    const trace = join(place.folder, 'trace')
    const child = startChild(
      `const { retainFile } = await compiled('system/retained-file')
       await retainFile(args[0], new Uint8Array(10), 0o600)`,
      [path],
      { wrapper: ['strace', '-f', '-y', '-o', trace, '-e', 'trace=fsync,fdatasync,rename,renameat2'] },
    )
    await child.ended()
    const calls = readFileSync(trace, 'utf8')
      .split('\n')
      .filter(line => line.includes(place.folder))
    expect(calls.map(line => /(fsync|fdatasync|rename)/.exec(line)?.[1])).toEqual([
      'fsync',
      'rename',
      'fsync',
    ])
    expect(calls[2]).toContain(`<${place.folder}>`)
  })

  test('leaves the old file and no temporary one when it cannot be put in place', async () => {
    mkdirSync(path)
    await expect(retainFile(path, bytes, 0o600)).rejects.toThrow()
    expect(() => retainFileNow(path, bytes, 0o600)).toThrow()
    expect(readdirSync(place.folder)).toEqual(['outcome.json'])
  })

  testWhen(
    process.geteuid?.() === 0,
    SKIP_REASONS.needsRoot,
    'leaves the old file on a full disk',
    async () => {
      const disk = join(place.folder, 'disk')
      mkdirSync(disk)
      spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k,mode=0700', 'tmpfs', disk])
      try {
        const full = join(disk, 'kept')
        await retainFile(full, bytes, 0o600)
        await expect(retainFile(full, new Uint8Array(200_000), 0o600)).rejects.toMatchObject({
          code: 'ENOSPC',
        })
        expect(() => retainFileNow(full, new Uint8Array(200_000), 0o600)).toThrow(/ENOSPC/)
        expect(readFileSync(full, 'utf8')).toBe('retained')
        expect(readdirSync(disk)).toEqual(['kept'])
      } finally {
        spawnSync('umount', [disk])
      }
    },
  )
})

describe('reading one back', () => {
  test('accepts at the limit and refuses one over', async () => {
    await retainFile(path, new Uint8Array(100), 0o600)
    expect(readRetainedFile(path, RULES)).toHaveLength(100)
    await retainFile(path, new Uint8Array(101), 0o600)
    expect(() => readRetainedFile(path, RULES)).toThrow(/at most 100 bytes, got 101/)
  })

  test('refuses a loose mode, another owner, a link and a second name', async () => {
    await retainFile(path, bytes, 0o600)
    expect(() => readRetainedFile(path, { ...RULES, ownerUid: 61_194 })).toThrow(/owner uid 61194/)
    chmodSync(path, 0o640)
    expect(() => readRetainedFile(path, RULES)).toThrow(/mode/)
    chmodSync(path, 0o600)
    symlinkSync(path, `${path}.link`)
    expect(() => readRetainedFile(`${path}.link`, RULES)).toThrow(/got a symbolic link/)
    linkSync(path, `${path}.twin`)
    expect(() => readRetainedFile(path, RULES)).toThrow(/one link/)
  })
})
