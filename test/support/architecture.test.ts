// Proves on small invented trees that every rule of the house can fail, and with which sentence.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import * as code from './architecture/code-rules.js'
import { checkImportTable, IMPORT_TABLE } from './architecture/import-table.js'
import { checkDoors } from './architecture/manifest-rules.js'
import { type ModuleFacts, moduleFacts } from './architecture/module-facts.js'
import { readTree } from './architecture/source-tree.js'
import * as text from './architecture/text-rules.js'

function modulesOf(tree: Readonly<Record<string, string>>): ModuleFacts[] {
  return Object.entries(tree).map(([path, content]) => moduleFacts({ path, text: content }))
}

function filesOf(tree: Readonly<Record<string, string>>): { path: string; text: string }[] {
  return Object.entries(tree).map(([path, content]) => ({ path, text: content }))
}

describe('the import table', () => {
  const FOLDERS = Object.keys(IMPORT_TABLE)
  const importing = (from: string, to: string, names = '{ lockFile }'): string[] =>
    checkImportTable(modulesOf({ [`${from}/x.ts`]: `import ${names} from '../${to}/index.js'` }))

  test('decides every pair of folders', () => {
    const allowed = FOLDERS.map(from => [
      from,
      FOLDERS.filter(to => importing(from, to).length === 0).join(' '),
    ])
    const all = 'protocol native system cage store kernel daemon executor client host sidecar selftest'
    expect(Object.fromEntries(allowed)).toEqual({
      protocol: 'protocol',
      native: 'native',
      system: 'protocol native system',
      cage: 'protocol native cage',
      store: 'protocol native store',
      kernel: 'protocol native system store kernel',
      daemon: 'protocol native system store daemon',
      executor: 'protocol native store executor',
      client: 'protocol native system client',
      host: 'protocol native system cage client host',
      sidecar: 'protocol system kernel sidecar',
      selftest: all,
      cli: `${all} cli`,
      examples: `${all} examples`,
      test: `${all} examples test`,
      bench: `${all} bench`,
    })
  })

  test.each([
    ['kernel', 'executor', 'kernel/x.ts:1 imports executor/index.ts: the two owners never import each other'],
    ['executor', 'kernel', 'executor/x.ts:1 imports kernel/index.ts: the two owners never import each other'],
    [
      'daemon',
      'kernel',
      'daemon/x.ts:1 imports kernel/index.ts: the broker and the kernel meet only in the authority RPC',
    ],
    ['protocol', 'native', 'protocol/x.ts:1 imports native/index.ts: protocol/ imports nothing of ours'],
    ['cage', 'system', 'cage/x.ts:1 imports system/index.ts: cage/ imports only protocol/, native/'],
  ])('refuses %s → %s with a sentence', (from, to, sentence) => {
    expect(importing(from, to)).toEqual([sentence])
  })

  test('refuses types, re-exports and dynamic imports like any other', () => {
    const forms = [
      "import type { A } from '../kernel/a.js'",
      "export * from '../kernel/a.js'",
      "await import('../kernel/a.js')",
      "type A = import('../kernel/a.js').A",
    ]
    for (const form of forms) expect(checkImportTable(modulesOf({ 'daemon/x.ts': form }))).toHaveLength(1)
  })

  test('does not take a comment or a string for an import', () => {
    const innocent = "// import { a } from '../kernel/a.js'\nconst said = \"import a from '../kernel/a.js'\""
    expect(checkImportTable(modulesOf({ 'daemon/x.ts': innocent }))).toEqual([])
  })

  test('lets store/ and executor/ take lockFile of native/, and nothing else', () => {
    expect(importing('store', 'native', '{ lockFile }')).toEqual([])
    expect(importing('executor', 'native', '{ lockFile, pipe }')).toEqual([
      'executor/x.ts:1 imports native/index.ts {pipe}: executor/ takes lockFile of native/ and nothing else',
    ])
    expect(importing('store', 'native', '* as native')).toHaveLength(1)
  })

  test('lets the outside of native/ through its two doors only', () => {
    const inside = { 'daemon/x.ts': "import { a } from '../native/addon.js'" }
    expect(checkImportTable(modulesOf(inside))).toEqual([
      'daemon/x.ts:1 imports native/addon.ts: native/ is entered through native/index.ts and native/clock.ts only',
    ])
  })

  test('lets a test import what it tests, and no other command line', () => {
    const own = { 'test/cli/run.test.ts': "import { a } from '../../cli/run.js'" }
    const foreign = { 'test/host/run.test.ts': "import { a } from '../../cli/run.js'" }
    expect(checkImportTable(modulesOf(own))).toEqual([])
    expect(checkImportTable(modulesOf(foreign))).toHaveLength(1)
  })

  test('refuses a folder without a row', () => {
    expect(checkImportTable(modulesOf({ 'library/x.ts': '' }))).toEqual([
      'library/x.ts lies in a folder that the import table does not name: give it a row or move it',
    ])
  })
})

describe('what only some folders may do', () => {
  test.each([
    [
      'starting processes',
      code.checkChildProcess,
      "import { spawn } from 'node:child_process'",
      'daemon',
      'cage',
    ],
    ['opening SQLite', code.checkSqlite, "import Database from 'better-sqlite3'", 'kernel', 'store'],
    ['the milliseconds of Date', code.checkClocks, 'export const now = Date.now()', 'cli', 'test'],
    ['the monotonic clock', code.checkClocks, 'export const now = process.hrtime.bigint()', 'host', 'bench'],
    [
      'performance',
      code.checkClocks,
      "import { performance as p } from 'node:perf_hooks'",
      'selftest',
      'test',
    ],
    ['a Date of now', code.checkClocks, 'export const now = new Date()', 'kernel', 'test'],
    ['printing', code.checkConsole, "console.log('x')", 'daemon', 'cli'],
  ])('%s is refused outside and allowed inside', (_what, check, source, refused, allowed) => {
    expect(check(modulesOf({ [`${refused}/x.ts`]: source }))).toHaveLength(1)
    expect(check(modulesOf({ [`${allowed}/x.ts`]: source }))).toEqual([])
  })

  test('names place, fault and rule', () => {
    expect(code.checkClocks(modulesOf({ 'daemon/x.ts': '\n\nexport const a = Date.now()' }))).toEqual([
      'daemon/x.ts:3 reads Date.now: clocks are read in native/clock.ts only and handed in as a Clock',
    ])
  })

  test('the clock file reads clocks, and a given time may become a Date', () => {
    expect(code.checkClocks(modulesOf({ 'native/clock.ts': 'export const a = Date.now()' }))).toEqual([])
    expect(
      code.checkClocks(modulesOf({ 'cli/x.ts': 'export const a = (ms: number) => new Date(ms)' })),
    ).toEqual([])
  })

  test('SQL of kernel/ outside its one folder is refused', () => {
    const inside = {
      'kernel/sqlite/tables.ts': "db.prepare('SELECT a FROM b')",
      'kernel/sqlite/grants.ts': "db.prepare('SELECT a FROM c')",
      'kernel/reserve.ts': "throw new Error('select one from many')",
    }
    expect(code.checkKernelSql(modulesOf(inside))).toEqual([])
    const outside = { ...inside, 'kernel/start.ts': 'db.prepare(`UPDATE operations SET version = ?`)' }
    expect(code.checkKernelSql(modulesOf(outside))).toEqual([
      "kernel/start.ts holds SQL: kernel/sqlite/ does, behind the store's interface",
    ])
  })

  test('undeclared packages and bare built-ins are refused, development packages only outside test/ and bench/', () => {
    const manifest = { dependencies: { pino: '1' }, devDependencies: { 'fast-check': '1' } }
    const source = "import 'pino'\nimport 'node:net'\nimport 'fast-check'\nimport 'net'\nimport '@a/b/c'"
    const found = (path: string): string[] => code.checkPackages(modulesOf({ [path]: source }), manifest)
    expect(found('host/x.ts').map(sentence => sentence.split(':')[1])).toEqual([
      '3 imports fast-check',
      '4 imports net',
      '5 imports @a/b/c',
    ])
    expect(found('test/x.ts')).toHaveLength(2)
  })

  test('circles are named once, as the way round', () => {
    const tree = {
      'host/a.ts': "import './b.js'",
      'host/b.ts': "import './c.js'",
      'host/c.ts': "import type { A } from './a.js'",
      'host/d.ts': "import './a.js'",
    }
    expect(code.checkCycles(modulesOf(tree))).toEqual([
      'host/a.ts → host/b.ts → host/c.ts → host/a.ts: these files import each other in a circle',
    ])
    expect(
      code.checkCycles(
        modulesOf({
          'host/a.ts': "import './b.js'\nimport './c.js'",
          'host/b.ts': "import './c.js'",
          'host/c.ts': '',
        }),
      ),
    ).toEqual([])
  })
})

describe('what every committed file keeps to', () => {
  const C_FUNCTION = (lines: number): string =>
    `static int f(int a,\n             int b) {\n${'  a++;\n'.repeat(lines - 2)}}\n`

  test.each([
    ['an empty name', text.checkNames, 'host/frame-utils.ts', 'host/frame-writer.ts', ''],
    ['an empty folder name', text.checkNames, 'host/helpers/x.ts', 'host/bytes/x.ts', ''],
    [
      'a switched-off budget',
      text.checkBudgetExemptions,
      'host/x.ts',
      'host/x.md',
      ['// oxlint-dis', 'able max-lines'].join(''),
    ],
    ['a missing opening comment', text.checkOpeningComment, 'host/x.ts', 'host/x.json', 'export const a = 1'],
  ])('%s is refused', (_what, check, refused, allowed, content) => {
    expect(check(filesOf({ [refused]: content }))).toHaveLength(1)
    expect(check(filesOf({ [allowed]: content }))).toEqual([])
  })

  test('a refusal without what it got is refused, one whose terms are handed in is not', () => {
    const check = (sentence: string) => text.checkRefusalSentences(filesOf({ 'cli/a.ts': `'${sentence}'` }))
    expect(check('--max refused: expected a number')).toHaveLength(1)
    expect(check('--max refused: expected a number, got a word')).toEqual([])
    expect(check(['--max refused: expected $', '{terms}'].join(''))).toEqual([])
  })

  test('an opening comment may follow a #! line or a guard', () => {
    const tree = {
      'a.mjs': '#!/usr/bin/env node\n// Owns',
      'a.h': '#ifndef A_H\n#define A_H\n// Owns',
      'a.c': '/* Owns */',
    }
    expect(text.checkOpeningComment(filesOf(tree))).toEqual([])
  })

  test('accepts files at 300 lines and refuses one over', () => {
    expect(text.checkFileLength(filesOf({ 'a.ts': '//\n'.repeat(300) }))).toEqual([])
    expect(text.checkFileLength(filesOf({ 'a.c': '//\n'.repeat(301) }))).toEqual([
      'a.c has 301 lines: expected at most 300, split it by what it owns',
    ])
  })

  test('accepts C functions at 40 lines and refuses one over', () => {
    expect(text.checkCFunctionLength(filesOf({ 'a.c': C_FUNCTION(40) }))).toEqual([])
    expect(text.checkCFunctionLength(filesOf({ 'a.c': C_FUNCTION(40) + C_FUNCTION(41) }))).toEqual([
      'a.c:43 is a function of 41 lines: expected at most 40',
    ])
  })

  test('refuses traces of one machine and accepts relative and system paths', () => {
    const refused = [
      ['/wo', 'rk/x'],
      ['"/ho', 'me/ann/x"'],
      ['see npm', 'js.com'],
      ['Co-Auth', 'ored-By: x'],
    ].map(halves => halves.join(''))
    for (const line of refused)
      expect(text.checkMachineTraces(filesOf({ 'a.md': `fine\n${line}` }))).toHaveLength(1)
    expect(
      text.checkMachineTraces(filesOf({ 'a.md': '/run/chio ../shared/x src/work/x /proc/1/root/x /home' })),
    ).toEqual([])
  })

  test('refuses a lock file that names where packages came from', () => {
    expect(text.checkLockFile(filesOf({ 'package-lock.json': '{"resolved": "x"}' }))).toHaveLength(1)
    expect(text.checkLockFile(filesOf({ 'package-lock.json': '{"integrity": "x"}' }))).toEqual([])
  })

  test('refuses programs and exports without a source', () => {
    const manifest = {
      bin: { chio: 'dist/bin/chio.js', 'chio-mcp': 'dist/cli/chio-mcp.js' },
      exports: { '.': { types: './dist/host/index.d.ts', default: './dist/host/index.js' } },
    }
    expect(checkDoors(manifest, ['cli/chio.ts', 'cli/chio-mcp.ts', 'host/index.ts'])).toEqual([])
    expect(checkDoors(manifest, ['cli/chio-mcp.ts', 'host/index.ts'])).toEqual([
      'package.json: program chio is dist/bin/chio.js, but cli/chio.ts does not exist',
    ])
    expect(checkDoors(manifest, ['cli/chio.ts', 'cli/chio-mcp.ts'])).toHaveLength(2)
  })
})

test('a tree without git is read without build products', () => {
  const root = mkdtempSync(join(tmpdir(), 'chio-tree-'))
  onTestFinished(() => rmSync(root, { recursive: true }))
  for (const path of [
    'host/a.ts',
    'dist/host/a.js',
    'node_modules/b/c.ts',
    'native/build/d.c',
    'README.md',
  ]) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), path)
  }
  expect(
    readTree(root)
      .map(({ path }) => path)
      .sort(),
  ).toEqual(['README.md', 'host/a.ts'])
})
