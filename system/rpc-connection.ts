// Owns: a persistent connection to a daemon with several requests outstanding, answers matched by their id.
// Must never: send a request twice, or hand an answer to another than its asker. A lost connection refuses
// everybody who waits; only the next request connects anew.
// Source: the authority RPC (docs/authority-rpc.md).
import { BrokerError, isBrokerError } from '../protocol/errors.js'
import { type ConnectOptions, connectFramed } from './connect.js'
import { whenPassed } from './deadline.js'
import type { FramedConnection } from './framed-connection.js'

export interface RpcOptions extends Omit<ConnectOptions, 'deadlineBootNs' | 'mode'> {
  readonly maximumFrameBytes: number
  /** Reads the id out of an answer; a throw or an unknown id ends the connection. */
  readonly keyOf: (body: Uint8Array) => string
  /** Called when a lost connection was replaced, before its first request: what was negotiated is asked again. */
  readonly onConnected?: () => void
}

/** Answers that came too late are known and dropped; more than this many and the connection is useless. */
const MAXIMUM_ABANDONED = 256

interface Asker {
  resolve(body: Uint8Array): void
  refuse(error: Error): void
}

export class RpcConnection {
  readonly #options: RpcOptions
  readonly #askers = new Map<string, Asker>()
  readonly #abandoned = new Set<string>()
  #connecting: Promise<FramedConnection> | undefined
  #connection: FramedConnection | undefined
  #closed = false

  constructor(options: RpcOptions) {
    this.#options = options
  }

  /**
   * Asks and waits for the answer with this id, unique among the outstanding ones.
   * @throws BrokerError `deadline_expired`, or the `unavailable` code when the connection is lost or not to be had.
   */
  async request(requestId: string, body: Uint8Array, deadlineBootNs: bigint): Promise<Uint8Array> {
    const connection = await this.#connected(deadlineBootNs)
    if (this.#askers.has(requestId) || this.#abandoned.has(requestId)) {
      throw new TypeError('rpc request: expected an id that is not outstanding, got one that is')
    }
    const answer = this.#expect(requestId, deadlineBootNs)
    connection
      .writeFrame(body, deadlineBootNs)
      .catch(() => this.#refuse(requestId, 'the request could not be written'))
    return answer
  }

  /** Refuses everybody who waits. Safe to repeat. */
  close(): void {
    this.#closed = true
    this.#connection?.closeNow()
  }

  #expect(requestId: string, deadlineBootNs: bigint): Promise<Uint8Array> {
    return new Promise((resolve, refuse) => {
      const cancel = whenPassed(this.#options.clock, deadlineBootNs, () => {
        this.#askers.delete(requestId)
        this.#abandon(requestId)
        refuse(
          new BrokerError(
            'deadline_expired',
            'rpc request refused: expected an answer before its deadline, got none',
            { outcome: 'unknown' },
          ),
        )
      })
      this.#askers.set(requestId, {
        resolve(body) {
          cancel()
          resolve(body)
        },
        refuse(error) {
          cancel()
          refuse(error)
        },
      })
    })
  }

  #abandon(requestId: string): void {
    this.#abandoned.add(requestId)
    if (this.#abandoned.size > MAXIMUM_ABANDONED) this.#connection?.closeNow()
  }

  async #connected(deadlineBootNs: bigint): Promise<FramedConnection> {
    if (this.#closed) throw this.#lost('it was closed')
    if (this.#connection?.ending === undefined && this.#connection !== undefined) return this.#connection
    this.#connecting ??= this.#connect(deadlineBootNs).finally(() => {
      this.#connecting = undefined
    })
    return this.#connecting
  }

  async #connect(deadlineBootNs: bigint): Promise<FramedConnection> {
    const connection = await connectFramed({ ...this.#options, deadlineBootNs, mode: 'stream' })
    if (this.#closed) {
      connection.closeNow()
      throw this.#lost('it was closed')
    }
    this.#abandoned.clear()
    this.#connection = connection
    void this.#receive(connection)
    this.#options.onConnected?.()
    return connection
  }

  async #receive(connection: FramedConnection): Promise<void> {
    const { maximumFrameBytes } = this.#options
    try {
      for (;;) this.#deliver(await connection.readFrame({ maximumFrameBytes, deadlineBootNs: null }))
    } catch (error) {
      connection.closeNow()
      if (this.#connection === connection) this.#connection = undefined
      this.#refuseAll(isBrokerError(error) ? error.code : 'an answer without a readable id')
    }
  }

  #deliver(body: Uint8Array): void {
    const requestId = this.#options.keyOf(body)
    const asker = this.#askers.get(requestId)
    this.#askers.delete(requestId)
    if (asker !== undefined) return asker.resolve(body)
    if (!this.#abandoned.delete(requestId)) throw this.#lost('an answer came that nobody asked for')
  }

  #refuseAll(reason: string): void {
    for (const requestId of this.#askers.keys()) this.#refuse(requestId, reason)
  }

  #refuse(requestId: string, reason: string): void {
    const asker = this.#askers.get(requestId)
    this.#askers.delete(requestId)
    asker?.refuse(this.#lost(reason))
  }

  #lost(reason: string): BrokerError {
    return new BrokerError(
      this.#options.unavailable ?? 'authority_unavailable',
      `rpc at ${this.#options.path} refused: expected the connection to last until the answer, got its end (${reason})`,
      { outcome: 'unknown' },
    )
  }
}
