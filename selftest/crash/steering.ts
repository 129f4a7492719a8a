// Owns what a daemon under test obeys: at which cutpoint it ends itself with SIGKILL, and how far its clock is ahead.
// Orders come line by line on standard input, answers go to the log; both are of these programs alone.
// Must never: be part of a daemon that serves an installation.
import { createInterface } from 'node:readline'
import { writeSync } from 'node:fs'
import { systemClock } from '../../native/clock.js'
import { type Clock, NS_PER_MS } from '../../protocol/clock.js'
import type { Cutpoint } from '../../system/cutpoints.js'
import { measured } from '../soak/measured.js'

/** What a daemon under test may be told; each order is answered with its id. */
export interface SteeringOrder {
  readonly id: number
  /** The next moment at which the process ends; null for none. */
  readonly endAt?: string | null
  /** Lets so much time pass on both hands of the clock. */
  readonly passMs?: number
  /** Steps the hand of the wall alone, back too. */
  readonly stepWallMs?: number
  /** Answers with what the process holds. */
  readonly measure?: true
}

/** With what it starts. */
export interface SteeringStart {
  readonly endAt: string | null
  readonly aheadMs: number
}

const STANDARD_ERROR = 2

export class Steering {
  readonly clock: Clock
  #aheadMs: number
  #wallAheadMs = 0
  #endAt: string | null
  readonly #reached = new Set<string>()

  constructor({ aheadMs, endAt }: SteeringStart) {
    this.#aheadMs = aheadMs
    this.#endAt = endAt
    this.clock = {
      bootNs: () => systemClock.bootNs() + BigInt(this.#aheadMs) * NS_PER_MS,
      unixMs: () => systemClock.unixMs() + this.#aheadMs + this.#wallAheadMs,
    }
  }

  /** The argument of the start function. Says each name once. */
  readonly atCutpoint: Cutpoint = name => {
    if (!this.#reached.has(name)) {
      this.#reached.add(name)
      this.#say({ event: 'cutpoint', name })
    }
    if (name === this.#endAt) process.kill(process.pid, 'SIGKILL')
  }

  steer({ endAt, passMs = 0, stepWallMs = 0 }: Omit<SteeringOrder, 'id'>): void {
    if (endAt !== undefined) this.#endAt = endAt
    this.#aheadMs += passMs
    this.#wallAheadMs += stepWallMs
  }

  /** How far the clock is ahead of the machine's. */
  set aheadMs(aheadMs: number) {
    this.#aheadMs = aheadMs
  }

  /** Obeys until standard input ends. */
  obey(): void {
    createInterface({ input: process.stdin }).on('line', line => {
      const order = JSON.parse(line) as SteeringOrder
      this.steer(order)
      this.#say({ event: 'steered', id: order.id, ...(order.measure && { measured: measured() }) })
    })
    process.stdin.unref()
  }

  #say(line: object): void {
    writeSync(STANDARD_ERROR, `${JSON.stringify(line)}\n`)
  }
}
