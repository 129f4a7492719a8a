// Owns the chunked transfer coding, its strict half: hex digits, CR LF, data, CR LF, and a last chunk
// with nothing behind it. Extensions and trailers are refused: they carry what no limit counts and what
// other readers skip or keep.
// Source: RFC 9112 §7.1; broker wire §13.

import { MAXIMUM_CHUNK_SIZE_DIGITS } from '../../protocol/limits.js'
import type { BodyCollector } from './body-collector.js'
import { type ResponseRefusal, ResponseRefused } from './response-refusal.js'

type Step = 'size' | 'size_lf' | 'data' | 'data_cr' | 'data_lf' | 'last_cr' | 'last_lf' | 'done'

const LF = 0x0a
const CR = 0x0d

export class ChunkedBody {
  readonly #body: BodyCollector
  #step: Step = 'size'
  #digits = 0
  /** Announced size while it is read, then what is left of the chunk. */
  #leftBytes = 0

  constructor(body: BodyCollector) {
    this.#body = body
  }

  get complete(): boolean {
    return this.#step === 'done'
  }

  /** @returns how many bytes were taken: all of them until the body is complete. */
  push(bytes: Uint8Array): number {
    let at = 0
    while (at < bytes.length && this.#step !== 'done') {
      if (this.#step === 'data') at += this.#takeData(bytes.subarray(at))
      else this.#takeByte(bytes[at++] as number)
    }
    return at
  }

  #takeData(bytes: Uint8Array): number {
    const piece = bytes.length > this.#leftBytes ? bytes.subarray(0, this.#leftBytes) : bytes
    this.#body.append(piece)
    this.#leftBytes -= piece.length
    if (this.#leftBytes === 0) this.#step = 'data_cr'
    return piece.length
  }

  #takeByte(byte: number): void {
    switch (this.#step) {
      case 'size':
        return this.#takeSizeByte(byte)
      case 'size_lf':
        return this.#endSizeLine(byte)
      case 'data_cr':
        return this.#expect(byte, CR, 'data_lf', 'chunk_end')
      case 'data_lf':
        return this.#expect(byte, LF, 'size', 'chunk_end')
      case 'last_cr':
        return this.#expect(byte, CR, 'last_lf', 'trailer')
      case 'last_lf':
        return this.#expect(byte, LF, 'done', 'trailer')
      case 'data':
      case 'done':
        return
    }
  }

  #takeSizeByte(byte: number): void {
    const digit = hexDigit(byte)
    if (digit >= 0) {
      this.#digits++
      if (this.#digits > MAXIMUM_CHUNK_SIZE_DIGITS) throw new ResponseRefused('chunk_line')
      this.#leftBytes = this.#leftBytes * 16 + digit
      // Refused digit by digit, so that no size ever leaves the exact integers.
      this.#body.assertRoom(this.#leftBytes)
      return
    }
    if (this.#digits === 0) throw new ResponseRefused('chunk_line')
    if (byte === LF) throw new ResponseRefused('bare_line_feed')
    if (byte !== CR)
      throw new ResponseRefused(
        byte === 0x3b || byte === 0x20 || byte === 0x09 ? 'chunk_extension' : 'chunk_line',
      )
    this.#step = 'size_lf'
  }

  #endSizeLine(byte: number): void {
    this.#expect(byte, LF, this.#leftBytes === 0 ? 'last_cr' : 'data', 'chunk_line')
    this.#digits = 0
  }

  #expect(byte: number, expected: number, next: Step, refusal: ResponseRefusal): void {
    if (byte !== expected) throw new ResponseRefused(refusal)
    this.#step = next
  }
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const lower = byte | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1
}
