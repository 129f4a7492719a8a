/**
 * A launcher that inherits junk: none of it reaches the tool, and none of it weakens a daemon. One installation of an
 * ordinary user, made cleanly; both daemons and every run start from the junk.
 */
import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { SKIP_REASONS } from '../support/skips.js'
import { CANARY, type Junk, type JunkEnded, JunkLauncher } from '../support/junk-launcher.js'
import { answer, startProvider, type TestProvider } from '../support/provider.js'
import { SingleUser } from '../support/single-user.js'
import { testWhen } from '../support/when.js'

/** HUP INT QUIT USR1 PIPE TERM CHLD, and two real-time signals. */
const SIGNALS = [1, 2, 3, 10, 13, 15, 17, 40, 50]

const JUNK = {
  descriptors: true,
  terminal: true,
  signals: SIGNALS,
  nice: 3,
  limits: { RLIMIT_CORE: null, RLIMIT_STACK: -1 },
  environment: { CANARY, SSH_AUTH_SOCK: `/tmp/${CANARY}`, BASH_ENV: `/tmp/${CANARY}`, ENV: `/tmp/${CANARY}` },
} satisfies Junk

/**
 * What it is and what it holds, asked by a shell, which changes nothing of it. Its status it reads itself: while it
 * starts a program it holds every signal back for a moment, and that program would see it.
 */
const TOOL = `#!/bin/sh
echo "== env"; cat /proc/$$/environ | tr '\\0' '\\n'
echo "== fd"; ls -l /proc/$$/fd | tr -s ' ' | cut -d' ' -f9-
echo "== status"; while IFS= read -r line; do echo "$line"; done </proc/$$/status
echo "== limits"; cat /proc/$$/limits
echo "== stat"; cat /proc/$$/stat
echo "== umask"; umask
echo "== cwd"; pwd
cat /run/chio/request.frame >&8
wc -c <&8 >/dev/null
`

let user: SingleUser
let provider: TestProvider
let launcher: JunkLauncher
let up: ReturnType<JunkLauncher['start']>
let grant: string
let toolPath: string

const chio = (...args: string[]): string[] => [
  process.execPath,
  join(user.root, 'dist', 'bin', 'chio.js'),
  ...args,
]

/** A folder whose contents would be loaded by what looks around itself. */
function hostileFolder(name: string): string {
  const folder = join(user.folder, name)
  mkdirSync(join(folder, 'node_modules', 'commander'), { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{"type":"commonjs","imports":{"#x":"./x.js"}}')
  writeFileSync(join(folder, 'node_modules', 'commander', 'index.js'), 'process.exit(99)')
  writeFileSync(join(folder, 'bwrap'), '#!/bin/dash\nexit 99\n', { mode: 0o755 })
  return folder
}

async function isServing(): Promise<void> {
  let said = ''
  const child = up.process
  await new Promise<void>((resolve, reject) => {
    child.stderr?.on('data', (chunk: Buffer) => {
      said += chunk.toString()
      if (said.includes('Serving ')) resolve()
    })
    void up.ended.then(() => reject(new Error(`chio up ended: ${said}`)))
  })
}

beforeAll(async () => {
  user = new SingleUser()
  provider = await startProvider({ behaviour: ({ socket }) => answer(socket, '{"issue":1}') })
  expect(await user.say(['init', '--single-user'])).toMatchObject({ status: 0, stderr: '' })
  user.addProvider(provider.localProvider())
  launcher = new JunkLauncher(join(user.folder, 'junk'), user.uid)
  toolPath = join(user.folder, 'tool.sh')
  writeFileSync(toolPath, TOOL, { mode: 0o755 })
  const cwd = hostileFolder('up')
  up = launcher.start(chio('up', '--state', user.state), { ...JUNK, umask: 0, cwd })
  await isServing()
  const provision = ['credential', 'provision', 'tracker', '--provider', 'example', '--placement', 'bearer']
  expect(await user.say(provision, { input: 'a-token-of-the-test' })).toMatchObject({ status: 0 })
  const issue = ['capability', 'issue', '--credential', 'tracker', '--url', provider.url('/issues')]
  const issued = await user.say([...issue, '--method', 'POST', '--max', '20'])
  expect(issued).toMatchObject({ status: 0, stderr: '' })
  grant = issued.stdout.trim()
})

afterAll(async () => {
  up.process.kill('SIGTERM')
  await up.ended
  await user.remove()
  await provider.close()
})

function run(junk: Junk, ...tool: string[]): Promise<JunkEnded> {
  const command = chio('run', '--capability', grant, '--state', user.state, '--wait', '20s', '--json')
  return launcher.start([...command, ...tool], junk).ended
}

/** The sections that the tool printed. */
function sections(stdout: string): Record<string, string> {
  const { tool } = JSON.parse(stdout) as { tool: { stdoutBase64: string } }
  const said = Buffer.from(tool.stdoutBase64, 'base64').toString()
  return Object.fromEntries(
    said
      .split(/^== /m)
      .slice(1)
      .map(part => [part.slice(0, part.indexOf('\n')), part.slice(part.indexOf('\n') + 1)]),
  )
}

const lineOf = (text: string, name: string): string =>
  new RegExp(`^${name}\\s+(.*)$`, 'm').exec(text)?.[1]?.trim() ?? ''

/** Nothing of the launcher's, whatever it was. */
function expectCleanTool(stdout: string): void {
  expect(stdout).not.toContain(CANARY)
  const tool = sections(stdout)
  expect(tool['env']?.trim().split('\n').sort()).toEqual([
    'HOME=/tmp',
    'LANG=C.UTF-8',
    'PATH=/usr/local/bin:/usr/bin:/bin',
    'TMPDIR=/tmp',
  ])
  const descriptors = (tool['fd'] ?? '')
    .trim()
    .split('\n')
    .filter(line => /^\d/.test(line) && !line.includes('/run/chio-cage/tool/'))
  expect(descriptors.map(line => line.replace(/\[\d+\]/, '[…]'))).toEqual([
    '0 -> /dev/null',
    '1 -> pipe:[…]',
    '2 -> pipe:[…]',
    '8 -> socket:[…]',
  ])
  for (const set of ['SigBlk:', 'SigIgn:', 'SigCgt:'])
    expect([set, BigInt(`0x${lineOf(tool['status'] ?? '', set)}`) & ~0x1_0002n]).toEqual([set, 0n])
  expect(tool['stat']?.split(') ')[1]?.split(' ')[4]).toBe('0')
  expect(tool['umask']?.trim()).toBe('0077')
  expect(tool['cwd']?.trim()).toBe('/tmp')
  expect(lineOf(tool['limits'] ?? '', 'Max stack size')).toMatch(/^8388608\s+8388608/)
  expect(lineOf(tool['limits'] ?? '', 'Max core file size')).toMatch(/^[01]\s+[01]\s/)
  expect(lineOf(tool['limits'] ?? '', 'Max realtime priority')).toMatch(/^0\s+0/)
}

/** Of the sets in /proc/PID/status: signal N is bit N - 1. */
const SIGUSR1_BIT = 1n << 9n

describe('a run', () => {
  test('from all the junk at once gives the tool nothing of it', async () => {
    const ended = await run({ ...JUNK, umask: 0o777, cwd: hostileFolder('run') }, '--', toolPath)
    expect(ended).toMatchObject({ status: 0, signal: null, stderr: '' })
    expectCleanTool(ended.stdout)
  })

  test('without standard input, output and error reaches the provider, and nothing of ours lands in a wrong file', async () => {
    const before = provider.hits
    const ended = await run({ closed: [0, 1, 2] })
    expect(ended).toMatchObject({ status: 0, stdout: '', stderr: '' })
    expect(provider.hits).toBe(before + 1)
  })

  test('with few descriptors, from a folder that is gone, works or says which limit to raise', async () => {
    const before = provider.hits
    const cwd = join(user.folder, 'junk', 'gone')
    mkdirSync(cwd)
    const enough = await run(
      { limits: { RLIMIT_NOFILE: 256 }, cwd, removeCwd: true, umask: 0 },
      '--',
      toolPath,
    )
    expect(enough).toMatchObject({ status: 0, stderr: '' })
    expectCleanTool(enough.stdout)
    expect(provider.hits).toBe(before + 1)
    const few = await run({ limits: { RLIMIT_NOFILE: 64 } }, '--', toolPath)
    expect(few).toMatchObject({ status: 1, stdout: '' })
    expect(few.stderr).toContain('expected a hard limit of at least 256 open files, got 64')
    expect(provider.hits).toBe(before + 1)
  })

  test('starts none of the programs that a hostile path puts first', () => {
    expect(readdirSync(launcher.marks)).toEqual([])
  })
})

describe('the daemons', () => {
  /** The children of `chio up`: setpriv has become Node by then. */
  function daemonPids(): number[] {
    const children = readFileSync(`/proc/${up.process.pid}/task/${up.process.pid}/children`, 'latin1')
    return children.trim().split(' ').map(Number)
  }

  const isRoot = process.geteuid?.() === 0
  testWhen(isRoot, SKIP_REASONS.needsRoot, 'hold and know nothing of the launcher', () => {
    const pids = daemonPids()
    expect(pids).toHaveLength(2)
    for (const pid of pids) {
      const environment = readFileSync(`/proc/${pid}/environ`, 'latin1')
      expect(environment).not.toContain(CANARY)
      expect(environment).not.toContain('fakes')
      const held = readdirSync(`/proc/${pid}/fd`).map(fd => readlinkSync(`/proc/${pid}/fd/${fd}`))
      expect(held.filter(target => target.includes('junk'))).toEqual([])
      expect(held.length).toBeLessThan(60)
      const status = readFileSync(`/proc/${pid}/status`, 'latin1')
      expect(lineOf(status, 'Umask:')).toBe('0077')
      expect(BigInt(`0x${lineOf(status, 'SigBlk:')}`)).toBe(0n)
      // Node itself ignores SIGPIPE, we the signal that opens its debugger; real-time signals, which nobody sends, it leaves
      // as they are.
      const ignored = BigInt(`0x${lineOf(status, 'SigIgn:')}`)
      expect(ignored & SIGUSR1_BIT).toBe(SIGUSR1_BIT)
      expect(ignored & 0x7fff_ffffn & ~0x100_1000n & ~SIGUSR1_BIT).toBe(0n)
      expect(readlinkSync(`/proc/${pid}/cwd`)).toBe('/')
      const limits = readFileSync(`/proc/${pid}/limits`, 'latin1')
      expect(lineOf(limits, 'Max core file size')).toMatch(/^[01]\s+[01]\s/)
    }
  })

  test('made nothing that others may read or write, with no umask of their launcher', () => {
    const found = readdirSync(user.state, { recursive: true, encoding: 'utf8' })
    const open = found.filter(path => (lstatSync(join(user.state, path)).mode & 0o077) !== 0)
    expect(found.filter(path => path.endsWith('/sock')).length).toBe(3)
    // What every user of the machine may know: pinned public keys, paths and uids.
    expect(open.sort()).toEqual(['identities.json', 'kernel.pub', 'pins.json'])
  })

  test('end when they are told to, although their launcher was told to ignore that', async () => {
    up.process.kill('SIGTERM')
    expect(await up.ended).toMatchObject({ status: 0 })
  })
})
