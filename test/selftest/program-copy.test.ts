// The copy of the program for other uids: whole or made again, of this very build or made again, and readable by them.
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { isReachableByOthers, refreshCopy, renewCopy } from '../../selftest/program-copy.js'

let folder: string
let root: string
let copy: string

const LOCK = {
  packages: {
    '': {},
    'node_modules/used': {},
    'node_modules/better-sqlite3': {},
    'node_modules/tool': { dev: true },
    'node_modules/absent': { optional: true },
  },
}
const FILES: Record<string, string> = {
  'package.json': '{}',
  'package-lock.json': JSON.stringify(LOCK),
  'dist/cli/chio.js': 'first',
  'native/build/Release/chio_native.node': 'addon',
  'native/build/Release/cage-init': 'init',
  'native/build/Release/chio-exec': 'exec',
  'native/build/Release/cage-probe': 'probe',
  'native/build/Release/obj/left-over.o': 'object',
  'node_modules/used/index.js': 'used',
  'node_modules/tool/index.js': 'tool',
  'node_modules/better-sqlite3/lib/index.js': 'lib',
  'node_modules/better-sqlite3/deps/sqlite3.c': 'source',
  'node_modules/better-sqlite3/build/Release/better_sqlite3.node': 'binary',
  'node_modules/better-sqlite3/build/Release/obj/a.o': 'object',
  'test/secret.test.ts': 'no part of what runs',
}

function write(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), text)
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'chio-copy-'))
  root = join(folder, 'root')
  copy = join(folder, 'program')
  for (const [path, text] of Object.entries(FILES)) write(path, text)
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const inCopy = (path: string): string | undefined => {
  try {
    return readFileSync(join(copy, path), 'utf8')
  } catch {
    return undefined
  }
}

describe('the copy of the program', () => {
  test('holds what runs, and nothing of what it was made from or tested with', () => {
    refreshCopy(root, copy)
    const wanted = Object.keys(FILES).filter(
      path => !/obj\/|deps\/|node_modules\/tool|^test|package-lock/.test(path),
    )
    for (const path of Object.keys(FILES)) {
      expect([path, inCopy(path)]).toEqual([path, wanted.includes(path) ? FILES[path] : undefined])
    }
  })

  test('can be read and entered by others under the private umask of our processes', () => {
    const mask = process.umask(0o077)
    try {
      refreshCopy(root, copy)
      expect(process.umask(0o077)).toBe(0o077)
    } finally {
      process.umask(mask)
    }
    expect(statSync(copy).mode & 0o7777).toBe(0o755)
    expect(statSync(join(copy, 'dist', 'cli')).mode & 0o005).toBe(0o005)
    expect(statSync(join(copy, 'node_modules', 'used', 'index.js')).mode & 0o004).toBe(0o004)
  })

  test.each([
    ['for everybody to write', 0o777, 0o666],
    ['for its owner alone', 0o700, 0o600],
  ])('has modes of its own where the source is %s', (_name, folderMode, fileMode) => {
    chmodSync(join(root, 'dist', 'cli'), folderMode)
    chmodSync(join(root, 'node_modules', 'used'), folderMode)
    chmodSync(join(root, 'dist', 'cli', 'chio.js'), fileMode)
    chmodSync(join(root, 'node_modules', 'used', 'index.js'), 0o4000 | fileMode)
    chmodSync(join(root, 'native/build/Release/chio-exec'), folderMode)
    refreshCopy(root, copy)
    const modes = readdirSync(copy, { recursive: true, encoding: 'utf8' }).map(path => {
      const stats = statSync(join(copy, path))
      expect([path, stats.uid]).toEqual([path, process.geteuid?.()])
      const isOpen = stats.isDirectory() || path.endsWith('/chio-exec')
      return [path, stats.mode & 0o7777, isOpen ? 0o755 : 0o644] as const
    })
    expect(modes.filter(([, mode, wanted]) => mode !== wanted)).toEqual([])
    expect(modes.length).toBeGreaterThan(10)
    expect(statSync(copy).mode & 0o7777).toBe(0o755)
  })

  test('is made again when it is renewed, although its stamp is the same', () => {
    refreshCopy(root, copy)
    chmodSync(join(copy, 'dist'), 0o777)
    writeFileSync(join(copy, 'dist', 'planted.js'), 'planted')
    renewCopy(root, copy)
    expect(inCopy('dist/planted.js')).toBeUndefined()
    expect(statSync(join(copy, 'dist')).mode & 0o7777).toBe(0o755)
  })

  test('stays while the program is the same', () => {
    refreshCopy(root, copy)
    const { ino } = statSync(copy)
    refreshCopy(root, copy)
    expect(statSync(copy).ino).toBe(ino)
  })

  test('is made again for another build, and when it was never finished', () => {
    refreshCopy(root, copy)
    write('dist/cli/chio.js', 'other')
    refreshCopy(root, copy)
    expect(inCopy('dist/cli/chio.js')).toBe('other')
    write('dist/cli/added.js', 'added')
    rmSync(join(root, 'dist/cli/chio.js'))
    refreshCopy(root, copy)
    expect([inCopy('dist/cli/chio.js'), inCopy('dist/cli/added.js')]).toEqual([undefined, 'added'])
    utimesSync(join(root, 'native/build/Release/chio-exec'), 1, 1)
    const { ino } = statSync(copy)
    refreshCopy(root, copy)
    expect(statSync(copy).ino).not.toBe(ino)
    rmSync(join(copy, 'copied-from'))
    rmSync(join(copy, 'dist'), { recursive: true })
    refreshCopy(root, copy)
    expect(inCopy('dist/cli/added.js')).toBe('added')
  })
})

describe('a program', () => {
  test('is reachable by others only when every folder above it lets them pass', () => {
    expect(isReachableByOthers('/usr/bin')).toBe(true)
    // mkdtemp makes it 0700.
    expect(isReachableByOthers(root)).toBe(false)
  })
})
