// Owns a soak from its first request to its verdict: load, faults, a provider that misbehaves; then quiet, everything
// settled, and the provider's count against what is on disk.
// Must never: excuse a violation, or judge before the records are settled.
import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock } from '../../native/clock.js'
import { type AdmissionState, isTerminalState } from '../../protocol/admission-states.js'
import { NS_PER_MS } from '../../protocol/clock.js'
import { deadlineAfter, hasPassed } from '../../system/deadline.js'
import { SETTLED_AFTER_MS } from '../crash/crash-world.js'
import type { Told } from '../crash/told.js'
import { Random } from '../fuzz/random.js'
import { type Fault, PROCESS_FAULTS, SURROUNDING_FAULTS } from './faults.js'
import { type Answer, actOn, answerOf } from './hostile-answers.js'
import { Load } from './load.js'
import { judge } from './soak-verdict.js'
import { ROLES, SoakWorld } from './soak-world.js'
import { storedRecords } from './stored-records.js'

export const SOAK_SCHEMA = 'chio.soak.v1'

export interface SoakOptions {
  readonly milliseconds: number
  readonly seed: number
  readonly clients: number
  readonly onProgress?: (soFar: {
    readonly seconds: number
    readonly runs: number
    readonly hits: number
  }) => void
}

export type Counts = Readonly<Record<string, number>>

/** What a soak did, what came of it, and what does not hold. */
export interface SoakReport {
  readonly schema: typeof SOAK_SCHEMA
  readonly seed: number
  readonly seconds: number
  readonly runs: Counts
  readonly faults: Counts
  readonly answers: Counts
  readonly told: Counts
  readonly attempts: Counts
  readonly operations: Counts
  readonly hits: number
  readonly violations: readonly string[]
}

const PROGRESS_MS = 10_000
const LONGEST_PAUSE_MS = 500
const SLOT_PATIENCE_MS = 40_000
const SETTLED_WITHIN_MS = 120_000
const MAIN_JOB_TRIES = 20
const WORK_PATIENCE_MS = 30_000
const LOOK_MS = 20

export async function runSoak(options: SoakOptions): Promise<SoakReport> {
  const world = await SoakWorld.open()
  try {
    return await new SoakRun(world, options).run()
  } finally {
    await world.close()
  }
}

class SoakRun {
  readonly #world: SoakWorld
  readonly #options: SoakOptions
  readonly #load: Load
  readonly #faults = new Map<string, number>()
  readonly #answers = new Map<string, number>()
  readonly #endBootNs: bigint
  readonly #beginBootNs = systemClock.bootNs()

  constructor(world: SoakWorld, options: SoakOptions) {
    this.#world = world
    this.#options = options
    this.#load = new Load(world, options.seed)
    this.#endBootNs = deadlineAfter(systemClock, options.milliseconds)
  }

  async run(): Promise<SoakReport> {
    await this.#disturb()
    await this.#quiet()
    await this.#settle()
    const { hits } = this.#world.crash.provider
    await this.#world.stopDaemons()
    const records = await storedRecords(this.#world.crash.trial)
    const judged = judge({ hits, records, runs: this.#load.runs }, body => this.#world.crash.digestOf(body))
    return {
      schema: SOAK_SCHEMA,
      seed: this.#options.seed,
      seconds: this.#seconds(),
      faults: sorted(this.#faults),
      answers: sorted(this.#answers),
      ...judged,
      hits: this.#world.crash.provider.total,
      violations: [...this.#world.violations, ...judged.violations],
    }
  }

  async #disturb(): Promise<void> {
    const { clients, seed } = this.#options
    const chance = new Random(seed)
    this.#world.crash.provider.behave(hit => {
      const answer: Answer = answerOf(chance)
      count(this.#answers, answer)
      return actOn(hit, answer, chance)
    })
    this.#load.begin(clients)
    await Promise.all([
      this.#keepDoing(PROCESS_FAULTS, new Random(seed ^ 0x5bd1e995), () => this.#work()),
      this.#keepDoing(SURROUNDING_FAULTS, new Random(seed ^ 0x27d4eb2f), async () => undefined),
      this.#tell(),
    ])
  }

  async #keepDoing(faults: readonly Fault[], random: Random, between: () => Promise<void>): Promise<void> {
    while (!this.#isOver()) {
      await between()
      await sleep(random.below(LONGEST_PAUSE_MS))
      const fault = random.pick(faults)
      if (await fault.act(this.#world, random)) count(this.#faults, fault.name)
    }
  }

  /** Waits for an answered run: faults that follow each other faster than a slow machine works would disturb nothing. */
  async #work(): Promise<void> {
    const before = this.#load.answered
    const patienceBootNs = deadlineAfter(systemClock, WORK_PATIENCE_MS)
    while (this.#load.answered === before && !this.#isOver() && !hasPassed(systemClock, patienceBootNs)) {
      await sleep(LOOK_MS)
    }
  }

  async #tell(): Promise<void> {
    const { onProgress } = this.#options
    while (!this.#isOver()) {
      const leftMs = Number((this.#endBootNs - systemClock.bootNs()) / NS_PER_MS)
      await sleep(Math.max(Math.min(PROGRESS_MS, leftMs), 1))
      const { total } = this.#world.crash.provider
      onProgress?.({ seconds: this.#seconds(), runs: this.#load.runs.length, hits: total })
    }
  }

  /** Nobody works and nothing is wrong any more; then the main job must work at once. */
  async #quiet(): Promise<void> {
    const { crash, violations } = this.#world
    crash.provider.behave(() => undefined)
    await this.#load.end()
    await Promise.all(ROLES.map(role => this.#world.revived(role)))
    if (!(await crash.slotFrees(SLOT_PATIENCE_MS))) violations.push('the slot is not free at rest')
    const told = await this.#mainJob()
    if (told !== undefined) violations.push(`the main job does not work: ${JSON.stringify(told)}`)
  }

  /** @returns what the last of a few tries was told, when none of them had a response: a busy machine is slow. */
  async #mainJob(): Promise<Told | undefined | 'nothing'> {
    const host = await this.#world.startHost()
    let told: Told | undefined
    for (let last = 1; last <= MAIN_JOB_TRIES; last += 1) {
      const order = this.#world.crash.order(JSON.stringify({ last }))
      told = await host.run({ ...order, waitForSlotMs: SLOT_PATIENCE_MS })
      if (told?.outcome === 'response') break
    }
    await host.stop()
    return told?.outcome === 'response' ? undefined : (told ?? 'nothing')
  }

  /** Lets so much time pass that everything is due, and waits for it. */
  async #settle(): Promise<void> {
    const { crash, violations } = this.#world
    await crash.pass(SETTLED_AFTER_MS)
    const openNow = async (): Promise<number> => {
      const { operations } = await crash.session.kernel.call('status', {})
      const open = operations.filter(({ state }) => !isTerminalState(state as AdmissionState))
      return open.reduce((sum, { count: of }) => sum + of, 0)
    }
    const left = await crash.until(openNow, open => open === 0, SETTLED_WITHIN_MS)
    if (left > 0) violations.push(`${left} operations are not settled`)
    const { grantId } = crash.grant
    const { held } = await crash.session.kernel.call('show_grant', { grantId })
    if (held > 0) violations.push(`${held} executions are held although nobody works`)
  }

  #isOver(): boolean {
    return hasPassed(systemClock, this.#endBootNs)
  }

  #seconds(): number {
    return Math.round(Number((systemClock.bootNs() - this.#beginBootNs) / 1_000_000_000n))
  }
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1)
}

function sorted(counts: ReadonlyMap<string, number>): Counts {
  return Object.fromEntries([...counts].sort(([a], [b]) => (a < b ? -1 : 1)))
}
