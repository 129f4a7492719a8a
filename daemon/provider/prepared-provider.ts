// Owns the provider connection of one prepared attempt: opened at once, handed out alive just before the
// commit, replaced at most once while nothing is committed. After the commit nobody asks it again, so
// that no code path here can turn one execution into two.

import { NS_PER_MS } from '../../protocol/clock.js'
import { BrokerError, isBrokerError } from '../../protocol/errors.js'
import { turnOfLoop } from '../turn-of-loop.js'
import { OpeningFault } from './opening-fault.js'
import { type OpeningTerms, ProviderConnection } from './connection.js'

export class PreparedProvider {
  readonly #terms: OpeningTerms
  #current: ProviderConnection
  #openingSinceBootNs: bigint | undefined
  #isAwaited = false
  #replaced = false
  #dropped = false

  /** Opens at once; `terms.deadlineBootNs` also bounds a replacement. */
  constructor(terms: OpeningTerms) {
    this.#terms = terms
    this.#current = this.#open(terms)
  }

  /**
   * For how long a connection has been opened that is not there; 0 when one was. A second one counts on from the
   * first only if the first failed while it was awaited.
   */
  get openingMs(): number {
    if (this.#openingSinceBootNs === undefined) return 0
    return Number((this.#terms.clock.bootNs() - this.#openingSinceBootNs) / NS_PER_MS)
  }

  /**
   * Waits for a connection that is alive after what had already arrived was read. The caller asks
   * `isAlive()` once more in the synchronous run of its commit.
   * @throws BrokerError; nothing was sent.
   */
  async alive(): Promise<ProviderConnection> {
    this.#isAwaited = true
    const first = await this.#settled()
    if (first !== undefined) return first
    this.#replace()
    const second = await this.#settled()
    if (second !== undefined) return second
    throw new OpeningFault('unreachable', 'two connections that the provider closed')
  }

  drop(): void {
    this.#dropped = true
    this.#current.drop()
  }

  /** The current connection when alive; undefined when it may be replaced; throws when it may not. */
  async #settled(): Promise<ProviderConnection | undefined> {
    const connection = this.#current
    try {
      await connection.ready
    } catch (error) {
      // A refused address stays refused; only a connection that failed may be tried once more.
      if (this.#replaced || this.#dropped || !isBrokerError(error) || error.code !== 'upstream') throw error
      return undefined
    }
    // Two turns: the first may end inside the poll that is running, the second holds a whole one.
    await turnOfLoop()
    await turnOfLoop()
    return connection.isAlive() ? connection : undefined
  }

  #replace(): void {
    if (this.#dropped || this.#replaced) {
      throw new BrokerError('upstream', 'the provider connection is gone: nothing was sent')
    }
    this.#replaced = true
    const { addresses } = this.#current
    this.#current.drop()
    this.#current = this.#open({ ...this.#terms, addresses })
  }

  #open(terms: OpeningTerms): ProviderConnection {
    this.#openingSinceBootNs ??= terms.clock.bootNs()
    const connection = new ProviderConnection(terms)
    connection.ready.then(
      () => this.#noLongerOpening(),
      () => {
        if (!this.#isAwaited) this.#noLongerOpening()
      },
    )
    return connection
  }

  #noLongerOpening(): void {
    this.#openingSinceBootNs = undefined
  }
}
