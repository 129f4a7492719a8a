// Owns the reading of one provider answer, in whatever pieces it comes. Small and strict on purpose:
// Node's own parser takes chunk extensions, HTTP/1.0, trailers, missing framing, and drops header lines
// past a count. What this one takes, that one takes with the same status and body (a test compares them).
// Source: RFC 9112; broker wire §4, §13.

import type { Method } from '../../protocol/destination.js'
import { BodyCollector } from './body-collector.js'
import { ChunkedBody } from './chunked-body.js'
import { framingOf } from './response-framing.js'
import { type ReceivedField, ResponseHead } from './response-head.js'
import { ResponseRefused } from './response-refusal.js'

export interface ReadingTerms {
  readonly method: Method
  /** Bound on exact head bytes plus decoded body bytes. */
  readonly responseLimitBytes: number
}

export interface ReceivedResponse {
  readonly status: number
  readonly fields: readonly ReceivedField[]
  readonly body: Uint8Array
  readonly headBytes: number
}

export class ResponseReader {
  readonly #terms: ReadingTerms
  readonly #head: ResponseHead
  #body = new BodyCollector(0)
  #chunked: ChunkedBody | null = null
  #leftBytes = 0
  #complete = false

  constructor(terms: ReadingTerms) {
    this.#terms = terms
    this.#head = new ResponseHead(terms.responseLimitBytes)
  }

  get complete(): boolean {
    return this.#complete
  }

  /**
   * Takes the next bytes of the answer.
   * @throws ResponseRefused; the reader is useless after it. Bytes after a complete answer are refused.
   */
  push(chunk: Uint8Array): void {
    let rest = chunk
    if (!this.#head.complete) {
      rest = rest.subarray(this.#head.push(rest))
      if (!this.#head.complete) return
      this.#beginBody()
    }
    if (!this.#complete) rest = rest.subarray(this.#takeBody(rest))
    if (this.#complete && rest.length > 0) throw new ResponseRefused('surplus_bytes')
  }

  /** The whole answer; only once `complete`. */
  result(): ReceivedResponse {
    if (!this.#complete) throw new RangeError('"result" expected a complete answer, got a part of one')
    const { status, fields, byteLength } = this.#head
    return { status, fields, body: this.#body.take(), headBytes: byteLength }
  }

  #beginBody(): void {
    const { status, fields, byteLength } = this.#head
    const framing = framingOf(this.#terms.method, status, fields)
    this.#body = new BodyCollector(this.#terms.responseLimitBytes - byteLength)
    if (framing.kind === 'chunked') this.#chunked = new ChunkedBody(this.#body)
    if (framing.kind === 'length') this.#expectBytes(framing.bytes)
    this.#complete = this.#chunked === null && this.#leftBytes === 0
  }

  #expectBytes(announcedBytes: number): void {
    this.#body.assertRoom(announcedBytes)
    this.#leftBytes = announcedBytes
  }

  #takeBody(bytes: Uint8Array): number {
    if (this.#chunked !== null) {
      const taken = this.#chunked.push(bytes)
      this.#complete = this.#chunked.complete
      return taken
    }
    const piece = bytes.length > this.#leftBytes ? bytes.subarray(0, this.#leftBytes) : bytes
    this.#body.append(piece)
    this.#leftBytes -= piece.length
    this.#complete = this.#leftBytes === 0
    return piece.length
  }
}
