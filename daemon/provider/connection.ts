// Owns one provider connection: opened ahead, held silent, used for one request, then gone. It is alive
// only while the provider has said and ended nothing and nothing was written: a provider that spoke
// first could have its words read as the answer. Must never reconnect: a replacement is another object.
// Source: broker wire §14.

import type { TLSSocket } from 'node:tls'
import type { Clock } from '../../protocol/clock.js'
import { BrokerError } from '../../protocol/errors.js'
import { OpeningBudget } from './budget.js'
import { establish } from './establish.js'
import type { PublicResolver } from './resolve.js'
import type { ProviderRoute } from './route.js'
import { systemErrorCode } from './system-error.js'

export interface OpeningTerms {
  readonly route: ProviderRoute
  readonly resolver: PublicResolver
  readonly clock: Clock
  /** Covers lookup, TCP and TLS together. */
  readonly deadlineBootNs: bigint
  /** Already checked addresses of the same route, when a dead connection is replaced. */
  readonly addresses?: readonly string[] | undefined
}

/** What a caller of `send` hears. After `closed` nothing more comes. */
export interface ExchangeSink {
  /** The request left this process: its buffer is no longer needed. */
  written(): void
  received(chunk: Uint8Array): void
  /** The provider sent its end of stream. */
  ended(): void
  /** Both ways are closed; the code is Node's when an error closed them. */
  closed(errorCode: string | null): void
}

/** Longest try of one address while others are left: a black hole costs seconds, not the deadline. */
const ADDRESS_TRY_CEILING_MS = 3_000

export class ProviderConnection {
  /** Settles when TLS is verified; rejects with a BrokerError, nothing sent. */
  readonly ready: Promise<void>
  readonly #budget: OpeningBudget
  #addresses: readonly string[] | undefined
  #socket: TLSSocket | null = null
  #sink: ExchangeSink | null = null
  #dead = false

  constructor(terms: OpeningTerms) {
    this.#budget = new OpeningBudget(terms.clock, terms.deadlineBootNs)
    this.#addresses = terms.addresses
    this.ready = this.#open(terms)
    // Dropped before anyone waits for it, a refusal has no listener.
    this.ready.catch(() => undefined)
  }

  /** The checked addresses, once they are known. */
  get addresses(): readonly string[] | undefined {
    return this.#addresses
  }

  /** The address that is connected to, for the attempt's record. */
  get address(): string | null {
    return this.#socket?.remoteAddress ?? null
  }

  /** Whether it carries, or carried, its one request. */
  get used(): boolean {
    return this.#sink !== null
  }

  /** Whether a request may be written now. Synchronous, so that commit and write can follow in one run. */
  isAlive(): boolean {
    const socket = this.#socket
    return socket !== null && this.#sink === null && !this.#dead && socket.writable && !socket.destroyed
  }

  /**
   * Writes the one request of this connection.
   * @throws BrokerError `upstream` when it is not alive: nothing was written.
   */
  send(request: Uint8Array, sink: ExchangeSink): void {
    const socket = this.#socket
    if (socket === null || !this.isAlive()) {
      throw new BrokerError('upstream', 'the provider connection is not alive: nothing was sent')
    }
    this.#sink = sink
    // One buffer in one write: TLS encrypts it in place, without a copy that could not be wiped.
    socket.write(request, () => sink.written())
  }

  /** Destroys the connection, opening or open. */
  drop(): void {
    this.#dead = true
    this.#budget.cancel(new BrokerError('upstream', 'the provider connection was dropped: nothing was sent'))
    this.#socket?.destroy()
  }

  /** After its answer was read: dead at once, destroyed in a later turn, so that nobody waits for its farewell. */
  retire(): void {
    this.#dead = true
    setImmediate(() => this.drop())
  }

  async #open(terms: OpeningTerms): Promise<void> {
    try {
      this.#addresses ??= await this.#resolve(terms)
      this.#adopt(await this.#tryInOrder(this.#addresses, terms.route))
    } finally {
      this.#budget.end()
    }
  }

  async #resolve({ route, resolver }: OpeningTerms): Promise<readonly string[]> {
    if (route.local !== null) return [route.local.address]
    return resolver.resolve(route.host, this.#budget.signal)
  }

  async #tryInOrder(addresses: readonly string[], route: ProviderRoute): Promise<TLSSocket> {
    let refusal: unknown
    for (const [index, address] of addresses.entries()) {
      const attempt = this.#budget.share(addresses.length - index, ADDRESS_TRY_CEILING_MS)
      try {
        return await establish(address, route, attempt.signal)
      } catch (error) {
        refusal = error
        if (this.#budget.signal.aborted) break
      } finally {
        attempt.end()
      }
    }
    throw refusal
  }

  #adopt(socket: TLSSocket): void {
    this.#socket = socket
    // Dropped in the very turn in which the handshake ended: nobody will use it.
    if (this.#dead) socket.destroy()
    let errorCode: string | null = null
    socket.on('error', error => {
      errorCode = systemErrorCode(error) ?? 'unknown'
    })
    socket.on('end', () => (this.#sink === null ? this.drop() : this.#sink.ended()))
    socket.on('close', () => {
      this.#dead = true
      this.#sink?.closed(errorCode)
    })
    socket.on('data', (chunk: Uint8Array) => (this.#sink === null ? this.drop() : this.#sink.received(chunk)))
  }
}
