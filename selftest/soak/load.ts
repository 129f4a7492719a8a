// Owns the clients of a soak: each a host in a process of its own that works without a pause, with and without a
// cage, as it should and as it should not. A host that died is replaced.
// Must never: give one body to two runs: by it the provider's count is compared.
import { setTimeout as sleep } from 'node:timers/promises'
import type { HostProcess } from '../crash/host-process.js'
import type { Told } from '../crash/told.js'
import { Random } from '../fuzz/random.js'
import { PLAIN_WAYS, type PlainWay } from './plain-run.js'
import type { SoakWorld } from './soak-world.js'

/** One run, as its client saw it. */
export interface LoadRun {
  readonly body: string
  readonly way: PlainWay | 'caged'
  /** Undefined: the host died first. */
  told: Told | undefined
}

/** Most runs are the main job. */
const CAGED_ONE_OF = 4
const MISUSED_ONE_OF = 4
const SLOW_TOOL_ONE_OF = 3
const SLOW_TOOL = ['/bin/sh', '-c', 'sleep 0.1; cat /run/chio/request.frame >&8; cat <&8 >/dev/null']
const SLOT_WAIT_MS = 3_000
/** A daemon that is away is not asked as fast as it can be refused. */
const UNAVAILABLE = 69
const AWAY_PAUSE_MS = 100
/** Outcomes of what is under way when the load ends. */
const LAST_PATIENCE_MS = 15_000

export class Load {
  readonly runs: LoadRun[] = []
  /** Runs that ended with the provider's answer. */
  answered = 0
  readonly #world: SoakWorld
  readonly #seed: number
  readonly #clients: Promise<void>[] = []
  #isOver = false

  constructor(world: SoakWorld, seed: number) {
    this.#world = world
    this.#seed = seed
  }

  begin(clients: number): void {
    for (let client = 1; client <= clients; client += 1) {
      this.#clients.push(this.#work(client, new Random(this.#seed + client)))
    }
  }

  /** Lets what is under way come to its end, for a while. */
  async end(): Promise<void> {
    this.#isOver = true
    const all = Promise.all(this.#clients)
    const patience = sleep(LAST_PATIENCE_MS, undefined, { ref: false })
    await Promise.race([all, patience])
    await Promise.all([...this.#world.hosts].map(host => host.kill()))
    await all
  }

  async #work(client: number, random: Random): Promise<void> {
    let host: HostProcess | undefined
    for (let number = 1; !this.#isOver; number += 1) {
      if (host === undefined || !this.#world.hosts.has(host)) host = await this.#world.startHost()
      const run = this.#nextRun(JSON.stringify({ client, number, seed: this.#seed }), random)
      this.runs.push(run)
      run.told = await host.run(this.#order(run, random))
      if (run.told?.outcome === 'response') this.answered += 1
      if (run.told?.exitCode === UNAVAILABLE) await sleep(AWAY_PAUSE_MS)
    }
    await host?.stop()
  }

  #nextRun(body: string, random: Random): LoadRun {
    if (random.once(CAGED_ONE_OF)) return { body, way: 'caged', told: undefined }
    return { body, way: random.once(MISUSED_ONE_OF) ? random.pick(PLAIN_WAYS) : 'submitted', told: undefined }
  }

  #order({ body, way }: LoadRun, random: Random) {
    const { crash } = this.#world
    const shared = { waitForSlotMs: SLOT_WAIT_MS }
    if (way !== 'caged') return { ...crash.order(body), ...shared, way }
    return {
      ...(random.once(SLOW_TOOL_ONE_OF) ? crash.order(body, SLOW_TOOL) : crash.order(body)),
      ...shared,
    }
  }
}
