/**
 * The life of a cage: single use, census, ends. Real bwrap, real cage-init; the peer stands in the broker's place.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, fstatSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { WaitingCage } from '../../cage/cage.js'
import { closeDescriptor, hungUp, nativePath, sealedMemfd, socketPair } from '../../native/index.js'
import { codeOf, openDescriptorCount } from '../support/descriptors.js'
import {
  isAlive,
  openFolder,
  openTestCage,
  requestFrame,
  runCaged,
  runPython,
  runShell,
  testIdentity,
} from '../support/cage.js'

const folder = openFolder()
afterAll(() => folder.remove())

const cages: WaitingCage[] = []
const descriptors: number[] = []
afterEach(async () => {
  await Promise.all(cages.splice(0).map(cage => cage.close()))
  descriptors.splice(0).forEach(closeDescriptor)
})

const sleeper = { path: '/usr/bin/sleep', argv: ['sleep', '60'] }

async function waitingCage(tool = sleeper): Promise<WaitingCage> {
  const cage = await openTestCage({ tool })
  cages.push(cage)
  return cage
}

function streamPair(): [peer: number, stream: number] {
  const pair = socketPair('stream')
  descriptors.push(...pair)
  return pair
}

describe('the census', () => {
  test('names a process of its own namespaces, without root, privilege or groups', async () => {
    const { census } = await waitingCage()
    const uid = testIdentity?.uid ?? process.getuid!()
    expect(census).toMatchObject({ uid, ...(testIdentity === null ? {} : { groups: [] }) })
    expect(Object.keys(census.namespaces)).toEqual(['user', 'mnt', 'pid', 'net', 'ipc', 'uts', 'cgroup'])
    expect(isAlive(census.pid)).toBe(true)
  })

  test('finds exactly 0, 1, 2, the stream, and three that the exec closes', async () => {
    const [, stream] = streamPair()
    const armed = await (await waitingCage()).handOff(stream, requestFrame)
    expect(armed.census.descriptors.map(({ fd, closeOnExec }) => [fd, closeOnExec])).toEqual([
      [0, false],
      [1, false],
      [2, false],
      [8, false],
      [12, true],
      [13, true],
      [255, true],
    ])
    const { ino } = fstatSync(stream)
    expect(armed.census.descriptors[3]).toMatchObject({ target: `socket:[${ino}]`, nonBlocking: false })
    expect(armed.census).toMatchObject({ seccompMode: 2, noNewPrivileges: 1 })
    expect(armed.census.bubblewrap.sha256).toMatch(/^[0-9a-f]{64}$/)
  })

  test('is not disturbed by a descriptor that the launcher leaks', async () => {
    const leak = sealedMemfd('leak', Buffer.from('x'))
    const script = `
      import { openCage, cagePolicy } from ${JSON.stringify(new URL('../../dist/cage/index.js', import.meta.url).href)}
      import { socketPair } from ${JSON.stringify(new URL('../../dist/native/index.js', import.meta.url).href)}
      const cage = await openCage(cagePolicy({ tool: { path: '/usr/bin/true', argv: ['true'] }, identity: ${JSON.stringify(testIdentity)} }))
      const armed = await cage.handOff(socketPair('stream')[1], Buffer.from([0, 0, 0, 1, 120]))
      console.log(armed.census.descriptors.map(d => d.fd).join(' '))
      await armed.close()`
    const holes = Array.from({ length: 40 }, () => 'ignore' as const)
    const args = ['--input-type=module', '-e', script]
    const stdio = ['ignore', 'pipe', 'inherit', ...holes, leak] as const
    const printed = execFileSync(process.execPath, args, { stdio: [...stdio] })
    closeDescriptor(leak)
    expect(printed.toString()).toBe('0 1 2 8 12 13 255\n')
  })
})

describe('a cage', () => {
  test('serves one handoff: the second throws before any system call', async () => {
    const [, stream] = streamPair()
    const cage = await waitingCage()
    await cage.handOff(stream, requestFrame)
    // A number that no descriptor has: a system call on it would answer EBADF.
    expect(await codeOf(() => cage.handOff(2 ** 30, requestFrame))).toBe('prepared_stream_consumed')
  })

  test('serves no handoff after it was closed', async () => {
    const cage = await waitingCage()
    await cage.close()
    expect(await codeOf(() => cage.handOff(2 ** 30, requestFrame))).toBe('prepared_stream_consumed')
  })

  test('lets the tool go once', async () => {
    const [, stream] = streamPair()
    const armed = await (await waitingCage()).handOff(stream, requestFrame)
    const running = armed.go()
    await running.started
    expect(await codeOf(() => armed.go())).toBe('prepared_stream_consumed')
    running.close()
    expect(await running.finished).toMatchObject({ exitCode: null, signal: 'SIGKILL' })
  })

  test('can be ended between armed and go: no byte was written, and the stream ends', async () => {
    const [peer, stream] = streamPair()
    const armed = await (await waitingCage()).handOff(stream, requestFrame)
    closeDescriptor(descriptors.splice(descriptors.indexOf(stream), 1)[0]!)
    expect(hungUp(peer)).toBe(false)
    await armed.close()
    expect(hungUp(peer)).toBe(true)
    expect(isAlive(armed.census.pid)).toBe(false)
  })

  test('ends with the stream the moment the tool exits, whatever it left running', async () => {
    const [peer, stream] = streamPair()
    const cage = await waitingCage({ path: '/usr/bin/python3', argv: ['python3', '-c', DOUBLE_FORK] })
    const armed = await cage.handOff(stream, requestFrame)
    closeDescriptor(descriptors.splice(descriptors.indexOf(stream), 1)[0]!)
    const finished = await armed.go().finished
    expect(finished).toMatchObject({ exitCode: 0, signal: null })
    expect(hungUp(peer)).toBe(true)
  })

  test('cannot be ended or stopped from inside through its process 1', async () => {
    const { stdout } = await runShell('kill -9 1; kill -STOP 1; kill -TERM 1; echo alive; exit 3')
    expect(stdout).toBe('alive\n')
  })

  test('leaves no descriptor behind in the launcher', async () => {
    await runShell('true')
    const before = openDescriptorCount()
    for (let round = 0; round < 3; round++) await runShell('echo out; echo err >&2')
    expect(openDescriptorCount()).toBe(before)
  })
})

const DOUBLE_FORK = `
import os, time
if os.fork() == 0:
  os.setsid()
  if os.fork() == 0: time.sleep(60)
  os._exit(0)
os.wait()
`

describe('how a tool ended', () => {
  test.each([
    ['its exit code', 'exit 7', { exitCode: 7, signal: null }],
    ['an exit code that looks like a signal', 'exit 137', { exitCode: 137, signal: null }],
    ['the signal that ended it', 'kill -SEGV $$', { exitCode: null, signal: 'SIGSEGV' }],
    ['the abort that it asked for', 'kill -ABRT $$', { exitCode: null, signal: 'SIGABRT' }],
  ])('is told by %s', async (_what, line, end) => {
    expect((await runShell(line)).finished).toMatchObject(end)
  })

  test('is a signal when it used up its processor time', async () => {
    const limits = { cpuSeconds: 1, dataBytes: 1 << 30, fileBytes: 1 << 20, processes: 16, openFiles: 64 }
    const tool = { path: '/usr/bin/python3', argv: ['python3', '-c', 'while True: pass'] }
    const { finished } = await runCaged({ tool, limits })
    expect(finished.signal).toMatch(/^SIG(KILL|XCPU)$/)
  })
})

describe('what a tool says', () => {
  test('is kept up to a mebibyte, and the rest is read and dropped', async () => {
    const { finished } = await runShell('head -c 3000000 /dev/zero; echo end >&2')
    expect([finished.stdout.length, finished.truncated]).toEqual([1_048_576, true])
    expect(Buffer.from(finished.stderr).toString()).toBe('end\n')
  })

  test('comes through pipes, never sockets or a terminal', async () => {
    const { stdout } = await runPython(
      `import os,stat\nprint([stat.S_ISFIFO(os.fstat(f).st_mode) for f in (1,2)], [os.isatty(f) for f in (0,1,2)])`,
    )
    expect(stdout).toBe('[True, True] [False, False, False]\n')
  })

  test('can answer a host that drives its input', async () => {
    const [, stream] = streamPair()
    const cage = await openTestCage({ tool: { path: '/usr/bin/cat', argv: ['cat'] }, input: 'pipe' })
    cages.push(cage)
    const running = (await cage.handOff(stream, requestFrame)).go()
    running.input!.end('asked')
    const { stdout, exitCode } = await running.finished
    expect([Buffer.from(stdout).toString(), exitCode]).toEqual(['asked', 0])
  })
})

describe('a static tool from outside the view', () => {
  const hidden = openFolder()
  let path: string
  beforeAll(() => {
    path = join(hidden.path, 'probe')
    copyFileSync(nativePath('cage-probe'), path)
    symlinkSync(path, join(folder.path, 'linked'))
  })
  afterAll(() => hidden.remove())

  async function expectCaged(named: string): Promise<void> {
    const { finished } = await runCaged({ tool: { path: named, argv: ['probe', 'walled'] } })
    // WALLED of the probe: it was executed, behind every wall.
    expect(finished.exitCode).toBe(240)
  }

  test('is given to the cage, also through a link', async () => {
    await expectCaged(path)
    await expectCaged(join(folder.path, 'linked'))
  })

  test('is given to the cage also when its uid cannot reach it', async () => {
    chmodSync(hidden.path, 0o700)
    await expectCaged(path)
    await expectCaged(join(folder.path, 'linked'))
  })
})
