// Owns: frames in and out over one accepted or connected Unix stream, under absolute deadlines.
// Must never: lose a byte, take one too many, or let an 'error' event reach the process. Every end, whoever caused
// it, passes through `#end` exactly once.
// Source: the broker protocol's framing and deadlines; shutdown(2) for the half-close.
import type { Socket } from 'node:net'
import { hungUp } from '../native/index.js'
import type { Clock } from '../protocol/clock.js'
import { FRAME_PREFIX_BYTES } from '../protocol/limits.js'
import { ConnectionEnded, type ConnectionEnding } from './connection-ended.js'
import { hasPassed, whenPassed } from './deadline.js'
import type { AdmissionDoor } from './frame-admission.js'
import { PendingRead, type ReadOptions } from './pending-read.js'
import { descriptorOf } from './socket-descriptor.js'

/** In `exchange` a byte between a complete frame and the next read is malformed; in `stream` frames follow on. */
export type ConnectionMode = 'exchange' | 'stream'

export interface ConnectionOptions {
  readonly clock: Clock
  readonly mode: ConnectionMode
  readonly admission?: AdmissionDoor
}

/** Beyond this a stream whose reader is busy is not read any further. */
const MAXIMUM_BACKLOG_BYTES = 256 * 1024
/** How often a peer that has finished writing is looked at: its end after that brings no event. */
const HALF_OPEN_LOOK_MS = 10

interface PendingWrite {
  refuse(error: ConnectionEnded): void
}

export class FramedConnection {
  /** When it was accepted or connected: budgets start here. */
  readonly acceptedBootNs: bigint
  /** Settles once, when the connection is over; it never rejects. */
  readonly ended: Promise<ConnectionEnding>
  readonly #socket: Socket
  readonly #options: ConnectionOptions
  readonly #backlog: Buffer[] = []
  readonly #writes = new Set<PendingWrite>()
  #backlogBytes = 0
  #read: PendingRead | undefined
  #sawEof = false
  #wasHeard = false
  #halfOpenTimer: NodeJS.Timeout | undefined
  #ending: ConnectionEnding | undefined
  #tellEnded: (ending: ConnectionEnding) => void = () => {}
  #releaseAdmission: () => void = () => {}

  constructor(socket: Socket, options: ConnectionOptions) {
    this.#socket = socket
    this.#options = options
    this.acceptedBootNs = options.clock.bootNs()
    this.ended = new Promise(resolve => {
      this.#tellEnded = resolve
    })
    socket.on('error', () => this.#end('reset'))
    socket.on('close', () => this.#end('reset'))
    socket.on('data', (chunk: Buffer) => this.#arrived(chunk))
    socket.on('end', () => this.#arrivedEof())
    socket.pause()
  }

  /** How it ended, or undefined while it lives. */
  get ending(): ConnectionEnding | undefined {
    return this.#ending
  }

  /** Whether a complete frame ever came. */
  get wasHeard(): boolean {
    return this.#wasHeard
  }

  /** Whether the peer has closed both ways. A peer that only finished writing has not. */
  hungUp(): boolean {
    const descriptor = this.#ending === undefined ? descriptorOf(this.#socket) : undefined
    return descriptor === undefined || hungUp(descriptor)
  }

  /**
   * Reads one frame. One at a time.
   * @throws ConnectionEnded with the ending, after which the connection is closed.
   */
  readFrame(options: ReadOptions): Promise<Uint8Array> {
    if (this.#read !== undefined)
      throw new TypeError('readFrame: expected no other read to be pending, got one')
    this.authenticated()
    return new Promise((resolve, refuse) => {
      if (this.#ending !== undefined) return refuse(this.#endedError(this.#ending, 0))
      const read = new PendingRead({
        ...this.#options,
        ...options,
        resolve,
        refuse,
        end: ending => this.#end(ending),
        onAdmitted: () => this.#feed(),
      })
      this.#read = read
      read.start()
      this.#feed()
    })
  }

  /** Writes one frame, in the order of the calls. Settles when the kernel has taken its last byte. */
  writeFrame(body: Uint8Array, deadlineBootNs: bigint): Promise<void> {
    const prefix = Buffer.alloc(FRAME_PREFIX_BYTES)
    prefix.writeUInt32BE(body.length)
    if (body.length < 1) throw new RangeError('writeFrame: expected a body of at least one byte, got none')
    return new Promise((resolve, refuse) => {
      if (this.#ending !== undefined) return refuse(this.#endedError(this.#ending, 0))
      if (hasPassed(this.#options.clock, deadlineBootNs)) {
        this.#end('deadline')
        return refuse(this.#endedError('deadline', 0))
      }
      const cancel = whenPassed(this.#options.clock, deadlineBootNs, () => this.#end('deadline'))
      const write: PendingWrite = {
        refuse: error => {
          cancel()
          refuse(error)
        },
      }
      this.#writes.add(write)
      this.#socket.cork()
      this.#socket.write(prefix)
      this.#socket.write(body, error => {
        if (error) return this.#end('reset')
        if (!this.#writes.delete(write)) return
        cancel()
        resolve()
      })
      this.#socket.uncork()
    })
  }

  /** What was read is authenticated, or no longer needed: its place in the admission is free. */
  authenticated(): void {
    this.#releaseAdmission()
  }

  /** Closes at once. Safe to repeat. */
  closeNow(): void {
    this.#end('closed')
  }

  #arrived(chunk: Buffer): void {
    if (this.#ending !== undefined) {
      chunk.fill(0)
      return
    }
    this.#backlog.push(chunk)
    this.#backlogBytes += chunk.length
    this.#feed()
  }

  #arrivedEof(): void {
    this.#sawEof = true
    this.#feed()
    this.#watchHalfOpen()
  }

  /** A half-close is honoured; a peer that has closed both ways can take no answer, so the connection is over. */
  #watchHalfOpen(): void {
    if (this.#ending !== undefined) return
    if (this.#backlogBytes === 0 && this.hungUp()) return this.#end('reset')
    this.#halfOpenTimer = setTimeout(() => this.#watchHalfOpen(), HALF_OPEN_LOOK_MS).unref()
  }

  /** Moves bytes from the backlog into the pending read until one of them has enough. */
  #feed(): void {
    while (this.#ending === undefined) {
      const chunk = this.#backlog[0]
      const read = this.#read
      if (chunk === undefined || read === undefined || read.isWaiting) break
      this.#consume(chunk, read.take(chunk))
      if (read.isComplete) this.#finishRead(read)
    }
    this.#settleIdle()
  }

  #consume(chunk: Buffer, takenBytes: number): void {
    chunk.fill(0, 0, takenBytes)
    this.#backlogBytes -= takenBytes
    if (takenBytes === chunk.length) this.#backlog.shift()
    else if (this.#backlog.length > 0) this.#backlog[0] = chunk.subarray(takenBytes)
  }

  /** What remains to be decided when no more bytes can be moved now. */
  #settleIdle(): void {
    if (this.#ending !== undefined) return
    const isWaiting = this.#read?.isWaiting === true
    if (this.#read === undefined && this.#backlogBytes > 0 && this.#options.mode === 'exchange') {
      this.#end('surplus')
    } else if (this.#read !== undefined && !isWaiting && this.#sawEof && this.#backlogBytes === 0) {
      this.#end('eof')
    } else if (isWaiting || this.#backlogBytes > MAXIMUM_BACKLOG_BYTES) {
      this.#socket.pause()
    } else {
      this.#socket.resume()
    }
  }

  /** In an exchange the frame is refused together with what follows it: nothing of it reaches the reader. */
  #finishRead(read: PendingRead): void {
    if (this.#options.mode === 'exchange' && this.#backlogBytes > 0) return this.#end('surplus')
    this.#read = undefined
    this.#wasHeard = true
    this.#releaseAdmission = read.handOver()
  }

  #end(ending: ConnectionEnding): void {
    if (this.#ending !== undefined) return
    this.#ending = ending
    clearTimeout(this.#halfOpenTimer)
    const read = this.#read
    this.#read = undefined
    read?.abandon(this.#endedError(ending, read.receivedBytes, read.announcedBytes))
    for (const write of this.#writes) write.refuse(this.#endedError(ending, 0))
    this.#writes.clear()
    for (const chunk of this.#backlog.splice(0)) chunk.fill(0)
    this.#releaseAdmission()
    this.#socket.destroy()
    this.#tellEnded(ending)
  }

  #endedError(ending: ConnectionEnding, receivedBytes: number, announcedBytes?: number): ConnectionEnded {
    return new ConnectionEnded(
      ending,
      `connection ended (${ending}): expected it to last until its frame was complete, got its end after ${receivedBytes} bytes`,
      receivedBytes,
      announcedBytes,
    )
  }
}
