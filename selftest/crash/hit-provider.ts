// Owns a loopback HTTPS provider that counts, by the request's own body, how often each request arrived. A run's
// records are compared with exactly these counts.
// Must never: forget a hit, whatever became of its answer or its connection.
import { once } from 'node:events'
import { createServer, type Server } from 'node:https'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { LocalProvider } from '../../system/installation-plan.js'
import { makeAuthority } from '../certificates.js'

const HOST = 'issues.localhost'
const LARGEST_BODY_BYTES = 1024 * 1024

/** One request that arrived whole. */
export interface Hit {
  readonly body: string
  /** How often this very body arrived by now, this time included. */
  readonly times: number
  /** For whoever answers otherwise: nothing is added to an answer that was begun, or to a connection that was dropped. */
  readonly response: ServerResponse
  /** Ends its connection with a TCP reset. */
  readonly reset: () => void
}

/** Acts after the count and before the answer. What it throws drops the connection. */
export type HitBehaviour = (hit: Hit) => Promise<void> | void

export interface HitProvider {
  readonly url: string
  readonly local: LocalProvider
  /** Whole requests by body. */
  readonly hits: ReadonlyMap<string, number>
  /** All whole requests. */
  readonly total: number
  /** Requests whose head arrived and whose body never came to its end. */
  readonly broken: number
  behave(behaviour: HitBehaviour): void
  close(): Promise<void>
}

/** Starts one on a port of the system's choice. It answers 201 at once until told otherwise. */
export async function startHitProvider(): Promise<HitProvider> {
  const provider = new CountingProvider()
  await provider.listen()
  return provider
}

class CountingProvider implements HitProvider {
  readonly hits = new Map<string, number>()
  broken = 0
  #behaviour: HitBehaviour = () => undefined
  readonly #caPem: string
  readonly #server: Server
  /** A TLS socket cannot reset; the TCP socket beneath it can. */
  readonly #sockets = new Map<number | undefined, Socket>()

  constructor() {
    const authority = makeAuthority()
    const { certPem: cert, keyPem: key } = authority.issue([`DNS:${HOST}`])
    this.#caPem = authority.certPem
    this.#server = createServer({ cert, key }, (request, response) => void this.#serve(request, response))
    this.#server.on('connection', (socket: Socket) => {
      this.#sockets.set(socket.remotePort, socket)
      socket.once('close', () => this.#sockets.delete(socket.remotePort))
    })
  }

  get total(): number {
    return [...this.hits.values()].reduce((sum, times) => sum + times, 0)
  }

  get url(): string {
    return `https://${HOST}:${this.#port}/issues`
  }

  get local(): LocalProvider {
    return { host: HOST, port: this.#port, address: '127.0.0.1', caPem: this.#caPem }
  }

  get #port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  async listen(): Promise<void> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
  }

  behave(behaviour: HitBehaviour): void {
    this.#behaviour = behaviour
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.#server.closeAllConnections()
    await closed
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => undefined)
    const body = await readBody(request)
    if (body === undefined) {
      this.broken += 1
      return
    }
    const times = (this.hits.get(body) ?? 0) + 1
    this.hits.set(body, times)
    try {
      const reset = (): void => void this.#sockets.get(request.socket.remotePort)?.resetAndDestroy()
      await this.#behaviour({ body, times, response, reset })
      if (!response.headersSent && !response.destroyed) answer(response)
    } catch {
      response.destroy()
    }
  }
}

/** @returns undefined when the connection ended before the body did. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  try {
    for await (const chunk of request) {
      bytes += (chunk as Uint8Array).length
      if (bytes > LARGEST_BODY_BYTES) return undefined
      chunks.push(chunk as Uint8Array)
    }
    return Buffer.concat(chunks).toString('utf8')
  } catch {
    return undefined
  }
}

function answer(response: ServerResponse): void {
  const body = '{"state":"open"}'
  response.writeHead(201, { 'content-type': 'application/json', 'content-length': body.length })
  response.end(body)
}
