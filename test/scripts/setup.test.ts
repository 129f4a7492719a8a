// Runs the real set-up as its own process in an empty copy of a checkout, so that what it says and how it exits
// is what a newcomer meets. Only apt-get is invented: taking programs away from this machine is not ours to do.
import { type SpawnSyncReturns, spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { linkPrograms } from '../../scripts/setup/compiled-code.mjs'
import { runLongStep } from '../../scripts/setup/long-step.mjs'
import { isWritable, npmEnvironment } from '../../scripts/setup/npm.mjs'
import { takeTurn } from '../../scripts/setup/turn.mjs'
import { SKIP_REASONS } from '../support/skips.js'
import { testWhen } from '../support/when.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const isRoot = process.getuid?.() === 0

let checkout = ''
let programs = ''

beforeEach(() => {
  checkout = mkdtempSync(join(tmpdir(), 'chio-setup-'))
  onTestFinished(() => rmSync(checkout, { recursive: true, force: true }))
  programs = join(checkout, 'programs')
  mkdirSync(programs)
  cpSync(join(root, 'scripts'), join(checkout, 'scripts'), { recursive: true })
})

function runNode(script: string, options: readonly string[] = []): SpawnSyncReturns<string> {
  return spawnSync(process.execPath, [...options, join(checkout, script)], {
    env: { PATH: programs },
    encoding: 'utf8',
  })
}

function addProgram(name: string, script: string): void {
  writeFileSync(join(programs, name), `#!/bin/sh\n${script}\n`)
  chmodSync(join(programs, name), 0o755)
}

describe('the set-up', () => {
  test('answers an old Node with one sentence', () => {
    const old =
      "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.18.3' } })"
    const result = runNode('scripts/setup.mjs', [
      '--import',
      `data:text/javascript,${encodeURIComponent(old)}`,
    ])
    expect(result.status).toBe(1)
    expect(result.stderr).toBe(
      'setup: Node 20.19 or newer is needed, this is 20.18.3: install it and run this again\n',
    )
    expect(result.stdout).toBe('')
  })

  test('says exactly what to run where it may not install', () => {
    addProgram('python3', '')
    addProgram('make', '')
    const result = runNode('scripts/setup.mjs')
    const names = 'bubblewrap g++ strace util-linux openssl systemd'
    expect(result.status).toBe(1)
    expect(result.stderr).toBe(
      `setup: missing from this system: ${names}; run "sudo apt-get update && sudo apt-get install -y ${names}" and then this again\n`,
    )
  })

  testWhen(
    isRoot,
    SKIP_REASONS.needsRoot,
    'as root reads the lists once and installs what is missing in one go',
    () => {
      const asked = join(checkout, 'asked')
      for (const name of ['python3', 'make', 'g++', 'setpriv', 'unshare']) addProgram(name, '')
      addProgram('apt-get', `echo "$@" >> ${asked}`)
      const result = runNode('scripts/setup.mjs')
      const lines = readFileSync(asked, 'utf8').trim().split('\n')
      expect(lines.map(line => line.replace(/^-q -o \S+ /, ''))).toEqual([
        'update',
        'install -y --no-install-recommends bubblewrap strace openssl systemd',
      ])
      expect(result.stdout).toContain(
        'setup: installing bubblewrap, strace, openssl, systemd (apt-get install) …\n',
      )
      expect(result.stderr).toContain('setup: missing from this system: bubblewrap strace openssl systemd;')
      expect(result.status).toBe(1)
    },
  )

  test('ends a test run whose set-up failed with the counts as its last line', () => {
    const result = runNode('scripts/test.mjs')
    expect(result.stdout.trimEnd().split('\n').slice(-2)).toEqual([
      'failed: set-up (exit code 1)',
      '0 passed, 1 failed',
    ])
    expect(result.status).toBe(1)
  })
})

describe('a long step', () => {
  const step = (script: string): Promise<void> =>
    runLongStep({
      title: 'trying',
      command: ['/bin/sh', '-c', script],
      folder: checkout,
      logPath: join(checkout, 'log/try.log'),
    })

  test('keeps the output in its log', async () => {
    await step('echo one; echo two >&2')
    expect(readFileSync(join(checkout, 'log/try.log'), 'utf8')).toBe('one\ntwo\n')
  })

  test('fails with the end of its log', async () => {
    await expect(step('seq 100; exit 3')).rejects.toThrow(
      /^trying failed \(exit code 3\); the end of .*try\.log:\n {2}\| 61\n[\s\S]*\| 100$/,
    )
  })

  test('fails when it is killed or does not start', async () => {
    await expect(step('kill -9 $$')).rejects.toThrow('trying failed (SIGKILL)')
    const absent = {
      title: 'trying',
      command: ['/nowhere/at/all'],
      folder: checkout,
      logPath: join(checkout, 'log/try.log'),
    }
    await expect(runLongStep(absent)).rejects.toThrow('ENOENT')
  })
})

test('one set-up at a time: the second waits until the first gives its turn back', async () => {
  const giveBack = await takeTurn(checkout)
  let second = false
  const waiting = takeTurn(checkout).then(done => {
    second = true
    return done
  })
  const other = await takeTurn(`${checkout}/another`)
  expect(second).toBe(false)
  giveBack()
  for (const done of [await waiting, other]) done()
  expect(second).toBe(true)
})

describe('npm', () => {
  test('gets a cache beside the checkout where the home folder takes none', () => {
    expect(isWritable('/dev/null/home/.npm')).toBe(false)
    expect(npmEnvironment({ HOME: '/dev/null/home' })['npm_config_cache']).toMatch(/\/\.setup\/npm-cache$/)
    expect(npmEnvironment({ HOME: checkout })['npm_config_cache']).toBeUndefined()
  })

  test('compiles against the headers of this Node, unless told otherwise', () => {
    const headers = npmEnvironment({})['npm_config_nodedir']
    if (headers !== undefined) expect(existsSync(join(headers, 'include/node/node_api.h'))).toBe(true)
    expect(npmEnvironment({ npm_config_nodedir: '/opt/node' })['npm_config_nodedir']).toBe('/opt/node')
  })
})

test('makes compiled programs executable and links them once for npx', () => {
  mkdirSync(join(checkout, 'dist'))
  writeFileSync(join(checkout, 'dist/chio.js'), '', { mode: 0o644 })
  writeFileSync(
    join(checkout, 'package.json'),
    JSON.stringify({ bin: { chio: 'dist/chio.js', later: 'dist/later.js' } }),
  )
  expect(linkPrograms(checkout)).toBe(true)
  expect(readlinkSync(join(checkout, 'node_modules/.bin/chio'))).toBe('../../dist/chio.js')
  expect(statSync(join(checkout, 'dist/chio.js')).mode & 0o777).toBe(0o755)
  expect(existsSync(join(checkout, 'node_modules/.bin/later'))).toBe(false)
  expect(linkPrograms(checkout)).toBe(false)
})
