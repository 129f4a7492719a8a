// Owns the proof that nothing piles up: so many prepared executions in a row, then so many refused ones, with every
// process looked into on the way. What it holds in the end is compared with what it held after the warm-up.
// Must never: excuse a descriptor, or judge by a look at a process that is still at work.
import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock } from '../../native/clock.js'
import { CrashWorld } from '../crash/crash-world.js'
import { HostProcess } from '../crash/host-process.js'
import type { Measured } from './measured.js'
import { PLAIN_WAYS, type PlainWay } from './plain-run.js'

export const FLAT_SCHEMA = 'chio.soak-flat.v1'

export const FLAT_PROCESSES = ['broker', 'kernel', 'host'] as const
export type FlatProcess = (typeof FLAT_PROCESSES)[number]
export type FlatPhase = 'executed' | 'refused'

export interface FlatOptions {
  /** Executions, and then as many refusals. */
  readonly count: number
  /** Told now and then, with a look at every process. */
  readonly onProgress?: (phase: FlatPhase, done: number, looks: Looks) => void
}

/** One process in one phase: after the warm-up, and in the end. */
export interface FlatRow {
  readonly phase: FlatPhase
  readonly process: FlatProcess
  readonly first: Measured
  readonly last: Measured
}

export interface FlatReport {
  readonly schema: typeof FLAT_SCHEMA
  readonly count: number
  readonly rows: readonly FlatRow[]
  readonly hits: number
  readonly violations: readonly string[]
  readonly seconds: number
}

/** A provider that answers at once, on a machine that may be busy. */
const PROVIDER_MS = 5_000
const SLOT_WAIT_MS = 20_000
const REFUSED_WAYS = PLAIN_WAYS.filter(way => way !== 'submitted')
/** Code is compiled, caches and pools have their size: a tenth of the run, and never less than this. */
const LEAST_WARM_UP = 20
/** A grant whose preparations are left again and again has to wait; an execution between them ends its streak. */
const EXECUTED_EVERY = 25
/** What a process may hold more at one look than at another without a leak: a connection that is just being closed. */
const LOOKS = 20
const LOOK_EVERY = 500
const LOOK_MS = 25

/** Bytes of the heap that may come to stay for each operation of a long run, and those of any run at all. */
const HEAP_BYTES_EACH = 100
const HEAP_BYTES_ANY = 2 * 1024 * 1024
/** The kernel remembers what it read of the last 256 operations: a shorter warm-up leaves it room to grow into. */
const REMEMBERED_OPERATIONS = 256
const REMEMBERED_BYTES = 6 * 1024 * 1024
/** The allocator and the page cache of SQLite keep what they once had. */
const RSS_BYTES_ANY = 48 * 1024 * 1024

export type Looks = Readonly<Record<FlatProcess, Measured>>

export async function runFlat(options: FlatOptions): Promise<FlatReport> {
  const startedBootNs = systemClock.bootNs()
  const world = await CrashWorld.open()
  const host = await new HostProcess(world.trial.layout.state).ready()
  try {
    for (const role of ['broker', 'kernel'] as const) await world.steer(role)
    const run = new FlatRun(world, host, options)
    const rows = [...(await run.phase('executed')), ...(await run.phase('refused'))]
    const seconds = Math.round(Number((systemClock.bootNs() - startedBootNs) / 1_000_000_000n))
    const { count } = options
    const violations = [...run.violations, ...rows.flatMap(row => growthOf(row, count))]
    return { schema: FLAT_SCHEMA, count, rows, hits: world.provider.total, violations, seconds }
  } finally {
    await host.stop()
    await world.close()
  }
}

class FlatRun {
  readonly violations: string[] = []
  readonly #world: CrashWorld
  readonly #host: HostProcess
  readonly #options: FlatOptions
  #number = 0

  constructor(world: CrashWorld, host: HostProcess, options: FlatOptions) {
    this.#world = world
    this.#host = host
    this.#options = options
  }

  async phase(phase: FlatPhase): Promise<FlatRow[]> {
    const { count, onProgress } = this.#options
    const warmUp = warmUpOf(count)
    for (let done = 0; done < warmUp; done += 1) await this.#operation(this.#wayOf(phase))
    const first = await this.#look()
    for (let done = 1; done <= count; done += 1) {
      if (done % EXECUTED_EVERY === 0) await this.#operation('submitted')
      await this.#operation(this.#wayOf(phase))
      if (done % LOOK_EVERY === 0) onProgress?.(phase, done, await this.#lookOnce())
    }
    const last = await this.#look(first)
    return FLAT_PROCESSES.map(process => ({ phase, process, first: first[process], last: last[process] }))
  }

  #wayOf(phase: FlatPhase): PlainWay {
    if (phase === 'executed') return 'submitted'
    return REFUSED_WAYS[this.#number % REFUSED_WAYS.length] ?? 'abandoned'
  }

  async #operation(way: PlainWay): Promise<void> {
    const number = (this.#number += 1)
    const body = JSON.stringify({ flat: number })
    const told = await this.#host.run({
      ...this.#world.order(body),
      way,
      timeoutMs: PROVIDER_MS,
      waitForSlotMs: SLOT_WAIT_MS,
    })
    const [hits, expected] = [this.#world.provider.hits.get(body) ?? 0, way === 'submitted' ? 1 : 0]
    const asExpected = told?.outcome === (way === 'submitted' ? 'response' : 'not_started')
    if (hits === expected && asExpected) return
    this.violations.push(`operation ${number} (${way}): ${hits} hits, told ${JSON.stringify(told)}`)
  }

  /** Looks until nobody holds more than before, as often as what is being closed may need. */
  async #look(before?: Looks): Promise<Looks> {
    for (let look = 1; ; look += 1) {
      await sleep(LOOK_MS)
      const looks = await this.#lookOnce()
      if (look >= (before === undefined ? 4 : LOOKS) || (before && isQuiet(before, looks))) return looks
    }
  }

  async #lookOnce(): Promise<Looks> {
    const broker = await this.#world.steered('broker').measure()
    const kernel = await this.#world.steered('kernel').measure()
    const host = await this.#host.measure()
    if (broker === undefined || kernel === undefined || host === undefined) {
      throw new Error('flat run: expected three processes that live, got one that ended')
    }
    return { broker, kernel, host }
  }
}

function isQuiet(before: Looks, now: Looks): boolean {
  return FLAT_PROCESSES.every(
    name => now[name].descriptors <= before[name].descriptors && now[name].handles <= before[name].handles,
  )
}

function warmUpOf(count: number): number {
  return Math.max(LEAST_WARM_UP, Math.floor(count / 10))
}

/** @returns what grew, one sentence each. */
function growthOf({ phase, process, first, last }: FlatRow, count: number): string[] {
  const unfilled = warmUpOf(count) < REMEMBERED_OPERATIONS ? REMEMBERED_BYTES : 0
  const allowed: Readonly<Record<keyof Measured, number>> = {
    descriptors: 0,
    handles: 0,
    heapBytes: unfilled + Math.max(HEAP_BYTES_ANY, HEAP_BYTES_EACH * count),
    rssBytes: RSS_BYTES_ANY,
  }
  return (Object.keys(allowed) as (keyof Measured)[])
    .filter(what => last[what] - first[what] > allowed[what])
    .map(what => `${process}, ${count} ${phase}: ${what} grew from ${first[what]} to ${last[what]}`)
}
