// Counted from outside, call by call: a host makes one connection a preparation, and after whatever failure none but to
// register, replay, release or ask; a cage makes none at all.
import { chmodSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { prepareDispatchConnection } from '../../client/prepare.js'
import { authorize, buildRequest, reserve } from '../../host/admission.js'
import { abandon } from '../../host/settlement.js'
import { nativePath } from '../../native/index.js'
import { issueTrialGrant, trialAdministrator } from '../../selftest/trial-grant.js'
import type { CompiledChild } from '../support/compiled-child.js'
import { goOn, type HostOrder, lastWord, startHost, untilItStands } from '../support/host-child.js'
import { answer, type ProviderBehaviour } from '../support/provider.js'
import { readTrace, straceCommand, type TracedCall } from '../support/strace.js'
import { TrialWorld } from '../support/trial-world.js'

const EXEC = [nativePath('chio-exec')]
const shell = (line: string): string[] => ['/bin/sh', '-c', line]
/** Tries to get a connection of its own before it does what it should. */
const RESTLESS = [
  '/usr/bin/python3',
  '-c',
  `import os, socket
for family in (socket.AF_UNIX, socket.AF_INET):
    try: socket.socket(family).connect('/run/chio/broker/sock' if family == socket.AF_UNIX else ('127.0.0.1', 80))
    except OSError: pass
os.write(8, open('/run/chio/request.frame', 'rb').read())
while os.read(8, 65536): pass`,
]

/** Passes for a program until the kernel is asked to execute it. */
const BROKEN_PROGRAM = join(realpathSync(mkdtempSync(join(tmpdir(), 'chio-broken-'))), 'tool')

interface Story {
  readonly order: Omit<HostOrder, 'grantId' | 'timeoutMs'>
  /** What happens while the host stands. */
  readonly meanwhile?: () => Promise<unknown>
  readonly provider?: ProviderBehaviour
  /** What the broker is asked for, in this order. */
  readonly asked: readonly string[]
  /** One of these follows, each in its turn, where it depends on how fast another process dies. */
  readonly following?: readonly (readonly string[])[]
}

const ADMITTED = ['register_attempt', 'prepare_connection']
const ok: ProviderBehaviour = ({ socket }) => answer(socket, 'ok')

const STORIES: Record<string, Story> = {
  succeeds: { order: { tool: EXEC }, asked: [...ADMITTED, 'execute'] },
  'has a tool that tries sockets of its own': { order: { tool: RESTLESS }, asked: [...ADMITTED, 'execute'] },
  'has a tool that says nothing': { order: { tool: ['/bin/true'] }, asked: [...ADMITTED, 'execute'] },
  'has a tool that writes nonsense': {
    order: { tool: shell('echo nonsense >&8; cat <&8') },
    asked: [...ADMITTED, 'execute'],
  },
  'has a tool that substitutes its frame': {
    order: { tool: shell('tr 12 21 </run/chio/request.frame >&8; cat <&8') },
    asked: [...ADMITTED, 'execute'],
  },
  'has a tool that cannot be executed': {
    order: { tool: [BROKEN_PROGRAM] },
    asked: [...ADMITTED, 'execute'],
  },
  'is denied its start': {
    order: { tool: EXEC, moment: 'before start' },
    meanwhile: revokeAtKernel,
    asked: [...ADMITTED, 'release_attempt', 'execute'],
  },
  'finds the slot held': {
    order: { tool: EXEC, moment: 'before prepare', waitForSlotMs: 0 },
    meanwhile: holdSlot,
    // Who holds it is asked for the sentence alone.
    asked: [...ADMITTED, 'slot_status', 'release_attempt', 'execute'],
  },
  'loses the provider after its dispatch': {
    order: { tool: EXEC },
    provider: ({ reset }) => reset(),
    asked: [...ADMITTED, 'execute'],
  },
  'is told too late': {
    order: { tool: EXEC },
    provider: async ({ socket }) => {
      await sleep(1_500)
      answer(socket, 'late')
    },
    asked: [...ADMITTED, 'execute'],
  },
  'loses the broker while it executes': {
    order: { tool: EXEC },
    provider: () => world.trial.kill('broker'),
    asked: ADMITTED,
    // It is dead, or about to be: replay and release find nobody, or somebody who reads no more.
    following: [
      ['execute', 'refused connection', 'nothing'],
      ['release_attempt', 'refused connection', 'nothing'],
    ],
  },
}

interface BrokerConnection {
  readonly run: string
  operation: string
}

let world: TrialWorld
let folder: string
let grantIds: Map<string, string>
let connections: BrokerConnection[]
let calls: TracedCall[]
const hits = new Map<string, number>()

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'chio-strace-'))
  writeFileSync(BROKEN_PROGRAM, '\u007fELF and nothing more')
  chmodSync(BROKEN_PROGRAM, 0o755)
  world = await TrialWorld.begin()
  grantIds = new Map()
  for (const [index, name] of Object.keys(STORIES).entries()) {
    const wanted = { url: world.provider.url('/issues'), maximumExecutions: 2, grantId: `grant-${index}` }
    grantIds.set(name, (await issueTrialGrant(world.trial, wanted)).grantId)
  }
  const trace = join(folder, 'trace')
  await runAll(trace)
  calls = readTrace(trace)
  connections = brokerConnections(calls, world.trial.layout.broker.socket)
})
afterAll(async () => {
  await world?.end()
  for (const made of [folder, dirname(BROKEN_PROGRAM)]) rmSync(made, { recursive: true, force: true })
})

async function runAll(trace: string): Promise<void> {
  const orders = Object.entries(STORIES).map(([name, { order }]) => ({
    timeoutMs: 1_000,
    waitForSlotMs: 0,
    name,
    grantId: grantIds.get(name) ?? '',
    ...order,
  }))
  const host = startHost(world.trial, orders, { wrapper: straceCommand(trace) })
  for (const [name, story] of Object.entries(STORIES)) await tell(host, name, story)
  await host.ended()
}

let whileHeld: string

async function tell(host: CompiledChild, name: string, story: Story): Promise<void> {
  whileHeld = name
  const before = world.provider.hits
  world.provider.behave(story.provider ?? ok)
  if (story.meanwhile !== undefined) {
    await untilItStands(host)
    await story.meanwhile()
    goOn(host)
  }
  await lastWord(host)
  await release?.()
  release = undefined
  hits.set(name, world.provider.hits - before)
}

async function revokeAtKernel(): Promise<void> {
  const administrator = trialAdministrator(world.trial)
  await administrator.revokeAtKernel(grantIds.get(whileHeld) ?? '').finally(() => administrator.close())
}

let release: (() => Promise<unknown>) | undefined

/** Another operation, of this very process, holds the slot until the story is told. */
async function holdSlot(): Promise<void> {
  const { session, grant } = world
  const reserved = await reserve(session, buildRequest(grant, world.requested()), grant.grantId)
  const admitted = await authorize(session, reserved)
  await session.broker.register(admitted.register)
  const { stream } = await prepareDispatchConnection(session.pins.broker, admitted.prepare, session.clock)
  release = () => {
    stream.close()
    return abandon(session, admitted)
  }
}

/** Every connection of the host to the broker, with the operation that it carried and the run that it was for. */
function brokerConnections(traced: readonly TracedCall[], path: string): BrokerConnection[] {
  const host = traced[0]?.process
  const made: BrokerConnection[] = []
  const open = new Map<string, BrokerConnection | undefined>()
  let run = ''
  for (const { process, name, text } of traced) {
    if (process !== host) continue
    run = /^write\(1, "\{\\"run\\":\\"([^"\\]+)/.exec(text)?.[1] ?? run
    const [, fd = '', copy = ''] = /\((\d+).* = (\d+)$/.exec(text) ?? []
    if (name === 'connect' && text.includes(`sun_path="${path}"`)) {
      made.push({ run, operation: text.endsWith(' = 0') ? 'nothing' : 'refused connection' })
      open.set(fd, made.at(-1))
    } else if (name === 'fcntl' && text.includes('F_DUPFD')) open.set(copy, open.get(fd))
    else noteOperation(open.get(fd), text)
  }
  return made
}

function noteOperation(connection: BrokerConnection | undefined, text: string): void {
  const operation = /\\"operation\\":\\"([a-z_]+)\\"/.exec(text)?.[1]
  if (operation !== undefined && connection?.operation === 'nothing') connection.operation = operation
}

const askedIn = (run: string): string[] =>
  connections.filter(made => made.run === run).map(made => made.operation)

describe('a run of a host', () => {
  test.each(Object.keys(STORIES))('that %s makes exactly the connections that it must', name => {
    const { asked = [], following = [] } = STORIES[name] ?? {}
    expect(askedIn(name).slice(0, asked.length)).toEqual(asked)
    const rest = askedIn(name).slice(asked.length)
    expect(rest.length).toBe(following.length)
    following.forEach((allowed, index) => expect(allowed).toContain(rest[index]))
  })

  test('makes one connection that carries a preparation for each preparation, whatever fails', () => {
    for (const name of Object.keys(STORIES)) {
      const prepared = askedIn(name).filter(operation => operation === 'prepare_connection')
      expect([name, prepared.length]).toEqual([name, 1])
    }
  })

  test('reaches the provider at most once', () => {
    for (const [name, count] of hits) expect([name, count]).toEqual([name, Math.min(count, 1)])
    expect(hits.get('succeeds')).toBe(1)
    expect(hits.get('has a tool that substitutes its frame')).toBe(0)
  })

  test('makes no connection that carries nothing, and none for no run', () => {
    const idle = connections.filter(({ operation }) => operation === 'nothing')
    expect(idle.filter(({ run }) => STORIES[run]?.following === undefined)).toEqual([])
    expect(connections.filter(({ run }) => run === '')).toEqual([])
  })

  test('has cages that make no connection to anything', () => {
    const [host] = calls
    const others = calls.filter(({ process }) => process !== host?.process)
    expect(others.length).toBeGreaterThan(10)
    expect(others.filter(({ name }) => name === 'connect').map(({ text }) => text)).toEqual([])
  })
})
