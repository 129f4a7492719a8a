// Owns how Node's own HTTP client reads an answer: over a real Unix stream, from a server that says exactly these
// bytes and ends. Must never be asked in parallel.
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { request, type ClientRequest, type IncomingMessage } from 'node:http'
import { createServer, connect, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Method } from '../../protocol/destination.js'

export interface NodeReading {
  readonly status: number
  /** Names in lower case, values as they came, in their order. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Buffer
}

/** Node bounds the head by a number of its own; ours has to be the smaller one. */
const HEAD_BYTES = 64 * 1024

export class NodeReader {
  readonly #folder = mkdtempSync(join(tmpdir(), 'chio-fuzz-'))
  readonly #path = join(this.#folder, 'sock')
  readonly #server: Server
  #answer: Uint8Array = new Uint8Array(0)

  private constructor() {
    this.#server = createServer({ allowHalfOpen: true }, socket => {
      socket.on('error', () => undefined)
      socket.resume()
      socket.end(this.#answer)
    })
  }

  static async open(): Promise<NodeReader> {
    const reader = new NodeReader()
    reader.#server.listen(reader.#path)
    await once(reader.#server, 'listening')
    return reader
  }

  /** A whole answer, or null where Node refuses it or finds it cut. */
  read(answer: Uint8Array, method: Method): Promise<NodeReading | null> {
    this.#answer = answer
    return new Promise(resolve => {
      const sent = request({
        createConnection: () => connect(this.#path),
        maxHeaderSize: HEAD_BYTES,
        method,
        path: '/',
      })
      sent.maxHeadersCount = 0
      settleWith(sent, resolve)
      sent.end()
    })
  }

  async close(): Promise<void> {
    this.#server.close()
    await once(this.#server, 'close')
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

function settleWith(sent: ClientRequest, resolve: (reading: NodeReading | null) => void): void {
  let isAnswered = false
  sent.on('response', response => {
    isAnswered = true
    collect(response, resolve)
  })
  sent.on('error', () => resolve(null))
  sent.on('close', () => (isAnswered ? undefined : resolve(null)))
  // A switch of protocols is an answer that ours never takes.
  sent.on('upgrade', (_response, socket) => {
    socket.destroy()
    resolve(null)
  })
}

function collect(response: IncomingMessage, resolve: (reading: NodeReading | null) => void): void {
  const pieces: Buffer[] = []
  response.on('data', (piece: Buffer) => pieces.push(piece))
  response.on('error', () => resolve(null))
  response.on('close', () => {
    if (!response.complete) return resolve(null)
    const headers = pairsOf(response.rawHeaders)
    resolve({ status: response.statusCode ?? 0, headers, body: Buffer.concat(pieces) })
  })
}

function pairsOf(flat: readonly string[]): (readonly [string, string])[] {
  const pairs: (readonly [string, string])[] = []
  for (let at = 0; at + 1 < flat.length; at += 2) {
    pairs.push([(flat[at] as string).toLowerCase(), flat[at + 1] as string])
  }
  return pairs
}
