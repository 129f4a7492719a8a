// Owns the HTTP server below the routes: its bounds of time, size and places, and what it answers to what is no HTTP.
// Must never: stop because of a client, keep a place for one that sends nothing complete, or quote what one sent.
// Source: node:http server options; RFC 9112; slow clients hold places by sending little, so time bounds the whole.
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from '../protocol/clock.js'
import { ConnectionPlaces } from '../system/connection-places.js'
import { identifyPeer } from '../system/peer.js'
import { descriptorOf } from '../system/socket-descriptor.js'
import {
  HTTP_TIMES,
  type HttpTimes,
  MAXIMUM_HEAD_BYTES,
  MAXIMUM_HTTP_CONNECTIONS,
  MAXIMUM_HTTP_CONNECTIONS_PER_CONNECTOR,
  MAXIMUM_REQUESTS_PER_CONNECTION,
} from './http-limits.js'
import { type RefusalName, refusalBytes, SIDECAR_REFUSALS } from './refusals.js'

export interface ServerEvents {
  /** A connection got no place, or lost the one that it did not use. */
  onTurnedAway(reason: 'capacity' | 'connector_capacity' | 'dropped' | 'gone' | 'uid_capacity'): void
  /** What came was no request. */
  onMalformed(refusal: RefusalName): void
  onFault(error: unknown): void
}

/** Of whoever connects by TCP nothing is known: they share what one process may have. */
const SOMEBODY = { pid: 0, uid: 0 }

export function boundedServer(
  handler: RequestListener,
  clock: Clock,
  events: ServerEvents,
  times: HttpTimes = HTTP_TIMES,
): Server {
  const server = createServer({
    connectionsCheckingInterval: times.checkMs,
    headersTimeout: times.headMs,
    insecureHTTPParser: false,
    keepAliveTimeout: times.keepAliveMs,
    maxHeaderSize: MAXIMUM_HEAD_BYTES,
    requestTimeout: times.requestMs,
    // Judged with the other fields, so that one without it is answered like the others.
    requireHostHeader: false,
  })
  // By their bytes they are bounded already; cut by number, a field could hide behind two thousand others.
  server.maxHeadersCount = 0
  server.maxRequestsPerSocket = MAXIMUM_REQUESTS_PER_CONNECTION
  server.timeout = times.silenceMs
  const places = new HttpPlaces(clock, events)
  server.on('connection', socket => places.take(socket))
  const serve: RequestListener = (request, response) => {
    places.serving(request, response)
    handler(request, response)
  }
  server.on('request', serve)
  // Without listeners Node says `100 Continue` or `417` by itself, before anybody has judged the head.
  server.on('checkContinue', serve)
  server.on('checkExpectation', serve)
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) =>
    answerMalformed(error, socket, events),
  )
  server.on('error', error => events.onFault(error))
  return server
}

class HttpPlaces {
  readonly #clock: Clock
  readonly #events: ServerEvents
  readonly #places: ConnectionPlaces
  readonly #serving = new WeakMap<Socket, IncomingMessage>()

  constructor(clock: Clock, events: ServerEvents) {
    this.#clock = clock
    this.#events = events
    const limits = {
      administratorUids: [],
      maximumConnections: MAXIMUM_HTTP_CONNECTIONS,
      maximumConnectionsPerConnector: MAXIMUM_HTTP_CONNECTIONS_PER_CONNECTOR,
      maximumConnectionsPerUid: MAXIMUM_HTTP_CONNECTIONS,
    }
    this.#places = new ConnectionPlaces(clock, limits, () => events.onTurnedAway('dropped'))
  }

  take(socket: Socket): void {
    socket.on('error', () => socket.destroy())
    const peer = connectorOf(socket)
    const found = peer === undefined ? 'gone' : this.#places.find(peer)
    if (peer === undefined || (found !== 'ordinary' && found !== 'kept')) {
      socket.destroy()
      this.#events.onTurnedAway(found as Exclude<typeof found, 'kept' | 'ordinary'>)
      return
    }
    const serving = this.#serving
    const guest = {
      acceptedBootNs: this.#clock.bootNs(),
      closeNow: () => socket.destroy(),
      // Whoever has sent all of a request is waiting for us; everybody else can come again.
      get wasHeard() {
        return serving.get(socket)?.complete === true
      },
    }
    this.#places.take(guest, peer, found)
    socket.once('close', () => this.#places.leave(guest))
  }

  serving(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request
    this.#serving.set(socket, request)
    response.once('close', () => {
      if (this.#serving.get(socket) === request) this.#serving.delete(socket)
    })
  }
}

/** Who connected to the Unix socket, for the count of its places; undefined when it is gone already. */
function connectorOf(socket: Socket): { readonly pid: number; readonly uid: number } | undefined {
  if (socket.remoteAddress !== undefined) return SOMEBODY
  const descriptor = descriptorOf(socket)
  if (descriptor === undefined) return undefined
  try {
    const peer = identifyPeer(descriptor)
    peer.close()
    return peer
  } catch {
    // Gone between accept and now.
    return undefined
  }
}

const MALFORMED: Readonly<Record<string, RefusalName>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 'timeout',
  HPE_HEADER_OVERFLOW: 'headersTooLarge',
}

/** What is no HTTP is answered once, with a fixed body, and its connection ends. */
function answerMalformed(error: NodeJS.ErrnoException, socket: Socket, events: ServerEvents): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const name = MALFORMED[error.code ?? ''] ?? 'malformed'
  const body = refusalBytes(name)
  const head = [
    `HTTP/1.1 ${SIDECAR_REFUSALS[name].status} Refused`,
    'cache-control: no-store',
    'connection: close',
    'content-type: application/json',
    `content-length: ${body.length}`,
  ].join('\r\n')
  events.onMalformed(name)
  socket.end(Buffer.concat([Buffer.from(`${head}\r\n\r\n`, 'latin1'), body]), () => socket.destroy())
}
