// Owns: the server that accepts on a listening socket, and how many it accepts in one turn of the event loop.
// Must never: lose the listening socket, or leave it without a server for longer than a turn. What waits to be
// accepted meanwhile waits in the kernel.
// Source: libuv accepts in one run until nobody waits; whoever connects as quickly as that would keep the whole loop,
// and nobody else, not even an operator, would be read. Only closing the handle ends that run.
import { createServer, type Server, type Socket } from 'node:net'
import { closeDescriptor, duplicateDescriptor } from '../native/index.js'
import { MAXIMUM_ACCEPTS_PER_TURN } from '../protocol/limits.js'
import { descriptorOf } from './socket-descriptor.js'

const FIRST_FREE_DESCRIPTOR = 3
/** When this process has no descriptor left for the moment. */
const RETRY_MS = 10

export interface AcceptHandlers {
  accept(socket: Socket): void
  onFault(error: unknown): void
}

export class AcceptTurns {
  readonly #handlers: AcceptHandlers
  readonly #backlog: number
  /** Servers that accept no more, until their last connection is over. */
  readonly #closings = new Set<Promise<void>>()
  #server: Server
  /** The same listening socket, which stays when a server closes. */
  #listening: number | undefined
  #acceptedInTurn = 0
  #isBetween = false

  constructor(handlers: AcceptHandlers, backlog: number) {
    this.#handlers = handlers
    this.#backlog = backlog
    this.#server = this.#makeServer()
  }

  get isListening(): boolean {
    return this.#isBetween || this.#server.listening
  }

  /** @param bind has the server listen, in that very call. */
  async start<T>(bind: (server: Server, backlog: number) => T): Promise<T> {
    const listening = new Promise<void>(resolve => {
      this.#server.once('listening', resolve)
    })
    const bound = bind(this.#server, this.#backlog)
    const descriptor = descriptorOf(this.#server)
    if (descriptor !== undefined) this.#listening = duplicateDescriptor(descriptor, FIRST_FREE_DESCRIPTOR)
    await listening
    return bound
  }

  /** Accepts nobody any more. Resolves when every connection is over. */
  async close(): Promise<void> {
    if (this.#listening !== undefined) closeDescriptor(this.#listening)
    this.#listening = undefined
    if (!this.#isBetween) this.#retire()
    await Promise.all(this.#closings)
  }

  #makeServer(): Server {
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, socket => this.#accept(socket))
    server.on('error', error => this.#handlers.onFault(error))
    return server
  }

  #accept(socket: Socket): void {
    this.#acceptedInTurn += 1
    if (this.#acceptedInTurn === 1) setImmediate(() => this.#endTurn())
    if (
      this.#acceptedInTurn >= MAXIMUM_ACCEPTS_PER_TURN &&
      !this.#isBetween &&
      this.#listening !== undefined
    ) {
      this.#isBetween = true
      this.#retire()
    }
    this.#handlers.accept(socket)
  }

  #endTurn(): void {
    this.#acceptedInTurn = 0
    if (!this.#isBetween || this.#listening === undefined) return
    try {
      const fd = duplicateDescriptor(this.#listening, FIRST_FREE_DESCRIPTOR)
      this.#server = this.#makeServer()
      this.#server.listen({ fd, backlog: this.#backlog })
      this.#isBetween = false
    } catch (error) {
      this.#handlers.onFault(error)
      setTimeout(() => this.#endTurn(), RETRY_MS)
    }
  }

  #retire(): void {
    const server = this.#server
    const closing = new Promise<void>(resolve => {
      server.close(() => resolve())
    }).finally(() => this.#closings.delete(closing))
    this.#closings.add(closing)
  }
}
