// Owns what the kernel tells a service manager of itself: how much waits to settle, and the proof that it serves.
// Must never: make a missing broker a reason not to serve, or name an operation: everybody may read a status.
// Source: sd_notify(3) STATUS and WATCHDOG.
import { BrokerError } from '../../protocol/errors.js'
import type { Listener } from '../../system/listener.js'
import type { SupervisedDaemon } from '../../system/supervision.js'
import type { KernelContext } from '../kernel-context.js'
import type { Settlement } from '../settling/settlement.js'

export class SupervisedKernel implements SupervisedDaemon {
  readonly #context: KernelContext
  readonly #settlement: Settlement
  readonly #listeners: readonly Listener[]

  constructor(context: KernelContext, settlement: Settlement, listeners: readonly Listener[]) {
    this.#context = context
    this.#settlement = settlement
    this.#listeners = listeners
  }

  status(): string {
    return `serving; waiting to settle: ${this.#settlement.waiting}`
  }

  async assertServing(): Promise<void> {
    const { outstanding, store } = this.#context
    await store.countByState()
    if (outstanding.isStopping || this.#listeners.every(listener => listener.isListening)) return
    throw new BrokerError(
      'invariant',
      'kernel refused: expected its sockets to listen, got one that does not',
    )
  }
}
