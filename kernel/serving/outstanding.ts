// Owns: what is being answered at this moment, so that an ending kernel answers it before it lets go of its sockets.
// Must never: hold up a request, or an end beyond its bound: every answer rests on a commit of its own.
// Source: systemd.service(5) TimeoutStopSec.
import type { Clock } from '../../protocol/clock.js'
import { BrokerError } from '../../protocol/errors.js'
import { deadlineAfter, whenPassed } from '../../system/deadline.js'

export class Outstanding {
  readonly #running = new Set<Promise<unknown>>()
  #hurry: () => void = () => {}
  #isHurried = false
  isStopping = false

  /** Answers one request; an end of the kernel waits for it. */
  async answering<T>(answer: () => Promise<T>): Promise<T> {
    const running = answer()
    this.#running.add(running)
    try {
      return await running
    } finally {
      this.#running.delete(running)
    }
  }

  /** @throws BrokerError `kernel_stopping`: nothing new is taken up. */
  assertServing(): void {
    if (!this.isStopping) return
    throw new BrokerError(
      'kernel_stopping',
      'request refused: expected a kernel that is not stopping, got one that stops; ask it again when it serves again',
      { outcome: 'not_started' },
    )
  }

  /** Takes nothing new up and waits for the rest, at most so long. */
  async stop(clock: Clock, atMostMs: number): Promise<void> {
    this.isStopping = true
    await this.within(Promise.allSettled(this.#running), clock, atMostMs)
  }

  /** Waits for something, at most so long and not beyond a hurry. */
  async within(work: Promise<unknown>, clock: Clock, atMostMs: number): Promise<void> {
    if (this.#isHurried) return
    await new Promise<void>(resolve => {
      const cancel = whenPassed(clock, deadlineAfter(clock, atMostMs), resolve)
      this.#hurry = resolve
      work
        .then(
          () => resolve(),
          () => resolve(),
        )
        .finally(cancel)
    })
  }

  /** Waits for nobody any more. */
  hurry(): void {
    this.#isHurried = true
    this.#hurry()
  }
}
