// Owns the head of a provider's answer: collects it under its limits and reads status line and header
// lines, byte by byte strict. Everything that two readers could frame differently is refused.
// Source: RFC 9112 §2.2, §4, §5 (status line, field lines); broker wire §4, §13.

import {
  MAXIMUM_HEADER_COUNT,
  MAXIMUM_HEADER_NAME_BYTES,
  MAXIMUM_HEADER_VALUE_BYTES,
  MAXIMUM_RESPONSE_HEAD_BYTES,
  MAXIMUM_RESPONSE_HEADER_LINE_BYTES,
  MAXIMUM_STATUS_LINE_BYTES,
} from '../../protocol/limits.js'
import { type ResponseRefusal, ResponseRefused } from './response-refusal.js'

/**
 * One header line as received: name lower-cased, value without blanks before and spaces behind. A tab
 * behind it stays: in a framing field it is refused (Node's parser refuses it too), elsewhere dropped later.
 */
export interface ReceivedField {
  readonly name: string
  readonly value: Uint8Array
}

const TAB = 0x09
const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20
const COLON = 0x3a
const VERSION = Buffer.from('HTTP/1.1 ', 'latin1')

/** RFC 9110 §5.6.2 `tchar`. */
const IS_TOKEN = byteTable(byte => /[!#$%&'*+.^_`|~0-9A-Za-z-]/.test(String.fromCharCode(byte)))
/** RFC 9110 §5.5: tab, space, visible ASCII, obs-text; so neither CR, LF nor NUL. */
const IS_FIELD = byteTable(byte => byte === TAB || (byte >= SPACE && byte !== 0x7f))

export class ResponseHead {
  status = 0
  readonly fields: ReceivedField[] = []
  /** Exact length with its final CR LF CR LF, once `complete`. */
  byteLength = 0
  complete = false
  readonly #bytes: Buffer
  readonly #overflow: ResponseRefusal
  #lineStart = 0

  /** @param responseLimitBytes bounds the head too, so that a verdict never depends on how the bytes were cut. */
  constructor(responseLimitBytes: number) {
    this.#bytes = Buffer.alloc(Math.min(MAXIMUM_RESPONSE_HEAD_BYTES, responseLimitBytes))
    this.#overflow =
      responseLimitBytes < MAXIMUM_RESPONSE_HEAD_BYTES ? 'response_too_large' : 'head_too_large'
  }

  /**
   * Takes the next bytes.
   * @returns how many of them belong to the head; all of them while it is not complete.
   * @throws ResponseRefused at the first byte that cannot be part of an acceptable head.
   */
  push(chunk: Uint8Array): number {
    const before = this.byteLength
    const taken = Math.min(chunk.length, this.#bytes.length - before)
    this.#bytes.set(taken === chunk.length ? chunk : chunk.subarray(0, taken), before)
    const filled = before + taken
    this.#readLines(filled, before)
    if (this.complete) return this.byteLength - before
    if (filled === this.#bytes.length) throw new ResponseRefused(this.#overflow)
    this.byteLength = filled
    return taken
  }

  #readLines(filled: number, from: number): void {
    let searchFrom = from
    while (!this.complete) {
      // What is not filled yet is zero, so a found LF was received.
      const lineFeed = this.#bytes.indexOf(LF, searchFrom)
      const end = lineFeed === -1 ? filled : lineFeed
      this.#assertLineLength(end - this.#lineStart)
      if (lineFeed === -1) return
      if (lineFeed === this.#lineStart || this.#bytes[lineFeed - 1] !== CR)
        throw new ResponseRefused('bare_line_feed')
      this.#readLine(this.#bytes.subarray(this.#lineStart, lineFeed - 1))
      this.#lineStart = searchFrom = lineFeed + 1
      if (this.complete) this.byteLength = this.#lineStart
    }
  }

  /** The length is that of the line with its CR, if that has come: one byte of slack. */
  #assertLineLength(lineBytes: number): void {
    if (this.status === 0 && lineBytes > MAXIMUM_STATUS_LINE_BYTES + 1) {
      throw new ResponseRefused('status_line_too_long')
    }
    if (lineBytes > MAXIMUM_RESPONSE_HEADER_LINE_BYTES + 1) throw new ResponseRefused('header_line_too_long')
  }

  #readLine(line: Uint8Array): void {
    if (this.status === 0) this.status = readStatusLine(line)
    else if (line.length === 0) this.complete = true
    else if (this.fields.length === MAXIMUM_HEADER_COUNT) throw new ResponseRefused('too_many_headers')
    else this.fields.push(readFieldLine(line))
  }
}

/**
 * HTTP/1.1 SP 3DIGIT [SP reason]. A server that leaves out the space before an empty reason breaks RFC
 * 9112 §4, but no reader can frame that differently, so it is let through.
 */
function readStatusLine(line: Uint8Array): number {
  if (line.length < 12 || !VERSION.every((byte, index) => line[index] === byte))
    throw new ResponseRefused('status_line')
  const digits = [line[9], line[10], line[11]].map(byte => (byte ?? 0) - 0x30)
  if (digits.some(digit => digit < 0 || digit > 9)) throw new ResponseRefused('status_line')
  if (line.length > 12 && line[12] !== SPACE) throw new ResponseRefused('status_line')
  if (!allAre(IS_FIELD, line, 12)) throw new ResponseRefused('status_line')
  const [hundreds = 0, tens = 0, ones = 0] = digits
  const status = hundreds * 100 + tens * 10 + ones
  if (status < 200 || status > 599) throw new ResponseRefused('status_range', String(status))
  return status
}

function readFieldLine(line: Uint8Array): ReceivedField {
  if (isBlank(line[0])) throw new ResponseRefused('line_folding')
  const colon = line.indexOf(COLON)
  if (colon < 1 || !allAre(IS_TOKEN, line.subarray(0, colon), 0)) throw new ResponseRefused('header_line')
  if (colon > MAXIMUM_HEADER_NAME_BYTES) throw new ResponseRefused('header_name_too_long')
  let start = colon + 1
  let end = line.length
  while (start < end && isBlank(line[start])) start++
  while (end > start && line[end - 1] === SPACE) end--
  if (end - start > MAXIMUM_HEADER_VALUE_BYTES) throw new ResponseRefused('header_value_too_long')
  // A copy: a view would keep the whole head alive, and a Buffer's own slice is a view.
  const value = new Uint8Array(line.subarray(start, end))
  if (!allAre(IS_FIELD, value, 0)) throw new ResponseRefused('header_value')
  return { name: Buffer.from(line.subarray(0, colon)).toString('latin1').toLowerCase(), value }
}

function isBlank(byte: number | undefined): boolean {
  return byte === SPACE || byte === TAB
}

function byteTable(holds: (byte: number) => boolean): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_unused, byte) => (holds(byte) ? 1 : 0))
}

function allAre(table: Uint8Array, bytes: Uint8Array, from: number): boolean {
  for (let index = from; index < bytes.length; index++) {
    if (table[bytes[index] as number] === 0) return false
  }
  return true
}
