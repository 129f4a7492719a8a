// Owns: what this process tells its service manager: ready, how it stands, that it stops, that it is alive. Without a
// manager everything here is nothing.
// Must never: be fatal, block, or carry anything of a request: a status is read by everybody who may list services.
// Source: sd_notify(3). Names of the file system go through unix-dgram, which cannot do abstract ones; those through
// one call of our own.
import { getSystemErrorName } from 'node:util'
import { sendDatagram, SOCKET_PATH_MAXIMUM_BYTES } from '../native/index.js'
import type { ServiceEnvironment } from './service-environment.js'
import { loadUnixDatagrams } from './unix-datagrams.js'

/** A manager whose queue is full is told again, in order: READY must not be lost, or the start times out. */
const RETRY_MS = 50
/** The first of them is READY or STOPPING; what lies between is outdated by what follows. */
const MAXIMUM_WAITING = 16
const RETRIED: ReadonlySet<string> = new Set(['EAGAIN', 'ENOBUFS'])
const MICROSECONDS_PER_MS = 1_000

type Send = (message: Buffer) => void

export class ServiceManager {
  readonly #send: Send | undefined
  readonly #onFault: (error: unknown) => void
  readonly #waiting: Buffer[] = []
  #retry: NodeJS.Timeout | undefined
  #hasFailed = false

  /** @param onFault is told of the first failure; an absent manager must not fill a log. */
  constructor(environment: Pick<ServiceEnvironment, 'notifySocket'>, onFault: (error: unknown) => void) {
    this.#onFault = onFault
    this.#send = this.#senderTo(environment.notifySocket)
  }

  /** Whether anybody is told. */
  get isPresent(): boolean {
    return this.#send !== undefined
  }

  /** Everything that requests need is there. */
  ready(status: string): void {
    this.#notify(['READY=1', `STATUS=${status}`])
  }

  status(status: string): void {
    this.#notify([`STATUS=${status}`])
  }

  /** Asks for the time that ending may take, beyond what the unit allows where that is less. */
  stopping(status: string, atMostMs: number): void {
    const microseconds = Math.ceil(atMostMs) * MICROSECONDS_PER_MS
    this.#notify(['STOPPING=1', `EXTEND_TIMEOUT_USEC=${microseconds}`, `STATUS=${status}`])
  }

  alive(): void {
    this.#notify(['WATCHDOG=1'])
  }

  #notify(lines: readonly string[]): void {
    if (this.#send === undefined) return
    this.#waiting.push(Buffer.from(lines.join('\n')))
    if (this.#waiting.length > MAXIMUM_WAITING) this.#waiting.splice(1, 1)
    if (this.#retry === undefined) this.#sendWaiting(this.#send)
  }

  #sendWaiting(send: Send): void {
    this.#retry = undefined
    for (let message = this.#waiting[0]; message !== undefined; message = this.#waiting[0]) {
      try {
        send(message)
        this.#hasFailed = false
      } catch (error) {
        if (RETRIED.has((error as NodeJS.ErrnoException).code ?? '')) {
          this.#retry = setTimeout(() => this.#sendWaiting(send), RETRY_MS).unref()
          return
        }
        this.#failed(error)
      }
      this.#waiting.shift()
    }
  }

  #failed(error: unknown): void {
    if (!this.#hasFailed) this.#onFault(error)
    this.#hasFailed = true
  }

  #senderTo(name: string | null): Send | undefined {
    if (name === null) return undefined
    try {
      return senderTo(name)
    } catch (error) {
      this.#failed(error)
      return undefined
    }
  }
}

function senderTo(name: string): Send {
  if (name.startsWith('@')) return message => sendDatagram(name.slice(1), message)
  if (name.startsWith('/') && Buffer.byteLength(name) <= SOCKET_PATH_MAXIMUM_BYTES) return pathSender(name)
  throw new RangeError(
    `NOTIFY_SOCKET: expected an absolute path of at most ${SOCKET_PATH_MAXIMUM_BYTES} bytes or an abstract name, got another text`,
  )
}

function pathSender(path: string): Send {
  const datagrams = loadUnixDatagrams()
  return message => {
    const socket = datagrams.createSocket('unix_dgram')
    try {
      socket.send(message, 0, message.length, path, error => {
        if (error !== undefined) throw named(error)
      })
    } finally {
      socket.close()
    }
  }
}

/** unix-dgram numbers its errors. */
function named(error: NodeJS.ErrnoException): Error {
  const code = getSystemErrorName(Number(error.errno))
  return Object.assign(new Error(`${code}: notification not sent`, { cause: error }), {
    code,
    syscall: 'sendmsg',
  })
}
