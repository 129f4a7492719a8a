// Owns what the rows of one run share: one installation, opened when the first row needs it and closed at the end.
// A row that stops or fills a daemon opens an installation of its own.
import { type BenchCages, makeCages } from './cages.js'
import { type Installation, openInstallation } from './installation.js'

export class Lab {
  /** Retained attempts of the large side of `growth`. */
  readonly retainedAttempts: number
  #installation: Promise<Installation> | undefined
  #cages: BenchCages | undefined

  constructor(retainedAttempts: number) {
    this.retainedAttempts = retainedAttempts
  }

  installation(): Promise<Installation> {
    return (this.#installation ??= openInstallation())
  }

  cages(): BenchCages {
    return (this.#cages ??= makeCages())
  }

  async close(): Promise<void> {
    this.#cages?.remove()
    const opened = this.#installation
    this.#installation = undefined
    await opened?.then(
      installation => installation.close(),
      () => undefined,
    )
  }
}
