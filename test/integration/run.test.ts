// One brokered operation from grant to verified outcome with plain tools: what they need to know of descriptor 8 is
// to write it and to read it, also when the provider takes its time.
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import type { BrokeredRun } from '../../host/brokered-run.js'
import { openJournalFrame } from '../../host/journal.js'
import { decodeResponse } from '../../protocol/envelope.js'
import { readKey } from '../../system/key-file.js'
import { hostLayout } from '../../system/layout.js'
import { buildTool, openFolder } from '../support/cage.js'
import { openDescriptorCount } from '../support/descriptors.js'
import { beforeStep } from '../support/host-steps.js'
import { answer } from '../support/provider.js'
import { TrialWorld } from '../support/trial-world.js'

const SHELL = ['/bin/sh', '-c', 'cat /run/chio/request.frame >&8; cat <&8']
const PYTHON = [
  '/usr/bin/python3',
  '-c',
  `import os, sys
frame = open('/run/chio/request.frame', 'rb').read()
while frame: frame = frame[os.write(8, frame):]
while chunk := os.read(8, 65536): sys.stdout.buffer.write(chunk)`,
]
/** Half-closes after it wrote, as netcat and many others do. */
const HALF_CLOSING = [
  '/usr/bin/python3',
  '-c',
  `import socket, sys
stream = socket.socket(fileno=8)
stream.sendall(open('/run/chio/request.frame', 'rb').read())
stream.shutdown(socket.SHUT_WR)
while chunk := stream.recv(65536): sys.stdout.buffer.write(chunk)`,
]

let world: TrialWorld
let folder: ReturnType<typeof openFolder>
let compiled: string

beforeAll(async () => {
  folder = openFolder()
  compiled = buildTool('echo8', folder.path)
  world = await TrialWorld.begin()
})
afterAll(async () => {
  await world?.end()
  folder.remove()
})
afterEach(() => vi.restoreAllMocks())

/** The frame that the tool printed is the one that the host verified, byte for byte. */
function expectToldAll(run: BrokeredRun): void {
  expect(Buffer.from(run.tool.stderr).toString()).toBe('')
  expect(run.tool).toMatchObject({ exitCode: 0, signal: null, truncated: false })
  const said = Buffer.from(run.tool.stdout)
  expect(said.readUInt32BE(0)).toBe(said.length - 4)
  expect(decodeResponse(said.subarray(4), 'execute').accepted).toBe(true)
  const outcome = run.outcome
  expect(outcome.kind).toBe('response')
  expect(Buffer.compare(said.subarray(4), outcome.frame)).toBe(0)
}

const tools: [string, () => readonly string[]][] = [
  ['a shell', () => SHELL],
  ['Python', () => PYTHON],
  ['C', () => [compiled]],
  ['C that half-closes', () => [compiled, 'half-close']],
  ['Python that half-closes', () => HALF_CLOSING],
]

/** Each language once, the half-close among them: two seconds each. */
const SLOW_TOOLS = tools.filter(([name]) => ['a shell', 'Python', 'C that half-closes'].includes(name))

describe('descriptor 8 serves a tool that just reads and writes it', () => {
  test.each(tools)('in %s', async (_name, command) => {
    const hits = world.provider.hits
    const run = await world.run(command())
    expectToldAll(run)
    expect(run.operation?.state).toBe('completed')
    expect(world.provider.hits).toBe(hits + 1)
    expect((await world.slot()).state).toBe('free')
  })

  test.each(SLOW_TOOLS)('in %s while the provider takes two seconds', async (_name, command) => {
    world.provider.behave(async ({ socket }) => {
      await sleep(2_000)
      answer(socket, '{"late":true}')
    })
    const run = await world
      .run(command())
      .finally(() => world.provider.behave(({ socket }) => answer(socket, 'ok')))
    expectToldAll(run)
  })
})

describe('a run', () => {
  test('takes its outcome from the broker, not from a tool that says nothing or lies', async () => {
    const liar = [
      '/bin/sh',
      '-c',
      'cat /run/chio/request.frame >&8; cat <&8 >/dev/null; echo "HTTP 500"; exit 9',
    ]
    const run = await world.run(liar)
    expect(run.outcome).toMatchObject({ kind: 'response', response: { status: 200 } })
    expect(run.tool.exitCode).toBe(9)
    expect(run.operation?.state).toBe('completed')
  })

  test('has its request on disk before the start, and its result before the kernel is told', async () => {
    const seen = new Map<string, string[]>()
    beforeStep(name => {
      seen.set(name, filesOf(world))
    })
    const run = await world.run()
    const own = (name: string): string[] =>
      [...(seen.get(name) ?? [])].filter(path => path.startsWith(run.attemptId))
    expect(own('prepare')).toEqual([])
    expect(own('start')).toContain(`${run.attemptId}/request.frame`)
    expect(own('start').filter(path => /response|receipt|outcome/.test(path))).toEqual([])
    const kept = ['outcome.json', 'receipt.json', 'request.frame', 'response.frame']
    expect(own('finalize')).toEqual(expect.arrayContaining(kept.map(name => `${run.attemptId}/${name}`)))
  })

  test('leaves a journal that its owner alone can open, with the very frames', async () => {
    const run = await world.run(SHELL)
    const { journalKey } = hostLayout(world.trial.layout.state, process.geteuid?.() ?? 0)
    const key = readKey({ file: journalKey }, 'journal key')
    const sealed = (name: string): Buffer => readFileSync(join(run.journalDirectory, name))
    const response = openJournalFrame(sealed('response.frame'), key, run.attemptId, 'response.frame')
    expect(Buffer.compare(response, run.tool.stdout)).toBe(0)
    const request = openJournalFrame(sealed('request.frame'), key, run.attemptId, 'request.frame')
    expect(Buffer.from(request).includes('"operation":"execute"')).toBe(true)
    expect(sealed('request.frame').includes('operation')).toBe(false)
    expect(JSON.parse(sealed('receipt.json').toString())).toMatchObject({
      body: { schema: 'chio.broker-execution-receipt.v2', outcome: 'completed' },
    })
    expect(JSON.parse(sealed('outcome.json').toString())).toMatchObject({
      schema: 'chio.host-outcome.v1',
      attemptId: run.attemptId,
      operationId: run.operationId,
      kind: 'response',
      status: 200,
    })
    expect(statSync(run.journalDirectory).mode & 0o7777).toBe(0o700)
  })

  test('leaves no descriptor behind in its host, however often it runs', async () => {
    await world.run()
    const open = openDescriptorCount()
    for (let round = 0; round < 3; round++) await world.run()
    await expect.poll(openDescriptorCount).toBeLessThanOrEqual(open)
  })

  test('whose tool never writes ends as not started, its slot free, nothing touched', async () => {
    const before = await world.touches()
    const run = await world.run(['/bin/true'])
    expect(run.outcome).toMatchObject({
      kind: 'failure',
      failure: { receipt: { body: { dispatchKnowledge: 'not_started' } } },
    })
    expect(run.operation?.state).toBe('not_accepted_after_dispatch_commit')
    expect(await world.attempt(run.attemptId)).toMatchObject({ state: 'failed', reason: 'stream_closed' })
    expect(await world.touches()).toEqual(before)
    expect((await world.slot()).state).toBe('free')
  })
})

function filesOf({ trial }: TrialWorld): string[] {
  const { runs } = hostLayout(trial.layout.state, process.geteuid?.() ?? 0)
  return readdirSync(runs, { recursive: true, encoding: 'utf8' })
    .filter(path => path.includes('/'))
    .sort()
}
