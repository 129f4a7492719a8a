// Owns: the end of a serving kernel: nothing new is taken up, what is being asked is answered, then sockets, settling
// and store are given back in this order.
// Must never: wait without bound, or close the store while something that counts on it is answered, unless hurried.
// Source: systemd.service(5) TimeoutStopSec: every operation rests on commits, so an end in between loses only answers.
import { DEFAULT_IPC_DEADLINE_MS } from '../../protocol/limits.js'
import type { Listener } from '../../system/listener.js'
import { faultFields } from '../fault-fields.js'
import type { KernelContext } from '../kernel-context.js'
import type { Settlement } from '../settling/settlement.js'

/** A settlement asks the broker at most so often in a row, each under the deadline of one request. */
const QUESTIONS_OF_A_SETTLEMENT = 3
const SETTLEMENT_MS = QUESTIONS_OF_A_SETTLEMENT * DEFAULT_IPC_DEADLINE_MS

/** The longest that an end takes. */
export const KERNEL_CLOSES_WITHIN_MS = DEFAULT_IPC_DEADLINE_MS + SETTLEMENT_MS

export class KernelEnd {
  readonly listeners: Listener[] = []
  readonly #context: KernelContext
  readonly #settlement: Settlement
  #ended: Promise<void> | undefined

  constructor(context: KernelContext, settlement: Settlement) {
    this.#context = context
    this.#settlement = settlement
  }

  /** Safe to repeat. */
  run(): Promise<void> {
    return (this.#ended ??= this.#run())
  }

  /** Waits for nobody: who is being asked for hears no answer and reads the record later. */
  hurry(): void {
    this.#context.outstanding.hurry()
  }

  /** What was decided since the last checkpoint is covered too; an end that cannot write it is still an end. */
  async #seal(): Promise<void> {
    const { log, store } = this.#context
    try {
      await store.receipts.seal()
    } catch (error) {
      log({ level: 'warn', event: 'log_not_sealed', ...faultFields(error) })
    }
  }

  async #run(): Promise<void> {
    const { clock, outstanding, store } = this.#context
    await outstanding.stop(clock, DEFAULT_IPC_DEADLINE_MS)
    await Promise.all(this.listeners.map(listener => listener.close()))
    await outstanding.within(this.#settlement.close(), clock, SETTLEMENT_MS)
    await this.#seal()
    await store.close()
  }
}
