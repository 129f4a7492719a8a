// Owns: one frame while it arrives: four bytes of length, then the body, into one buffer that grows up to that length.
// Must never: allocate before the length was admitted, take a byte beyond the frame, or keep what it gave up.
// Source: the broker protocol's framing.
import { FRAME_PREFIX_BYTES } from '../protocol/limits.js'

/** Ordinary requests fit into the first buffer; the largest grows four times. */
const FIRST_BODY_BYTES = 64 * 1024
const GROWTH = 4

export class IncomingFrame {
  readonly #prefix = new Uint8Array(FRAME_PREFIX_BYTES)
  #body: Buffer | undefined
  #bodyBytes = 0
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

  /** Begins the body, after its length was compared and admitted. */
  openBody(bytes: number): void {
    this.#bodyBytes = bytes
    this.#body = Buffer.allocUnsafeSlow(Math.min(bytes, FIRST_BODY_BYTES))
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
    const taken = Math.min(this.#bodyBytes - at, chunk.length)
    this.#roomFor(body, at, at + taken).set(chunk.subarray(0, taken), at)
    this.#receivedBytes += taken
    return taken
  }

  /** The body when its last byte is here. The caller owns it from then on. */
  complete(): Uint8Array | undefined {
    const body = this.#body
    if (body === undefined || this.#receivedBytes < FRAME_PREFIX_BYTES + this.#bodyBytes) return undefined
    this.#body = undefined
    return new Uint8Array(body.buffer, body.byteOffset, body.length)
  }

  /** Overwrites what arrived; a request may hold a secret to be provisioned. */
  wipe(): void {
    this.#body?.fill(0)
    this.#body = undefined
  }

  /** What was announced and does not come costs nothing. What a larger buffer replaces is overwritten. */
  #roomFor(body: Buffer, heldBytes: number, neededBytes: number): Buffer {
    if (neededBytes <= body.length) return body
    const larger = Buffer.allocUnsafeSlow(
      Math.min(this.#bodyBytes, Math.max(neededBytes, body.length * GROWTH)),
    )
    larger.set(body.subarray(0, heldBytes))
    body.fill(0)
    this.#body = larger
    return larger
  }
}
