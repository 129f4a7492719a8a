// Owns: accepting: who connects is known and judged before a byte is read, and how many may be here at once.
// Must never: stop because of a peer. A fault on one connection ends that connection.
// Source: accept(2); the broker protocol's peer authentication.
import type { Socket } from 'node:net'
import type { Clock } from '../protocol/clock.js'
import { AcceptTurns } from './accept-turns.js'
import { adoptSocket } from './adopted-socket.js'
import { bindSocket, type BoundSocket } from './bound-socket.js'
import { ConnectionPlaces, type Full, type PlaceLimits } from './connection-places.js'
import type { FrameAdmission } from './frame-admission.js'
import { type ConnectionMode, FramedConnection } from './framed-connection.js'
import { identifyPeer, overflowUid, type PeerIdentity } from './peer.js'
import { descriptorOf } from './socket-descriptor.js'

/** Who waits here waits for all before it: as many as one uid may have connected. */
const DEFAULT_BACKLOG = 16

export interface ListenOptions extends PlaceLimits {
  readonly path: string
  readonly socketGid: number | null
  readonly clock: Clock
  readonly mode: ConnectionMode
  readonly admission?: FrameAdmission
  readonly backlog?: number
  /** Bound to the path by a service manager, which keeps its name; without one the path is bound here. */
  readonly activatedDescriptor?: number | undefined
  /** Judges the connector; a false closes the connection without a byte. */
  admit(peer: PeerIdentity): boolean
  /** Serves one connection, which is closed when this settles. A rejection goes to `onFault`. */
  onConnection(connection: FramedConnection, peer: PeerIdentity): Promise<void>
  /** Told of faults that no peer must hear of. */
  onFault(error: unknown): void
  /** Told why a connector was turned away, or that its connection made room before anything complete came. */
  onRefused?(refusal: ConnectionRefusal): void
}

export interface ConnectionRefusal {
  readonly reason: Full | 'dropped' | 'overflow_uid' | 'not_admitted' | 'gone'
  readonly uid: number | null
  readonly pid: number | null
}

/** Binds under the directory's lock and serves. @throws BrokerError `another_instance` or `custody`. */
export async function listen(options: ListenOptions): Promise<Listener> {
  const listener = new Listener(options)
  await listener.start()
  return listener
}

export class Listener {
  readonly #options: ListenOptions
  readonly #accepting: AcceptTurns
  readonly #places: ConnectionPlaces
  #bound: BoundSocket | undefined

  constructor(options: ListenOptions) {
    this.#options = options
    this.#places = new ConnectionPlaces(options.clock, options, ({ pid, uid }) =>
      options.onRefused?.({ reason: 'dropped', uid, pid }),
    )
    this.#accepting = new AcceptTurns(
      { accept: socket => this.#accept(socket), onFault: error => options.onFault(error) },
      options.backlog ?? DEFAULT_BACKLOG,
    )
  }

  get isListening(): boolean {
    return this.#accepting.isListening
  }

  get connections(): number {
    return this.#places.size
  }

  async start(): Promise<void> {
    const { path, socketGid, activatedDescriptor: descriptor } = this.#options
    const owner = { ownerUid: process.geteuid?.() ?? 0, socketGid }
    this.#bound = await this.#accepting.start((server, backlog) =>
      descriptor === undefined
        ? bindSocket(server, path, owner, backlog)
        : adoptSocket(server, { path, descriptor }, owner, backlog),
    )
  }

  /** Stops accepting, closes every connection, and removes its own socket alone. Safe to repeat. */
  async close(): Promise<void> {
    const bound = this.#bound
    if (bound === undefined) return
    this.#bound = undefined
    const closed = this.#accepting.close()
    for (const connection of this.#places.guests()) connection.closeNow()
    bound.release()
    await closed
  }

  #accept(socket: Socket): void {
    socket.on('error', () => socket.destroy())
    const peer = this.#identify(socket)
    const place = this.#placeFor(peer)
    if (peer === undefined || (place !== 'ordinary' && place !== 'kept')) {
      peer?.close()
      socket.destroy()
      const reason = place === 'ordinary' || place === 'kept' ? 'gone' : place
      this.#options.onRefused?.({ reason, uid: peer?.uid ?? null, pid: peer?.pid ?? null })
      return
    }
    const { clock, mode, admission } = this.#options
    const door = admission?.of(peer)
    const connection = new FramedConnection(socket, { clock, mode, ...(door && { admission: door }) })
    this.#places.take(connection, peer, place)
    void this.#serve(connection, peer)
  }

  /** A connector may be gone already; its identity is then not to be had, which is no fault. */
  #identify(socket: Socket): PeerIdentity | undefined {
    const descriptor = descriptorOf(socket)
    if (descriptor === undefined) return undefined
    try {
      return identifyPeer(descriptor)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') this.#options.onFault(error)
      return undefined
    }
  }

  /** Whoever is not admitted takes no place and makes nobody lose one. */
  #placeFor(
    peer: PeerIdentity | undefined,
  ): ReturnType<ConnectionPlaces['find']> | ConnectionRefusal['reason'] {
    if (peer === undefined) return 'gone'
    if (peer.uid === overflowUid()) return 'overflow_uid'
    return this.#isAdmitted(peer) ? this.#places.find(peer) : 'not_admitted'
  }

  #isAdmitted(peer: PeerIdentity): boolean {
    try {
      return this.#options.admit(peer)
    } catch (error) {
      this.#options.onFault(error)
      return false
    }
  }

  async #serve(connection: FramedConnection, peer: PeerIdentity): Promise<void> {
    try {
      await this.#options.onConnection(connection, peer)
    } catch (error) {
      this.#options.onFault(error)
    } finally {
      connection.closeNow()
      peer.close()
      this.#places.leave(connection)
    }
  }
}
