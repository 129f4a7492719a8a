// Owns the official MCP client's way to a server of ours: its transport over the pipes of a launched run, and what was
// said over it. A host would write the same few lines.
import {
  type JSONRPCMessage,
  ReadBuffer,
  serializeMessage,
  type Transport,
} from '@modelcontextprotocol/client'
import type { LaunchedRun } from '../../host/launched-run.js'

export class LaunchedTransport implements Transport {
  readonly #run: LaunchedRun
  readonly #received = new ReadBuffer()
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void

  constructor(run: LaunchedRun) {
    this.#run = run
  }

  async start(): Promise<void> {
    this.#run.stdout.onChunk(chunk => this.#read(Buffer.from(chunk)))
    void this.#run.stdout.ended.then(() => this.onclose?.())
  }

  async send(message: JSONRPCMessage): Promise<void> {
    this.#run.input.write(serializeMessage(message))
  }

  async close(): Promise<void> {
    this.#run.input.end()
    this.onclose?.()
  }

  #read(chunk: Buffer): void {
    this.#received.append(chunk)
    try {
      for (let message = this.#received.readMessage(); message !== null; ) {
        this.onmessage?.(message)
        message = this.#received.readMessage()
      }
    } catch (error) {
      this.onerror?.(error as Error)
    }
  }
}
