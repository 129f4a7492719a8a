// Owns one run of one target: inputs, verdicts, time of each, findings. What broke a promise is made small and
// handed back, each kind once. Must never stop at a finding: the next one may be worse.
import type { Clock } from '../../protocol/clock.js'
import { InputPool } from './input-pool.js'
import { Random } from './random.js'
import { shrink } from './shrink.js'
import { FuzzFinding, type FuzzTarget, type Verdict, withoutNumbers } from './target.js'

/** Reading an input takes microseconds; what takes this long again and again is a lever for an attacker. */
const MAXIMUM_INPUT_MS = 200
/** A busy machine stops anything for a while: so it is tried again, and then by the processor's time. */
const SLOW_TRIES = 5
const MAXIMUM_FINDINGS = 20

export interface FuzzTerms {
  readonly seed: number
  readonly clock: Clock
  readonly milliseconds: number
  /** Told of every input before it is read, so that one that never ends is known. */
  readonly onInput?: (input: Uint8Array) => void
}

export interface Finding {
  readonly sentence: string
  readonly input: Uint8Array
}

export interface TargetResult {
  readonly target: string
  readonly seed: number
  readonly inputs: number
  readonly seconds: number
  readonly accepted: number
  /** How often by code. */
  readonly refused: Readonly<Record<string, number>>
  /** Different things that the reader said. */
  readonly signals: number
  readonly slowestMs: number
  readonly findings: readonly Finding[]
}

export async function runTarget(target: FuzzTarget, terms: FuzzTerms): Promise<TargetResult> {
  const run = new FuzzRun(target, terms)
  try {
    await run.until(terms.clock.bootNs() + BigInt(Math.round(terms.milliseconds * 1e6)))
    return run.result()
  } finally {
    await target.close?.()
  }
}

/** What is wrong with one input, or null: for a kept case that is replayed. */
export async function brokenPromise(target: FuzzTarget, input: Uint8Array): Promise<string | null> {
  try {
    await target.check(input)
    return null
  } catch (error) {
    return kindOf(error)
  }
}

class FuzzRun {
  readonly #target: FuzzTarget
  readonly #terms: FuzzTerms
  readonly #random: Random
  readonly #pool: InputPool
  readonly #words = new Map<string, number>()
  readonly #findings = new Map<string, Finding>()
  readonly #startedBootNs: bigint
  #inputs = 0
  #slowestMs = 0

  constructor(target: FuzzTarget, terms: FuzzTerms) {
    this.#target = target
    this.#terms = terms
    this.#random = new Random(terms.seed)
    this.#pool = new InputPool(target.seeds())
    this.#startedBootNs = terms.clock.bootNs()
  }

  /** The seeds as they are, then changed ones. */
  async until(endBootNs: bigint): Promise<void> {
    for (const seed of this.#target.seeds()) await this.#try(seed)
    while (this.#terms.clock.bootNs() < endBootNs && this.#findings.size < MAXIMUM_FINDINGS) {
      const base = this.#pool.pick(this.#random)
      const input = this.#target.mutate(base, this.#pool.pick(this.#random), this.#random)
      if (input.length <= this.#target.maximumInputBytes) await this.#try(input)
    }
  }

  result(): TargetResult {
    const { accepted = 0, ...refused } = Object.fromEntries(this.#words)
    return {
      target: this.#target.name,
      seed: this.#terms.seed,
      inputs: this.#inputs,
      seconds: Number(this.#terms.clock.bootNs() - this.#startedBootNs) / 1e9,
      accepted,
      refused,
      signals: this.#pool.signals,
      slowestMs: this.#slowestMs,
      findings: [...this.#findings.values()],
    }
  }

  async #try(input: Uint8Array): Promise<void> {
    this.#inputs++
    this.#terms.onInput?.(input)
    try {
      const { verdict, ms } = await this.#timed(input)
      this.#words.set(verdict.word, (this.#words.get(verdict.word) ?? 0) + 1)
      this.#pool.note(input, verdict.signal)
      if (ms > this.#slowestMs) await this.#lookAtSlow(input, ms)
    } catch (error) {
      await this.#found(kindOf(error), input)
    }
  }

  async #timed(input: Uint8Array): Promise<{ verdict: Verdict; ms: number }> {
    const before = this.#terms.clock.bootNs()
    const answer = this.#target.check(input)
    // Most targets answer at once: a turn of the loop for each would cost more than the reading.
    const verdict = answer instanceof Promise ? await answer : answer
    return { verdict, ms: Number(this.#terms.clock.bootNs() - before) / 1e6 }
  }

  async #lookAtSlow(input: Uint8Array, firstMs: number): Promise<void> {
    let ms = firstMs
    for (let tries = 1; tries < SLOW_TRIES && ms > this.#slowestMs; tries++) {
      const before = process.cpuUsage()
      const again = (await this.#timed(input)).ms
      const { user, system } = process.cpuUsage(before)
      ms = Math.min(ms, again, (user + system) / 1_000)
    }
    this.#slowestMs = Math.max(ms, this.#slowestMs)
    if (ms > MAXIMUM_INPUT_MS)
      throw new FuzzFinding(`an input took longer than ${MAXIMUM_INPUT_MS} ms, every time`)
  }

  async #found(sentence: string, input: Uint8Array): Promise<void> {
    if (this.#findings.has(sentence)) return
    const isBroken = async (smaller: Uint8Array): Promise<boolean> => {
      this.#terms.onInput?.(smaller)
      return (await brokenPromise(this.#target, smaller)) === sentence
    }
    this.#findings.set(sentence, { sentence, input: await shrink(input, isBroken) })
  }
}

function kindOf(error: unknown): string {
  if (!(error instanceof Error)) return 'something that is no error was thrown'
  return withoutNumbers(error instanceof FuzzFinding ? error.message : `${error.name}: ${error.message}`)
}
