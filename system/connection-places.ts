// Owns: how many connections stand at once, in all, of one uid and of one connecting process; who makes room when a
// limit is reached; and the one place that is kept for administration.
// Must never: let a connection that has said nothing complete stand in the way of one that may, or let one uid or
// one process reach the places of another.
// Source: unix(7) SO_PEERCRED for who a connector is; its pid only counts here, it decides nothing.
import { type Clock, NS_PER_MS } from '../protocol/clock.js'
import {
  DEFAULT_IPC_DEADLINE_MS,
  MAXIMUM_CONNECTIONS,
  MAXIMUM_CONNECTIONS_PER_CONNECTOR,
  MAXIMUM_CONNECTIONS_PER_UID,
} from '../protocol/limits.js'
import type { PeerIdentity } from './peer.js'

export interface PlaceLimits {
  readonly maximumConnections?: number
  readonly maximumConnectionsPerUid?: number
  readonly maximumConnectionsPerConnector?: number
  /** Uids for whom one place more is kept; root and the daemon's own unless said. */
  readonly administratorUids?: readonly number[]
}

/** What may be asked to make room. */
export interface Guest {
  readonly acceptedBootNs: bigint
  /** Whether anything complete was heard from it. */
  readonly wasHeard: boolean
  closeNow(): void
}

export type Full = 'capacity' | 'connector_capacity' | 'uid_capacity'
type Connector = Pick<PeerIdentity, 'pid' | 'uid'>
/** `kept`: the one that is kept for administration. */
type Kind = 'kept' | 'ordinary'

interface Taken {
  readonly guest: Guest
  readonly peer: Connector
  readonly kind: Kind
}

interface Scope {
  readonly full: Full
  readonly limit: number
  has(peer: Connector): boolean
}

export class ConnectionPlaces {
  readonly #clock: Clock
  readonly #limits: PlaceLimits
  readonly #administratorUids: readonly number[]
  readonly #onDropped: (peer: Connector) => void
  /** In the order in which they came. */
  readonly #taken = new Map<Guest, Taken>()

  /** @param onDropped told of each connection that made room. */
  constructor(clock: Clock, limits: PlaceLimits, onDropped: (peer: Connector) => void = () => {}) {
    this.#clock = clock
    this.#limits = limits
    this.#administratorUids = limits.administratorUids ?? [0, process.geteuid?.() ?? 0]
    this.#onDropped = onDropped
  }

  get size(): number {
    return this.#taken.size
  }

  /** Every connection that stands. */
  guests(): Iterable<Guest> {
    return [...this.#taken.keys()]
  }

  /** Finds a place for whoever was admitted, dropping the oldest unheard connection where a limit is reached. */
  find(peer: Connector): Kind | Full {
    for (const scope of this.#scopesOf(peer)) {
      if (this.#makeRoomIn(scope)) continue
      return this.#mayTakeKept(peer) ? 'kept' : scope.full
    }
    return 'ordinary'
  }

  take(guest: Guest, peer: Connector, kind: Kind): void {
    this.#taken.set(guest, { guest, peer, kind })
  }

  leave(guest: Guest): void {
    this.#taken.delete(guest)
  }

  #scopesOf({ pid, uid }: Connector): readonly Scope[] {
    const { maximumConnections, maximumConnectionsPerConnector, maximumConnectionsPerUid } = this.#limits
    const perConnector = maximumConnectionsPerConnector ?? MAXIMUM_CONNECTIONS_PER_CONNECTOR
    const perUid = maximumConnectionsPerUid ?? MAXIMUM_CONNECTIONS_PER_UID
    return [
      { full: 'connector_capacity', limit: perConnector, has: peer => peer.pid === pid && peer.uid === uid },
      { full: 'uid_capacity', limit: perUid, has: peer => peer.uid === uid },
      { full: 'capacity', limit: maximumConnections ?? MAXIMUM_CONNECTIONS, has: () => true },
    ]
  }

  /** @returns whether there is room within the scope now. */
  #makeRoomIn(scope: Scope): boolean {
    const within = this.#ordinary().filter(({ peer }) => scope.has(peer))
    if (within.length < scope.limit) return true
    const unheard = within.filter(({ guest }) => !guest.wasHeard)
    const greediest = scope.full === 'capacity' ? greediestUid(unheard) : undefined
    const oldest = unheard.find(({ peer }) => greediest === undefined || peer.uid === greediest)
    if (oldest === undefined) return false
    this.#drop(oldest)
    return true
  }

  /**
   * An administrator is known by uid alone here; what it may do is decided by its signature. Where everybody has that
   * uid, the place is kept for a process that has no other connection, and for one command's time.
   */
  #mayTakeKept(peer: Connector): boolean {
    if (!this.#administratorUids.includes(peer.uid)) return false
    const all = [...this.#taken.values()]
    if (all.some(taken => taken.peer.pid === peer.pid)) return false
    const holder = all.find(({ kind }) => kind === 'kept')
    if (holder === undefined) return true
    const heldMs = Number((this.#clock.bootNs() - holder.guest.acceptedBootNs) / NS_PER_MS)
    if (holder.guest.wasHeard && heldMs < DEFAULT_IPC_DEADLINE_MS) return false
    this.#drop(holder)
    return true
  }

  #drop({ guest, peer }: Taken): void {
    this.#taken.delete(guest)
    guest.closeNow()
    this.#onDropped(peer)
  }

  #ordinary(): Taken[] {
    return [...this.#taken.values()].filter(({ kind }) => kind === 'ordinary')
  }
}

/** Whose unheard connections are the most: others do not make room for them. */
function greediestUid(unheard: readonly Taken[]): number | undefined {
  const counts = new Map<number, number>()
  for (const { peer } of unheard) counts.set(peer.uid, (counts.get(peer.uid) ?? 0) + 1)
  const [most] = [...counts].sort((left, right) => right[1] - left[1])
  return most?.[0]
}
