// Owns: one frame while it arrives: four bytes of length, then the body, into one buffer of exactly that length.
// Must never: allocate before the length was admitted, take a byte beyond the frame, or keep what it gave up.
// Source: the broker protocol's framing.
import { FRAME_PREFIX_BYTES } from '../protocol/limits.js'

export class IncomingFrame {
  readonly #prefix = new Uint8Array(FRAME_PREFIX_BYTES)
  #body: Buffer | undefined
  #receivedBytes = 0

  get receivedBytes(): number {
    return this.#receivedBytes
  }

  /** The announced length once the prefix is complete. */
  get announcedBytes(): number | undefined {
    if (this.#receivedBytes < FRAME_PREFIX_BYTES) return undefined
    return new DataView(this.#prefix.buffer).getUint32(0, false)
  }

  /** @returns how many bytes of the chunk belong to the prefix. */
  takePrefix(chunk: Uint8Array): number {
    const taken = Math.min(FRAME_PREFIX_BYTES - this.#receivedBytes, chunk.length)
    this.#prefix.set(chunk.subarray(0, taken), this.#receivedBytes)
    this.#receivedBytes += taken
    return taken
  }

  /** Makes the buffer, after the length was compared and admitted. */
  openBody(bytes: number): void {
    this.#body = Buffer.allocUnsafeSlow(bytes)
  }

  get isOpen(): boolean {
    return this.#body !== undefined
  }

  /** @returns how many bytes of the chunk belong to the body. */
  takeBody(chunk: Uint8Array): number {
    const body = this.#body
    if (body === undefined)
      throw new TypeError('incoming frame: expected its body to be open, got one without room')
    const at = this.#receivedBytes - FRAME_PREFIX_BYTES
    const taken = Math.min(body.length - at, chunk.length)
    body.set(chunk.subarray(0, taken), at)
    this.#receivedBytes += taken
    return taken
  }

  /** The body when its last byte is here. The caller owns it from then on. */
  complete(): Uint8Array | undefined {
    const body = this.#body
    if (body === undefined || this.#receivedBytes < FRAME_PREFIX_BYTES + body.length) return undefined
    this.#body = undefined
    return new Uint8Array(body.buffer, body.byteOffset, body.length)
  }

  /** Overwrites what arrived; a request may hold a secret to be provisioned. */
  wipe(): void {
    // The rest was never touched: to write to it would make pages of what was only announced.
    this.#body?.fill(0, 0, Math.max(0, this.#receivedBytes - FRAME_PREFIX_BYTES))
    this.#body = undefined
  }
}
