// Owns: the order in which transactions wait for a file that another process holds.
// Must never: try for two waiters in one turn of the event loop, since every try may block it for 50 ms.
// Source: better-sqlite3 waits synchronously (its issues 836, 1275), so waiting is a timer of ours.
import type { Clock } from '../protocol/clock.js'
import { BrokerError } from '../protocol/errors.js'

export type Attempt<T> = { readonly busy: true } | { readonly busy: false; readonly value: T }

/** Between two tries the event loop is free for at least this long. */
const PAUSE_MS = 25

interface Waiter {
  readonly deadlineBootNs: bigint
  /** @returns whether the file was still busy. */
  try(): boolean
  refuse(error: unknown): void
}

export class BusyQueue {
  readonly #clock: Clock
  readonly #waiters: Waiter[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Runs the attempt in the caller's tick when nobody waits, else, and when busy, in order from a timer. */
  submit<T>(attempt: () => Attempt<T>, deadlineBootNs: bigint): Promise<T> {
    return new Promise<T>((resolve, refuse) => {
      const waiter: Waiter = {
        deadlineBootNs,
        try() {
          const outcome = attempt()
          if (!outcome.busy) resolve(outcome.value)
          return outcome.busy
        },
        refuse,
      }
      if (this.#waiters.length > 0 || isStillBusy(waiter)) this.#enqueue(waiter)
    })
  }

  /** Refuses all who wait. */
  close(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    for (const waiter of this.#waiters.splice(0)) waiter.refuse(busy('the store was closed'))
  }

  #enqueue(waiter: Waiter): void {
    this.#waiters.push(waiter)
    this.#timer ??= setTimeout(() => this.#drain(), PAUSE_MS)
  }

  #drain(): void {
    this.#timer = undefined
    this.#refuseExpired()
    for (;;) {
      const head = this.#waiters[0]
      if (head === undefined) return
      if (isStillBusy(head)) break
      this.#waiters.shift()
    }
    this.#timer = setTimeout(() => this.#drain(), PAUSE_MS)
  }

  #refuseExpired(): void {
    const now = this.#clock.bootNs()
    for (const waiter of this.#waiters.splice(0)) {
      if (waiter.deadlineBootNs > now) this.#waiters.push(waiter)
      else waiter.refuse(busy('the waiting budget is over'))
    }
  }
}

function isStillBusy(waiter: Waiter): boolean {
  try {
    return waiter.try()
  } catch (error) {
    waiter.refuse(error)
    return false
  }
}

function busy(reason: string): BrokerError {
  return new BrokerError(
    'storage',
    `transaction refused: expected the store to be free, got it held by another process and ${reason}; find the holder (fuser)`,
    { outcome: 'not_started' },
  )
}
