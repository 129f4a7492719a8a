// Owns the hosts of a run: one that works, and one that is ready for when it dies, so that no round waits for a start.
// Must never: leave a host behind.
import { HostProcess } from './host-process.js'

export class HostPool {
  readonly #state: string
  #idle: Promise<HostProcess>
  #spare: Promise<HostProcess>

  constructor(state: string) {
    this.#state = state
    this.#idle = this.#start()
    this.#spare = this.#start()
  }

  /** The host that works; the same one until it is replaced. */
  take(): Promise<HostProcess> {
    return this.#idle
  }

  /** The host that worked is dead, or must be. */
  async replace(): Promise<void> {
    const dead = await this.#idle
    await dead.kill()
    this.#idle = this.#spare
    this.#spare = this.#start()
  }

  async close(): Promise<void> {
    await Promise.all([this.#idle, this.#spare].map(async host => (await host).kill()))
  }

  #start(): Promise<HostProcess> {
    return new HostProcess(this.#state).ready()
  }
}
