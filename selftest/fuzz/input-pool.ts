// Owns the inputs that new ones are made from: the target's own seeds, and those that made a reader say something
// new. Lives in memory and ends with the run.
import type { Random } from './random.js'

const MAXIMUM_KEPT_BYTES = 32 * 1024 * 1024
const RECENT = 64

export class InputPool {
  readonly #seeds: readonly Uint8Array[]
  readonly #kept: Uint8Array[] = []
  readonly #signals = new Set<string>()
  #keptBytes = 0

  constructor(seeds: readonly Uint8Array[]) {
    this.#seeds = seeds
  }

  /** Different things that the reader said. */
  get signals(): number {
    return this.#signals.size
  }

  /** Keeps an input whose signal is new. */
  note(input: Uint8Array, signal: string): void {
    if (this.#signals.has(signal)) return
    this.#signals.add(signal)
    if (this.#keptBytes + input.length > MAXIMUM_KEPT_BYTES) return
    this.#keptBytes += input.length
    this.#kept.push(input)
  }

  pick(random: Random): Uint8Array {
    const way = random.below(3)
    if (way === 0 || this.#kept.length === 0) return random.pick(this.#seeds)
    return random.pick(way === 1 ? this.#kept.slice(-RECENT) : this.#kept)
  }
}
