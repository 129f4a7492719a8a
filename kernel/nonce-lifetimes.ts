// Owns: how long the nonces that this process reserved have lived on the boot clock, which no step of the wall
// clock moves: a wall clock set back must not let a nonce live longer than its signed interval.
// Must never: be the only check. What another process reserved is judged by the wall clock alone.
// Source: "a nonce never lives longer than its signed interval"; clock_gettime(2) CLOCK_BOOTTIME.
import type { Clock } from '../protocol/clock.js'
import { refuseExpiredNonce } from './liveness.js'

const NS_PER_SECOND = 1_000_000_000n

export class NonceLifetimes {
  readonly #clock: Clock
  readonly #ttlNs: bigint
  readonly #endBootNs = new Map<string, bigint>()

  constructor(clock: Clock, ttlSeconds: number) {
    this.#clock = clock
    this.#ttlNs = BigInt(ttlSeconds) * NS_PER_SECOND
  }

  /** Begins the life of an operation's nonce; a second call does not lengthen it. */
  begin(operationId: string): void {
    if (!this.#endBootNs.has(operationId)) {
      this.#endBootNs.set(operationId, this.#clock.bootNs() + this.#ttlNs)
    }
  }

  /** @throws BrokerError `execution_nonce_expired`. */
  assertWithin(operationId: string): void {
    const endBootNs = this.#endBootNs.get(operationId)
    if (endBootNs !== undefined && this.#clock.bootNs() >= endBootNs) refuseExpiredNonce()
  }

  end(operationId: string): void {
    this.#endBootNs.delete(operationId)
  }
}
