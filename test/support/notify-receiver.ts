// Owns the service manager's end of a notification socket in a test: a real datagram socket at a path, and what came.
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

interface DatagramSocket {
  bind(path: string): void
  close(): void
}
interface UnixDatagrams {
  createSocket(type: 'unix_dgram', onMessage: (message: Buffer) => void): DatagramSocket
}

const LOOK_MS = 10
const PATIENCE_MS = 45_000

export class NotifyReceiver {
  readonly folder = realpathSync(mkdtempSync(join(tmpdir(), 'chio-notify-')))
  readonly path = join(this.folder, 'notify')
  readonly messages: string[] = []
  readonly #socket: DatagramSocket

  constructor() {
    const datagrams = createRequire(import.meta.url)('unix-dgram') as UnixDatagrams
    this.#socket = datagrams.createSocket('unix_dgram', message => this.messages.push(message.toString()))
    this.#socket.bind(this.path)
  }

  /** The messages that hold a line that matches. */
  holding(line: RegExp): string[] {
    return this.messages.filter(message => message.split('\n').some(text => line.test(text)))
  }

  /** Waits until so many messages hold such a line. @returns the last of them. */
  async heard(line: RegExp, count = 1): Promise<string> {
    const until = Date.now() + PATIENCE_MS
    for (;;) {
      const found = this.holding(line)[count - 1]
      if (found !== undefined) return found
      if (Date.now() > until) throw new Error(`${String(line)} not heard: ${JSON.stringify(this.messages)}`)
      await delay(LOOK_MS)
    }
  }

  close(): void {
    this.#socket.close()
    rmSync(this.folder, { recursive: true, force: true })
  }
}
