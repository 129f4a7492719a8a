// Owns bytes that arrive in pieces, in one buffer that doubles. Whoever uses it keeps its bound.
// Must never: keep a piece as it came. A peer that writes byte by byte would cost hundreds of bytes for each.

const FIRST_STORAGE_BYTES = 4_096

export class CollectedBytes {
  #storage = new Uint8Array(0)
  #length = 0

  get length(): number {
    return this.#length
  }

  /** Copies a piece: whoever reads may use its buffer again. */
  add(piece: Uint8Array): void {
    const length = this.#length + piece.length
    if (length > this.#storage.length) {
      const larger = new Uint8Array(Math.max(FIRST_STORAGE_BYTES, length, 2 * this.#storage.length))
      larger.set(this.#storage.subarray(0, this.#length))
      this.#storage = larger
    }
    this.#storage.set(piece, this.#length)
    this.#length = length
  }

  /** A copy of what was collected so far. */
  bytes(): Uint8Array {
    return this.#storage.slice(0, this.#length)
  }

  /** Gives what was collected, and begins anew. */
  take(): Uint8Array {
    const taken = this.bytes()
    this.#length = 0
    return taken
  }

  /** Gives everything up. */
  drop(): void {
    this.#storage = new Uint8Array(0)
    this.#length = 0
  }
}
