// Owns what the broker tells a service manager of itself: the state of its slot, whether its kernel answers, and the
// proof that it serves.
// Must never: make a missing kernel a reason not to serve, or say which attempt is held: everybody may read a status.
// Source: sd_notify(3) STATUS and WATCHDOG.
import { BrokerError } from '../protocol/errors.js'
import type { SupervisedDaemon } from '../system/supervision.js'
import { bootNsAfter } from './deadline.js'
import type { BrokerParts } from './parts.js'

/** Between two looks at the kernel, and the bound of one. */
const KERNEL_LOOK_MS = 2_000

type Parts = Pick<BrokerParts, 'authority' | 'clock' | 'desk' | 'isStopping' | 'store'> & {
  readonly isListening: () => boolean
}

export class SupervisedBroker implements SupervisedDaemon {
  readonly #parts: Parts
  #kernel = 'kernel not asked yet'
  #looksAgainBootNs = 0n
  #isLooking = false

  constructor(parts: Parts) {
    this.#parts = parts
  }

  status(): string {
    const { clock, desk } = this.#parts
    if (clock.bootNs() >= this.#looksAgainBootNs && !this.#isLooking) void this.#lookAtKernel()
    return `slot ${desk.status().state}; ${this.#kernel}`
  }

  /** A transaction that changes nothing waits for everything that a commit waits for. */
  async assertServing(): Promise<void> {
    const { isListening, isStopping, store } = this.#parts
    await store.transaction('watchdog', tx => tx.get('SELECT openings FROM store_state'))
    if (!isListening() && !isStopping())
      throw new BrokerError(
        'invariant',
        'broker refused: expected its socket to listen, got one that does not',
      )
  }

  async #lookAtKernel(): Promise<void> {
    const { authority, clock } = this.#parts
    this.#isLooking = true
    try {
      const answers = await authority.answers(bootNsAfter(clock, KERNEL_LOOK_MS))
      this.#kernel = answers ? 'kernel answers' : 'kernel does not answer'
    } finally {
      this.#looksAgainBootNs = bootNsAfter(clock, KERNEL_LOOK_MS)
      this.#isLooking = false
    }
  }
}
