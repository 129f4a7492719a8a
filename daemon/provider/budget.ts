// Owns the time that opening a connection may take: one absolute deadline, a share of it for each
// address, and cancellation, all as one AbortSignal whose reason is the refusal. Must never be extended.

import { type Clock, NS_PER_MS } from '../../protocol/clock.js'
import { BrokerError } from '../../protocol/errors.js'
import { whenPassed } from '../../system/deadline.js'
import { OpeningFault } from './opening-fault.js'

export class OpeningBudget {
  readonly #controller = new AbortController()
  readonly #clock: Clock
  readonly #deadlineBootNs: bigint
  #unwatch: () => void = () => undefined
  #unfollow: () => void = () => undefined

  /** @param parent ends this budget too, with its own reason. */
  constructor(clock: Clock, deadlineBootNs: bigint, parent?: AbortSignal) {
    this.#clock = clock
    this.#deadlineBootNs = deadlineBootNs
    if (parent?.aborted === true) this.cancel(refusalIn(parent))
    this.#unfollow = this.#follow(parent)
    this.#unwatch = whenPassed(clock, deadlineBootNs, () => this.cancel(deadlineRefusal()))
  }

  /** Aborts with a BrokerError as its reason. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Ends the budget before its time; whoever waits under it is refused with the reason. */
  cancel(reason: BrokerError): void {
    this.end()
    this.#controller.abort(reason)
  }

  /** Stops timers and listening; the signal never aborts after this. */
  end(): void {
    this.#unwatch()
    this.#unfollow()
  }

  /**
   * A budget for one of `attempts` equal tries, at most `ceilingMs`; the last try gets all that is left.
   * A black-holed first address must not eat the time of the second.
   */
  share(attempts: number, ceilingMs: number): OpeningBudget {
    if (attempts <= 1) return new OpeningBudget(this.#clock, this.#deadlineBootNs, this.signal)
    const nowBootNs = this.#clock.bootNs()
    const equalNs = (this.#deadlineBootNs - nowBootNs) / BigInt(attempts)
    const ceilingNs = BigInt(ceilingMs) * NS_PER_MS
    const shareNs = equalNs < ceilingNs ? equalNs : ceilingNs
    return new OpeningBudget(this.#clock, nowBootNs + shareNs, this.signal)
  }

  #follow(parent: AbortSignal | undefined): () => void {
    if (parent === undefined) return () => undefined
    const onAbort = (): void => this.cancel(refusalIn(parent))
    parent.addEventListener('abort', onAbort, { once: true })
    return () => parent.removeEventListener('abort', onAbort)
  }
}

/** The refusal that a signal carries. */
export function refusalIn(signal: AbortSignal): BrokerError {
  return signal.reason instanceof BrokerError
    ? signal.reason
    : new BrokerError('upstream', 'opening was cancelled')
}

/** Waits for a promise, at most until the signal aborts; the promise itself may go on unheard. */
export async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  let onAbort: (() => void) | undefined
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => reject(refusalIn(signal))
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
  })
  try {
    return await Promise.race([promise, aborted])
  } finally {
    if (onAbort !== undefined) signal.removeEventListener('abort', onAbort)
  }
}

function deadlineRefusal(): BrokerError {
  return new OpeningFault('unreachable', 'none in time', { isLate: true })
}
