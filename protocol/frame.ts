// Owns the frame: four bytes of length, unsigned big endian, then exactly that many bytes of body.
// Must never believe a length before it is compared with the limit, and never keep surplus bytes: what
// follows a complete frame is malformed, since one connection carries one request.
// Source: the broker protocol's framing, section 1.

import { BrokerError } from './errors.js'
import { FRAME_PREFIX_BYTES, MAXIMUM_RESPONSE_FRAME_BYTES } from './limits.js'

export interface FrameReaderOptions {
  /** The one length that is accepted, where the frame is known beforehand (the bound stream). */
  readonly exactBytes?: number
}

/** The four bytes before a body, for writers that do not want to copy a large one. */
export function framePrefix(bodyBytes: number): Uint8Array {
  if (!Number.isInteger(bodyBytes) || bodyBytes < 1 || bodyBytes > MAXIMUM_RESPONSE_FRAME_BYTES) {
    throw new RangeError(
      `"bodyBytes" expected an integer of 1..${MAXIMUM_RESPONSE_FRAME_BYTES}, got ${bodyBytes}`,
    )
  }
  const prefix = new Uint8Array(FRAME_PREFIX_BYTES)
  new DataView(prefix.buffer).setUint32(0, bodyBytes, false)
  return prefix
}

/** Puts the length before the body. */
export function encodeFrame(body: Uint8Array): Uint8Array {
  const frame = new Uint8Array(FRAME_PREFIX_BYTES + body.length)
  frame.set(framePrefix(body.length))
  frame.set(body, FRAME_PREFIX_BYTES)
  return frame
}

export class FrameReader {
  readonly #maximumFrameBytes: number
  readonly #exactBytes: number | undefined
  readonly #prefix = new Uint8Array(FRAME_PREFIX_BYTES)
  #body: Uint8Array | undefined
  #received = 0
  #ended = false

  constructor(maximumFrameBytes: number, options: FrameReaderOptions = {}) {
    assertFrameLimit('maximumFrameBytes', maximumFrameBytes)
    if (options.exactBytes !== undefined) assertFrameLimit('exactBytes', options.exactBytes)
    this.#maximumFrameBytes = maximumFrameBytes
    this.#exactBytes = options.exactBytes
  }

  /** Bytes taken so far, the four of the prefix included. */
  get received(): number {
    return this.#received
  }

  /** The length that the prefix announced, once its four bytes are here. */
  get announcedBytes(): number | undefined {
    return this.#body?.length
  }

  /**
   * Takes the next bytes of the stream.
   * @returns the body when this chunk completes it; the reader is finished then.
   * @throws BrokerError invalid_request for a refused length, surplus bytes, or use after the end.
   */
  push(chunk: Uint8Array): Uint8Array | undefined {
    if (this.#ended && chunk.length > 0) this.#refuse('no bytes after the frame', `${chunk.length} more`)
    const rest = this.#takePrefix(chunk)
    if (this.#body === undefined) return undefined
    const missing = FRAME_PREFIX_BYTES + this.#body.length - this.#received
    if (rest.length > missing) {
      this.#refuse('no bytes after the frame', `${rest.length - missing} more`)
    }
    this.#body.set(rest, this.#received - FRAME_PREFIX_BYTES)
    this.#received += rest.length
    if (rest.length < missing) return undefined
    return this.#finish()
  }

  /** Overwrites what arrived of an unfinished body. The reader cannot be used afterwards. */
  wipe(): void {
    this.#body?.fill(0)
    this.#body = undefined
    this.#ended = true
  }

  #takePrefix(chunk: Uint8Array): Uint8Array {
    if (this.#received >= FRAME_PREFIX_BYTES) return chunk
    const taken = Math.min(FRAME_PREFIX_BYTES - this.#received, chunk.length)
    this.#prefix.set(chunk.subarray(0, taken), this.#received)
    this.#received += taken
    if (this.#received === FRAME_PREFIX_BYTES) this.#body = new Uint8Array(this.#admitLength())
    return chunk.subarray(taken)
  }

  #admitLength(): number {
    const length = new DataView(this.#prefix.buffer).getUint32(0, false)
    if (this.#exactBytes !== undefined && length !== this.#exactBytes) {
      this.#refuse(`the bound length of ${this.#exactBytes} bytes`, `${length}`)
    }
    if (length < 1 || length > this.#maximumFrameBytes) {
      this.#refuse(`a length of 1..${this.#maximumFrameBytes} bytes`, `${length}`)
    }
    return length
  }

  #finish(): Uint8Array | undefined {
    const body = this.#body
    this.#body = undefined
    this.#ended = true
    return body
  }

  #refuse(expected: string, got: string): never {
    this.wipe()
    throw new BrokerError('invalid_request', `frame refused: expected ${expected}, got ${got}`)
  }
}

function assertFrameLimit(title: string, value: number): void {
  if (!Number.isSafeInteger(value) || value < 1 || value > 0xffff_ffff) {
    throw new RangeError(`"${title}" expected an integer of 1..4294967295, got ${value}`)
  }
}
