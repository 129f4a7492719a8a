// Owns the decoded body while it arrives. Bounded by the response limit, whatever the framing announces;
// a body that came in one piece is handed on without a copy. Thousands of tiny chunks cost no more
// memory than one large one.

import { ResponseRefused } from './response-refusal.js'

const FIRST_STORAGE_BYTES = 4_096
const EMPTY = new Uint8Array(0)

export class BodyCollector {
  readonly #maximumBytes: number
  #single: Uint8Array | null = null
  #storage: Uint8Array = EMPTY
  #length = 0

  /** @param maximumBytes what the head left of the response limit. */
  constructor(maximumBytes: number) {
    this.#maximumBytes = maximumBytes
  }

  get leftBytes(): number {
    return this.#maximumBytes - this.#length
  }

  /** Refuses an announced length before its bytes come. */
  assertRoom(announcedBytes: number): void {
    if (announcedBytes > this.leftBytes) throw new ResponseRefused('response_too_large')
  }

  append(piece: Uint8Array): void {
    if (piece.length === 0) return
    this.assertRoom(piece.length)
    if (this.#length === 0) this.#single = piece
    else this.#store(piece)
    this.#length += piece.length
  }

  take(): Uint8Array {
    const { buffer, byteOffset } = this.#single ?? this.#storage
    return new Uint8Array(buffer, byteOffset, this.#length)
  }

  #store(piece: Uint8Array): void {
    const single = this.#single
    this.#single = null
    this.#grow(this.#length + piece.length)
    if (single !== null) this.#storage.set(single, 0)
    this.#storage.set(piece, this.#length)
  }

  #grow(neededBytes: number): void {
    if (neededBytes <= this.#storage.length) return
    const doubled = Math.max(FIRST_STORAGE_BYTES, neededBytes, this.#storage.length * 2)
    const grown = new Uint8Array(Math.min(doubled, this.#maximumBytes))
    grown.set(this.#storage.subarray(0, this.#length), 0)
    this.#storage = grown
  }
}
