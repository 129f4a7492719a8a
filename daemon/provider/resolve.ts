// Owns the one lookup of a provider's host. Every address must be public or the whole answer is refused:
// a set that mixes in a private address is how rebinding gets past a check. The checked addresses are
// what is connected to; nothing resolves again.
// Source: broker wire §14; getaddrinfo(3), which has no timeout and cannot be cancelled.

import { lookup } from 'node:dns/promises'
import { BrokerError } from '../../protocol/errors.js'
import { MAXIMUM_RESOLVED_ADDRESSES } from '../../protocol/limits.js'
import { canonicalAddress, restrictionOf } from './addresses.js'
import { untilAborted } from './budget.js'
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
   * @throws BrokerError `upstream` when there is no usable answer, `authorization_denied` when any
   *   address is not public; nothing was connected to.
   */
  async resolve(host: string, signal: AbortSignal): Promise<readonly string[]> {
    const answer = await untilAborted(this.#join(host), signal)
    if (answer.length === 0 || answer.length > MAXIMUM_RESOLVED_ADDRESSES) {
      throw new BrokerError(
        'upstream',
        `resolution of ${host} refused: expected 1 to ${MAXIMUM_RESOLVED_ADDRESSES} addresses, got ${answer.length}`,
      )
    }
    return [...new Set(answer.map(address => admitPublic(host, address)))]
  }

  #join(host: string): Promise<readonly string[]> {
    const running = this.#pending.get(host)
    if (running !== undefined) return running
    if (this.#pending.size >= MAXIMUM_PENDING_LOOKUPS) {
      return Promise.reject(new BrokerError('upstream', 'too many lookups hang: check the name servers'))
    }
    const started = this.#start(host)
    this.#pending.set(host, started)
    return started
  }

  async #start(host: string): Promise<readonly string[]> {
    try {
      return await this.#lookup(host)
    } catch (cause) {
      throw new BrokerError(
        'upstream',
        `resolution of ${host} failed (${systemErrorCode(cause) ?? 'no code'}): check the name servers`,
        {
          cause,
        },
      )
    } finally {
      this.#pending.delete(host)
    }
  }
}

function admitPublic(host: string, address: string): string {
  const restriction = restrictionOf(address)
  const canonical = canonicalAddress(address)
  if (restriction === null && canonical !== null) return canonical
  throw new BrokerError(
    'authorization_denied',
    `resolution of ${host} refused: expected only public addresses, got one that is ${restriction ?? 'malformed'}`,
  )
}
