// Owns the one lookup of a provider's host. Every address must be public or the whole answer is refused:
// a set that mixes in a private address is how rebinding gets past a check. The checked addresses are
// what is connected to; nothing resolves again.
// Source: broker wire §14; getaddrinfo(3), which has no timeout and cannot be cancelled.

import { lookup } from 'node:dns/promises'
import { MAXIMUM_RESOLVED_ADDRESSES } from '../../protocol/limits.js'
import { canonicalAddress, restrictionOf } from './addresses.js'
import { untilAborted } from './budget.js'
import { OpeningFault } from './opening-fault.js'
import { systemErrorCode } from './system-error.js'

/** Answers a host with its numeric addresses, in the order to be tried. */
export type HostLookup = (host: string) => Promise<readonly string[]>

/** Lookups that hang in the thread pool at once: abandoned ones must not pile up without bound. */
const MAXIMUM_PENDING_LOOKUPS = 16

export const systemLookup: HostLookup = async host => {
  const found = await lookup(host, { all: true })
  return found.map(({ address }) => address)
}

export class PublicResolver {
  readonly #lookup: HostLookup
  readonly #pending = new Map<string, Promise<readonly string[]>>()

  constructor(lookupHost: HostLookup = systemLookup) {
    this.#lookup = lookupHost
  }

  /**
   * Resolves a host to 1..16 public addresses.
   * @param signal bounds the wait, not the lookup: that one ends on its own, and is joined until then.
   * @throws OpeningFault `unresolved` when there is no usable answer, `restricted` when any address is not public;
   *   nothing was connected to.
   */
  async resolve(host: string, signal: AbortSignal): Promise<readonly string[]> {
    const answer = await this.#answered(host, signal)
    if (answer.length === 0 || answer.length > MAXIMUM_RESOLVED_ADDRESSES) {
      throw new OpeningFault('unresolved', `${answer.length} addresses for ${host}`)
    }
    return [...new Set(answer.map(address => admitPublic(host, address)))]
  }

  async #answered(host: string, signal: AbortSignal): Promise<readonly string[]> {
    try {
      return await untilAborted(this.#join(host), signal)
    } catch (cause) {
      const isLate = cause instanceof OpeningFault && cause.isLate
      throw isLate
        ? new OpeningFault('unresolved', `no answer for ${host} in time`, { isLate, cause })
        : cause
    }
  }

  #join(host: string): Promise<readonly string[]> {
    const running = this.#pending.get(host)
    if (running !== undefined) return running
    if (this.#pending.size >= MAXIMUM_PENDING_LOOKUPS) {
      const got = `${MAXIMUM_PENDING_LOOKUPS} lookups that hang already`
      return Promise.reject(new OpeningFault('unresolved', got))
    }
    const started = this.#start(host)
    this.#pending.set(host, started)
    return started
  }

  async #start(host: string): Promise<readonly string[]> {
    try {
      return await this.#lookup(host)
    } catch (cause) {
      const code = systemErrorCode(cause) ?? 'a fault without a code'
      throw new OpeningFault('unresolved', `${code} for ${host}`, { cause })
    } finally {
      this.#pending.delete(host)
    }
  }
}

function admitPublic(host: string, address: string): string {
  const restriction = restrictionOf(address)
  const canonical = canonicalAddress(address)
  if (restriction === null && canonical !== null) return canonical
  throw new OpeningFault('restricted', `an address of ${host} that is ${restriction ?? 'malformed'}`)
}
