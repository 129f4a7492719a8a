// Owns: keeping a service manager informed while a daemon serves: its status whenever that changes, and a sign of life
// as long as the daemon proves that it serves.
// Must never: say alive from anything but the loop that serves, or without having used what serving needs.
// Source: sd_notify(3) STATUS, WATCHDOG; sd_watchdog_enabled(3): at half of the interval or more often.
import type { ServiceManager } from './notify.js'
import type { ServiceEnvironment } from './service-environment.js'

const STATUS_MS = 500
/** Two may be lost or late before the third is missed. */
const SIGNS_AN_INTERVAL = 3

export interface SupervisedDaemon {
  /** One line, without anything of a request. */
  status(): string
  /** Uses what serving needs, the store first of all; rejects or never settles when it does not serve. */
  assertServing(): Promise<void>
}

export class Supervision {
  readonly #manager: ServiceManager
  readonly #daemon: SupervisedDaemon
  readonly #onFault: (error: unknown) => void
  readonly #timers: NodeJS.Timeout[] = []
  #lastStatus: string
  #isProbing = false

  /** Says ready. @param onFault is told why a sign of life was withheld. */
  constructor(
    manager: ServiceManager,
    daemon: SupervisedDaemon,
    environment: Pick<ServiceEnvironment, 'watchdogMs'>,
    onFault: (error: unknown) => void,
  ) {
    this.#manager = manager
    this.#daemon = daemon
    this.#onFault = onFault
    this.#lastStatus = daemon.status()
    manager.ready(this.#lastStatus)
    if (!manager.isPresent) return
    this.#every(STATUS_MS, () => this.#tellStatus())
    const { watchdogMs } = environment
    if (watchdogMs !== null) this.#every(watchdogMs / SIGNS_AN_INTERVAL, () => void this.#probe())
  }

  /** Says that it stops; signs of life go on until the process ends. */
  stopping(status: string, atMostMs: number): void {
    this.#manager.stopping(status, atMostMs)
    this.#lastStatus = status
    clearInterval(this.#timers[0])
  }

  #every(milliseconds: number, act: () => void): void {
    this.#timers.push(setInterval(act, milliseconds).unref())
  }

  #tellStatus(): void {
    const status = this.#daemon.status()
    if (status === this.#lastStatus) return
    this.#lastStatus = status
    this.#manager.status(status)
  }

  async #probe(): Promise<void> {
    if (this.#isProbing) return
    this.#isProbing = true
    try {
      await this.#daemon.assertServing()
      this.#manager.alive()
    } catch (error) {
      this.#onFault(error)
    } finally {
      this.#isProbing = false
    }
  }
}
