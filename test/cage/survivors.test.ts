/**
 * Nothing of a cage outlives its launcher. Asked of process handles that were taken while all lived: pids and the
 * numbers of namespaces are given away again, and other cages may be running beside this test.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { awaitReadable, closeDescriptor, hungUp, pidfdOpen, socketPair } from '../../native/index.js'
import { fullCount } from '../support/counts.js'
import { deadlineIn } from '../support/descriptors.js'
import { isAlive, testIdentity } from '../support/cage.js'

const door = (name: string): string => JSON.stringify(new URL(`../../dist/${name}`, import.meta.url).href)

/** Opens a cage, hands it the stream at 3, lets a tool go that forks twice, prints the pids, and waits. */
const HOST = `
  import { openCage, cagePolicy } from ${door('cage/index.js')}
  const forks = 'import os,time\\nos.fork() or os.setsid() or os.fork()\\ntime.sleep(60)'
  const tool = { path: '/usr/bin/python3', argv: ['python3', '-c', forks] }
  console.log('spawning')
  const cage = await openCage(cagePolicy({ tool, identity: ${JSON.stringify(testIdentity)} }))
  const running = (await cage.handOff(3, Buffer.from([0, 0, 0, 1, 120]))).go()
  await running.started
  console.log(JSON.stringify(cage.census))
  await running.finished`

interface Host {
  readonly pid: number
  line(): Promise<string>
  kill(): Promise<void>
}

function startHost(stream: number): Host {
  const args = ['--input-type=module', '-e', HOST]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit', stream] })
  const exit = once(child, 'exit')
  return {
    pid: child.pid!,
    line: async () => ((await once(child.stdout!, 'data')) as [Buffer])[0].toString(),
    async kill() {
      child.kill('SIGKILL')
      await exit
    },
  }
}

function allPids(): number[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
}

/** What read() gives, or null for a process that went away or may not be read. */
function readOr<T>(read: () => T): T | null {
  try {
    return read()
  } catch {
    return null
  }
}

/** Live processes whose pid namespace is this one. */
function livingIn(pidNamespace: string): number[] {
  return allPids().filter(
    pid => readOr(() => readlinkSync(`/proc/${pid}/ns/pid`)) === pidNamespace && isAlive(pid),
  )
}

function parentOf(pid: number): number {
  const status = readOr(() => readFileSync(`/proc/${pid}/status`, 'latin1'))
  return Number(/^PPid:\s+(\d+)$/m.exec(status ?? '')?.[1] ?? 0)
}

function descendants(ancestor: number): number[] {
  const all = allPids()
  const found = new Set([ancestor])
  for (let before = 0; before !== found.size; ) {
    before = found.size
    for (const pid of all) if (found.has(parentOf(pid))) found.add(pid)
  }
  found.delete(ancestor)
  return [...found]
}

const PATIENCE = { timeout: 20_000, interval: 20 }

/** Of those that are not gone by now. */
function handlesOf(pids: readonly number[]): number[] {
  return pids.flatMap(pid => readOr(() => [pidfdOpen(pid)]) ?? [])
}

/** @throws when one of them lives on. */
async function allDead(handles: readonly number[]): Promise<void> {
  for (const handle of handles) {
    await awaitReadable(handle, deadlineIn(20_000))
    closeDescriptor(handle)
  }
}

/** Also by what was started so late that nobody saw it: nobody holds the stream any more. */
async function isReleased(peer: number): Promise<void> {
  await vi.waitFor(() => expect(hungUp(peer)).toBe(true), PATIENCE)
}

describe('a launcher that is killed', () => {
  test('takes the tool, its children and their children along', async () => {
    const [peer, stream] = socketPair('stream')
    const host = startHost(stream)
    closeDescriptor(stream)
    let lines = ''
    while (!lines.includes('}')) lines += await host.line()
    const census = JSON.parse(lines.slice(lines.indexOf('{'))) as { namespaces: { pid: string } }
    const handles = await vi.waitFor(() => {
      const living = livingIn(census.namespaces.pid)
      expect(living.length).toBeGreaterThanOrEqual(3)
      return handlesOf(living)
    }, PATIENCE)
    await host.kill()
    await allDead(handles)
    await isReleased(peer)
    closeDescriptor(peer)
  })

  const rounds = fullCount(10, 200)
  test(`leaves no bwrap and no cage-init when it dies within 50 ms of the spawn, ${rounds} times`, async () => {
    for (let round = 0; round < rounds; round++) {
      const [peer, stream] = socketPair('stream')
      const host = startHost(stream)
      closeDescriptor(stream)
      await host.line()
      await delay((round * 50) / rounds)
      const handles = handlesOf(descendants(host.pid))
      await host.kill()
      await allDead(handles)
      await isReleased(peer)
      closeDescriptor(peer)
    }
  }, 300_000)
})
