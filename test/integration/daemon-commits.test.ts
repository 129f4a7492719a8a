// Counts what reaches the disk: exactly three syncs of the WAL an execution, each before the step that rests on it,
// as the kernel sees the system calls of a real broker. Only root learns the files and peers of a daemon that forbids
// dumps: an ordinary user counts its syncs, root sees what each stands between as well.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, expect, test } from 'vitest'
import { BrokerProcess } from '../support/broker-process.js'
import { BrokerWorld } from '../support/broker-world.js'
import { soonBootNs } from '../support/raw-broker.js'
import { SKIP_REASONS } from '../support/skips.js'
import { testWhen } from '../support/when.js'

const ROUNDS = 5
let world: BrokerWorld
let broker: BrokerProcess
const folder = mkdtempSync(join(tmpdir(), 'chio-strace-'))
afterEach(async () => {
  // strace itself takes no signal while it writes to a file: the broker that it started is ended, by its own pid.
  const holder = readFileSync(join(world.stateDirectory, 'owner.lock'), 'latin1')
  process.kill(Number.parseInt(holder, 10), 'SIGTERM')
  await broker.ended()
  await world.close()
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

type Step = 'sync' | 'unix' | 'tcp'

/** The steps that matter, in order: syncs of the WAL, writes to Unix peers, writes to the provider. */
function stepsOf(lines: readonly string[]): Step[] {
  return lines.flatMap((line): Step[] => {
    if (/(fsync|fdatasync)\(\d+<[^>]*broker\.db-wal>/.test(line)) return ['sync']
    if (!/(write|writev|sendto|sendmsg)\(\d+</.test(line)) return []
    if (/\(\d+<(?:UNIX|unix)/.test(line) || /\(\d+<socket:.*UNIX/i.test(line)) return ['unix']
    return /\(\d+<TCP/.test(line) ? ['tcp'] : []
  })
}

test('an execution is three syncs and no more, all of one file', async () => {
  const lines = await tracedRounds()
  const synced = lines.flatMap(line => /\b(?:fsync|fdatasync)\((\d+)/.exec(line)?.[1] ?? [])
  expect(synced).toHaveLength(3 * ROUNDS)
  expect(new Set(synced).size).toBe(1)
})

testWhen(
  process.getuid?.() === 0,
  SKIP_REASONS.needsRoot,
  'the syncs are of the WAL: registered, dispatch committed, completed, each before what rests on it',
  async () => {
    const steps = stepsOf(await tracedRounds())
    expect(steps.filter(step => step === 'sync')).toHaveLength(3 * ROUNDS)
    expect(roundsOf(steps)).toEqual(Array.from({ length: ROUNDS }, () => EXPECTED))
  },
)

/** What strace wrote of the executions after the first one. */
async function tracedRounds(): Promise<string[]> {
  world = new BrokerWorld({})
  await world.found()
  const trace = join(folder, 'trace')
  const calls = 'trace=fsync,fdatasync,write,writev,sendto,sendmsg'
  broker = await new BrokerProcess(world, {
    wrapper: ['strace', '-f', '-yy', '-e', calls, '-o', trace],
  }).ready()
  await world.provision()
  await (await world.prepared()).preparation.stream.submit(soonBootNs())
  const before = linesOf(trace).length
  for (let round = 0; round < ROUNDS; round += 1) {
    const attempt = await world.prepared()
    expect((await attempt.preparation.stream.submit(soonBootNs())).response.accepted).toBe(true)
  }
  await world.client.slotStatus()
  return linesOf(trace).slice(before)
}

function linesOf(path: string): string[] {
  return readFileSync(path, 'latin1').trimEnd().split('\n')
}

const EXPECTED = ['sync', 'acknowledgements', 'sync', 'provider', 'sync', 'response']

/** Each round: register is synced, then acknowledged; the dispatch is synced, then sent; the record, then the answer. */
function roundsOf(steps: readonly Step[]): string[][] {
  const syncs = steps.flatMap((step, at) => (step === 'sync' ? [at] : []))
  return Array.from({ length: ROUNDS }, (_round, round) => {
    const [registered = 0, dispatched = 0, completed = 0] = syncs.slice(round * 3)
    const next = syncs[round * 3 + 3] ?? steps.length
    const between = (from: number, to: number): Step[] => steps.slice(from + 1, to)
    return [
      'sync',
      between(registered, dispatched).filter(step => step === 'unix').length >= 2
        ? 'acknowledgements'
        : 'nothing',
      'sync',
      between(dispatched, completed).join('') === 'unix'
        ? 'early answer'
        : wordFor(between(dispatched, completed)),
      'sync',
      between(completed, next).includes('unix') ? 'response' : 'nothing',
    ]
  })
}

function wordFor(steps: readonly Step[]): string {
  return steps.includes('tcp') && !steps.includes('unix') ? 'provider' : steps.join(' ')
}
