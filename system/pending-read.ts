// Owns: one read of one frame: its limits, its place in the admission and its deadline.
// Must never: take a byte after the deadline, or let a byte buy time. The first byte can only shorten it.
// Source: the broker protocol's deadlines: absolute, and not extended by successful input.
import { type Clock, NS_PER_MS } from '../protocol/clock.js'
import { LARGE_FRAME_BYTES, LARGE_FRAME_READ_MS } from '../protocol/limits.js'
import type { ConnectionEnded, ConnectionEnding } from './connection-ended.js'
import { hasPassed, whenPassed } from './deadline.js'
import type { Admission, AdmissionDoor } from './frame-admission.js'
import { IncomingFrame } from './incoming-frame.js'

export interface ReadOptions {
  readonly maximumFrameBytes: number
  /** Null: none until the first byte, for the next request on a persistent connection. */
  readonly deadlineBootNs: bigint | null
  /** The only length that is accepted, where the frame is known beforehand. */
  readonly exactBytes?: number
  /** Called with the first byte; what it returns governs the rest when it is earlier. */
  readonly onFirstByte?: () => bigint
}

export interface PendingReadOptions extends ReadOptions {
  readonly clock: Clock
  readonly admission?: AdmissionDoor
  readonly resolve: (body: Uint8Array) => void
  readonly refuse: (error: unknown) => void
  readonly end: (ending: ConnectionEnding) => void
  readonly onAdmitted: () => void
}

export class PendingRead {
  readonly #options: PendingReadOptions
  readonly #frame = new IncomingFrame()
  #deadlineBootNs: bigint | null = null
  #cancelDeadline: () => void = () => {}
  #admission: Admission | undefined
  #body: Uint8Array | undefined

  constructor(options: PendingReadOptions) {
    this.#options = options
  }

  /** Begins to watch the deadline; a deadline that has passed ends the connection in this call. */
  start(): void {
    this.#govern(this.#options.deadlineBootNs)
  }

  get isComplete(): boolean {
    return this.#body !== undefined
  }

  /** Gives the body to the reader. @returns how to leave the admission, once the body is authenticated. */
  handOver(): () => void {
    const body = this.#body
    if (body === undefined)
      throw new TypeError('pending read: expected a complete frame, got an unfinished one')
    this.#cancelDeadline()
    this.#body = undefined
    this.#options.resolve(body)
    return () => this.#admission?.release()
  }

  get receivedBytes(): number {
    return this.#frame.receivedBytes
  }

  get announcedBytes(): number | undefined {
    return this.#frame.announcedBytes
  }

  /** Whether its length is accepted but there is no room for it yet. */
  get isWaiting(): boolean {
    return this.#admission !== undefined && !this.#admission.admitted
  }

  /** @returns how many bytes of the chunk were taken; it may have ended the connection instead. */
  take(chunk: Uint8Array): number {
    if (this.#isLate()) return 0
    if (this.receivedBytes === 0 && !this.#noticeFirstByte()) return 0
    let taken = 0
    if (this.#frame.announcedBytes === undefined) {
      taken = this.#frame.takePrefix(chunk)
      if (this.#frame.announcedBytes === undefined) return taken
      this.#admit(this.#frame.announcedBytes)
    }
    if (this.#admission?.admitted !== true) return taken
    taken += this.#takeBody(this.#frame.announcedBytes ?? 0, chunk.subarray(taken))
    return taken
  }

  /** Wipes what arrived and refuses the reader. */
  abandon(error: ConnectionEnded): void {
    this.#cancelDeadline()
    this.#admission?.release()
    this.#frame.wipe()
    this.#body?.fill(0)
    this.#options.refuse(error)
  }

  #takeBody(bytes: number, chunk: Uint8Array): number {
    if (!this.#frame.isOpen) this.#openBody(bytes)
    const taken = this.#frame.takeBody(chunk)
    if (!this.#isLate()) this.#body = this.#frame.complete()
    return taken
  }

  /** Whoever has the turn of the large frames must use it: the others' budgets run while they wait. */
  #openBody(bytes: number): void {
    this.#frame.openBody(bytes)
    if (bytes <= LARGE_FRAME_BYTES || this.#options.admission === undefined) return
    const own = this.#options.clock.bootNs() + BigInt(LARGE_FRAME_READ_MS) * NS_PER_MS
    if (this.#deadlineBootNs === null || own < this.#deadlineBootNs) this.#govern(own)
  }

  #admit(bytes: number): void {
    const { maximumFrameBytes, exactBytes, admission, end, onAdmitted } = this.#options
    const isBound = exactBytes === undefined || bytes === exactBytes
    if (!isBound || bytes < 1 || bytes > maximumFrameBytes) return end('length')
    this.#admission = admission?.enter(bytes, onAdmitted) ?? { admitted: true, release: () => {} }
  }

  #noticeFirstByte(): boolean {
    const { onFirstByte } = this.#options
    if (onFirstByte === undefined) return true
    const shorter = this.#deadlineAfterFirstByte(onFirstByte)
    if (shorter === undefined) return false
    if (this.#deadlineBootNs === null || shorter < this.#deadlineBootNs) this.#govern(shorter)
    return !this.#isLate()
  }

  /** A fault of the callback ends this connection, not the process whose event loop runs it. */
  #deadlineAfterFirstByte(onFirstByte: () => bigint): bigint | undefined {
    try {
      return onFirstByte()
    } catch {
      this.#options.end('closed')
      return undefined
    }
  }

  #govern(deadlineBootNs: bigint | null): void {
    this.#cancelDeadline()
    this.#deadlineBootNs = deadlineBootNs
    if (deadlineBootNs === null) return
    this.#cancelDeadline = whenPassed(this.#options.clock, deadlineBootNs, () =>
      this.#options.end('deadline'),
    )
  }

  #isLate(): boolean {
    if (this.#deadlineBootNs === null || !hasPassed(this.#options.clock, this.#deadlineBootNs)) return false
    this.#options.end('deadline')
    return true
  }
}
