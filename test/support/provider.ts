// Owns a loopback HTTPS provider that counts hits and can misbehave: it answers each complete request
// with whatever bytes, pauses or resets a test wants. Real TCP, real TLS, its own CA, port 0.
import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { createServer, type Server, type TlsOptions, type TLSSocket } from 'node:tls'
import { testAuthority, testLeaf } from './certificates.js'

export interface ReceivedRequest {
  /** Head with its final empty line, as received. */
  readonly head: string
  readonly body: Buffer
  /** First line: method, target, version. */
  readonly method: string
  readonly target: string
  header(name: string): string | undefined
}

export interface ProviderExchange {
  readonly request: ReceivedRequest
  readonly socket: TLSSocket
  /** Number of this request since the provider started, from 1. */
  readonly hit: number
  /** Ends the connection with a TCP reset. */
  readonly reset: () => void
}

/** Acts on one complete request. The socket stays open unless it ends it. */
export type ProviderBehaviour = (exchange: ProviderExchange) => void | Promise<void>

export interface TestProvider {
  readonly host: string
  readonly port: number
  readonly address: string
  readonly caPem: string
  /** Complete requests received. */
  readonly hits: number
  /** TCP connections accepted. */
  readonly connections: number
  readonly requests: readonly ReceivedRequest[]
  readonly sockets: readonly TLSSocket[]
  url(path: string): string
  /** The entry that makes a broker reach it. */
  localProvider(): { host: string; port: number; address: string; caPem: string }
  behave(behaviour: ProviderBehaviour): void
  close(): Promise<void>
}

export interface ProviderOptions {
  readonly host?: string
  readonly address?: string
  readonly port?: number
  readonly behaviour?: ProviderBehaviour
  /** Acts as soon as TLS stands, before any request. */
  readonly onConnection?: (socket: TLSSocket) => void
  readonly tls?: TlsOptions
}

/** Answers 200 with a body. */
export function answer(socket: Socket, body: string | Uint8Array, headers: readonly string[] = []): void {
  const bytes = Buffer.from(body)
  const head = [
    'HTTP/1.1 200 OK',
    'Content-Type: text/plain',
    `Content-Length: ${bytes.length}`,
    ...headers,
    '',
    '',
  ]
  socket.write(Buffer.concat([Buffer.from(head.join('\r\n'), 'latin1'), bytes]))
}

/** Starts a provider. The default behaviour answers 200 `ok`. */
export async function startProvider(options: ProviderOptions = {}): Promise<TestProvider> {
  const provider = new LoopbackProvider(options)
  await provider.listen()
  return provider
}

class LoopbackProvider implements TestProvider {
  readonly host: string
  readonly address: string
  readonly caPem = testAuthority().certPem
  readonly requests: ReceivedRequest[] = []
  readonly sockets: TLSSocket[] = []
  connections = 0
  port = 0
  readonly #server: Server
  readonly #raw = new Set<Socket>()
  readonly #requestedPort: number
  #behaviour: ProviderBehaviour

  constructor(options: ProviderOptions) {
    this.host = options.host ?? 'provider.test'
    this.address = options.address ?? '127.0.0.1'
    this.#requestedPort = options.port ?? 0
    this.#behaviour = options.behaviour ?? (({ socket }) => answer(socket, 'ok'))
    const { certPem, keyPem } = testLeaf([`${this.host.match(/^[0-9.]+$|:/) ? 'IP' : 'DNS'}:${this.host}`])
    this.#server = createServer(
      { cert: certPem, key: keyPem, ALPNProtocols: ['http/1.1'], ...options.tls },
      socket => this.#serve(socket, options.onConnection),
    )
    this.#server.on('connection', (socket: Socket) => this.#count(socket))
    this.#server.on('tlsClientError', () => undefined)
  }

  get hits(): number {
    return this.requests.length
  }

  async listen(): Promise<void> {
    this.#server.listen(this.#requestedPort, this.address)
    await once(this.#server, 'listening')
    this.port = (this.#server.address() as AddressInfo).port
  }

  url(path: string): string {
    return `https://${this.host}:${this.port}${path}`
  }

  localProvider(): { host: string; port: number; address: string; caPem: string } {
    return { host: this.host, port: this.port, address: this.address, caPem: this.caPem }
  }

  behave(behaviour: ProviderBehaviour): void {
    this.#behaviour = behaviour
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    for (const socket of this.#raw) socket.destroy()
    await closed
  }

  #count(socket: Socket): void {
    this.connections++
    this.#raw.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => this.#raw.delete(socket))
  }

  // A TLSSocket cannot reset; the TCP socket beneath it can.
  #reset(socket: TLSSocket): void {
    for (const raw of this.#raw) if (raw.remotePort === socket.remotePort) raw.resetAndDestroy()
  }

  #serve(socket: TLSSocket, onConnection: ProviderOptions['onConnection']): void {
    this.sockets.push(socket)
    socket.on('error', () => undefined)
    onConnection?.(socket)
    let received = Buffer.alloc(0)
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk])
      const request = completeRequest(received)
      if (request === undefined) return
      received = Buffer.alloc(0)
      this.requests.push(request)
      void this.#behaviour({ request, socket, hit: this.requests.length, reset: () => this.#reset(socket) })
    })
  }
}

function completeRequest(bytes: Buffer): ReceivedRequest | undefined {
  const end = bytes.indexOf('\r\n\r\n')
  if (end === -1) return undefined
  const head = bytes.toString('latin1', 0, end + 4)
  const lines = head.split('\r\n')
  const header = (name: string): string | undefined =>
    lines.find(line => line.toLowerCase().startsWith(`${name.toLowerCase()}: `))?.slice(name.length + 2)
  const body = bytes.subarray(end + 4)
  if (body.length < Number(header('content-length') ?? 0)) return undefined
  const [method = '', target = ''] = (lines[0] ?? '').split(' ')
  return { head, body, method, target, header }
}
