// Owns rounds in which any process is killed at any moment: each runs one operation, kills while it runs, starts what
// died, and goes on. In the end everything is settled and every request is compared with its records.
// Must never: excuse a violation, or judge before the records are settled.
import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock } from '../../native/clock.js'
import { NS_PER_MS } from '../../protocol/clock.js'
import { Random } from '../fuzz/random.js'
import { CrashWorld, SETTLED_AFTER_MS } from './crash-world.js'
import { HostPool } from './host-pool.js'
import { readEntries, type RequestLedger, violationsOf } from './records.js'
import { type Told, untruthsOf } from './told.js'
import { drawVictim, kill, type Victim } from './victims.js'

export const RANDOM_SCHEMA = 'chio.crash-random.v1'

export interface RandomOptions {
  readonly rounds: number
  readonly seed: number
  readonly onRound?: (round: number) => void
}

/** What a run of random kills found. */
export interface RandomReport {
  readonly schema: typeof RANDOM_SCHEMA
  readonly seed: number
  readonly rounds: number
  readonly killed: Readonly<Record<string, number>>
  readonly hits: number
  readonly told: Readonly<Record<string, number>>
  readonly attempts: Readonly<Record<string, number>>
  readonly operations: Readonly<Record<string, number>>
  readonly violations: readonly string[]
  readonly seconds: number
}

interface Round {
  readonly body: string
  readonly victim: Victim
  /** Undefined: the host died first. */
  readonly told: Told | undefined
  readonly operationIds: Set<string>
}

/** When in a round. */
interface Moment {
  readonly of: 'the hit' | 'the order'
  readonly afterMs: number
}

/** Some rounds end before the kill: then it meets an installation at rest. */
const BEYOND_THE_RUN = 1.2
const WARM_UPS = 3
const LONGEST_PROVIDER_MS = 40
const AROUND_THE_HIT_MS = 80
const LONGEST_TYPICAL_MS = 5_000
const HOST_PATIENCE_MS = 90_000
const SLOT_PATIENCE_MS = 20_000
const SETTLED_WITHIN_MS = 120_000
/** As many rounds as one list of the kernel surely covers. */
const COLLECT_EVERY = 100

export async function runRandom(options: RandomOptions): Promise<RandomReport> {
  const startedBootNs = systemClock.bootNs()
  const world = await CrashWorld.open()
  const hosts = new HostPool(world.trial.layout.state)
  try {
    const run = new RandomRun(world, hosts, options)
    await run.rounds()
    const report = await run.judge()
    return { ...report, seconds: Math.round(Number((systemClock.bootNs() - startedBootNs) / 1_000_000_000n)) }
  } finally {
    await hosts.close()
    await world.close()
  }
}

class RandomRun {
  readonly #world: CrashWorld
  readonly #hosts: HostPool
  readonly #options: RandomOptions
  readonly #random: Random
  readonly #rounds: Round[] = []
  readonly #violations: string[] = []
  #typicalMs = 0
  #onHit: () => void = () => undefined

  constructor(world: CrashWorld, hosts: HostPool, options: RandomOptions) {
    this.#world = world
    this.#hosts = hosts
    this.#options = options
    this.#random = new Random(options.seed)
  }

  async rounds(): Promise<void> {
    const { onRound, rounds } = this.#options
    for (let warmUp = 0; warmUp < WARM_UPS; warmUp++) this.#typicalMs = await this.#warmUp(warmUp)
    this.#world.provider.behave(() => {
      this.#onHit()
      return sleep(this.#random.below(LONGEST_PROVIDER_MS))
    })
    for (let round = 1; round <= rounds; round++) {
      await this.#round(round)
      if (round % COLLECT_EVERY === 0 || round === rounds) await this.#collect()
      onRound?.(round)
    }
  }

  /** How long a run takes that nobody disturbs, the provider's longest time included. */
  async #warmUp(index: number): Promise<number> {
    const startedBootNs = systemClock.bootNs()
    const host = await this.#hosts.take()
    const told = await host.run(this.#world.order(JSON.stringify({ warmUp: index })))
    if (told?.outcome !== 'response') this.#violations.push(`undisturbed run: ${JSON.stringify(told)}`)
    return Number((systemClock.bootNs() - startedBootNs) / NS_PER_MS) + LONGEST_PROVIDER_MS
  }

  async #round(number: number): Promise<void> {
    const { seed } = this.#options
    const victim = drawVictim(this.#random)
    const body = JSON.stringify({ round: number, seed, victim })
    const moment = this.#drawMoment()
    const told = await this.#disturbed(body, victim, moment)
    this.#rounds.push({ body, victim, told, operationIds: new Set() })
    const hits = this.#world.provider.hits.get(body) ?? 0
    const where = `round ${number} (${victim}, ${moment.afterMs} ms after ${moment.of})`
    if (hits > 1) this.#violations.push(`${where}: ${hits} hits`)
    if (!(await this.#world.slotFrees(SLOT_PATIENCE_MS)))
      this.#violations.push(`${where}: slot not free at rest`)
  }

  /** Any moment of a run, and as often one around the provider's answer, where most is at stake. */
  #drawMoment(): Moment {
    if (this.#random.once(2)) return { of: 'the hit', afterMs: this.#random.below(AROUND_THE_HIT_MS) }
    return { of: 'the order', afterMs: this.#random.below(Math.ceil(this.#typicalMs * BEYOND_THE_RUN)) }
  }

  async #reached({ of, afterMs }: Moment, told: Promise<unknown>): Promise<void> {
    if (of === 'the hit') {
      const hit = new Promise<void>(resolve => {
        this.#onHit = resolve
      })
      await Promise.race([hit, told])
    }
    await sleep(afterMs)
  }

  async #disturbed(body: string, victim: Victim, moment: Moment): Promise<Told | undefined> {
    const world = this.#world
    const host = await this.#hosts.take()
    const startedBootNs = systemClock.bootNs()
    const told = host.run(world.order(body)).finally(() => this.#lasted(startedBootNs))
    await this.#reached(moment, told)
    const isHostDead = await kill(victim, { world, host, random: this.#random })
    const patience = sleep(HOST_PATIENCE_MS, 'late' as const, { ref: false })
    const ending = await Promise.race([told, patience])
    if (ending === 'late') this.#violations.push(`${body}: the host was told nothing for a minute and a half`)
    if (isHostDead || ending === 'late') await this.#hosts.replace()
    return ending === 'late' ? undefined : ending
  }

  /** The machine is faster and slower in the course of many rounds. */
  #lasted(startedBootNs: bigint): void {
    const ms = Number((systemClock.bootNs() - startedBootNs) / NS_PER_MS)
    this.#typicalMs = Math.min(this.#typicalMs * 0.8 + ms * 0.2, LONGEST_TYPICAL_MS)
  }

  /** Notes which operations belong to which round while the kernel still lists them. */
  async #collect(): Promise<void> {
    const entries = await this.#world.until(
      () => readEntries(this.#world.session),
      () => true,
      SLOT_PATIENCE_MS,
    )
    const byDigest = new Map(this.#rounds.map(round => [this.#world.digestOf(round.body), round]))
    for (const { operationId, requestDigest } of entries) {
      byDigest.get(requestDigest)?.operationIds.add(operationId)
    }
  }

  /** Settles everything, then compares. */
  async judge(): Promise<Omit<RandomReport, 'seconds'>> {
    await this.#world.steerAhead(SETTLED_AFTER_MS)
    const ledgers: RequestLedger[] = []
    for (const round of this.#rounds) ledgers.push(await this.#judgeRound(round))
    const entries = ledgers.flatMap(({ entries: of }) => of)
    const { rounds, seed } = this.#options
    return {
      schema: RANDOM_SCHEMA,
      seed,
      rounds,
      killed: counted(this.#rounds.map(({ victim }) => victim)),
      hits: ledgers.reduce((sum, { hits }) => sum + hits, 0),
      told: counted(this.#rounds.map(({ told }) => told?.outcome ?? 'died')),
      attempts: counted(entries.map(({ attempt }) => attempt.state)),
      operations: counted(entries.map(({ state }) => state)),
      violations: [...this.#violations, ...this.#strangers()],
    }
  }

  async #judgeRound({ body, operationIds, told }: Round): Promise<RequestLedger> {
    const entries = []
    for (const operationId of operationIds) {
      entries.push(await this.#world.settled(operationId, SETTLED_WITHIN_MS))
    }
    const ledger = { hits: this.#world.provider.hits.get(body) ?? 0, entries }
    const open = entries.filter(({ isSettled }) => !isSettled)
    const found = [
      ...open.map(({ operationId, state }) => `operation ${operationId} stays ${state}`),
      ...violationsOf(ledger),
      ...(told === undefined ? [] : untruthsOf(told, ledger)),
    ]
    this.#violations.push(...found.map(sentence => `${body}: ${sentence}`))
    return ledger
  }

  /** Every request that arrived belongs to a round. */
  #strangers(): string[] {
    const known = new Set(this.#rounds.map(({ body }) => body))
    const strange = [...this.#world.provider.hits.keys()].filter(body => !known.has(body))
    return strange.filter(body => !body.includes('warmUp')).map(body => `${body}: a hit of no round`)
  }
}

function counted(words: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1
  return counts
}
