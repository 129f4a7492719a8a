// Owns the reasons for which a provider's answer is refused. Each is a word for the record and a sentence
// for the operator; neither ever holds a byte of the answer. The request was accepted before any of them
// can occur, so the effect may have happened: none means "not executed", none permits a second try.
// Source: broker wire §4 and §13; RFC 9112 §5–7.

import { BrokerError } from '../../protocol/errors.js'
import {
  MAXIMUM_CHUNK_LINE_BYTES,
  MAXIMUM_CHUNK_SIZE_DIGITS,
  MAXIMUM_HEADER_COUNT,
  MAXIMUM_HEADER_NAME_BYTES,
  MAXIMUM_HEADER_VALUE_BYTES,
  MAXIMUM_RESPONSE_HEAD_BYTES,
  MAXIMUM_RESPONSE_HEADER_LINE_BYTES,
  MAXIMUM_STATUS_LINE_BYTES,
} from '../../protocol/limits.js'

const EXPECTED = {
  bare_line_feed: 'every line to end in CR LF',
  body_not_allowed: 'no body under this status',
  chunk_extension: 'a chunk size without extension',
  chunk_line: `a chunk size of 1 to ${MAXIMUM_CHUNK_SIZE_DIGITS} hex digits, at most ${MAXIMUM_CHUNK_LINE_BYTES} bytes`,
  chunk_end: 'CR LF after the data of a chunk',
  content_encoding: 'an unencoded body, as Accept-Encoding: identity asked',
  content_length: 'one decimal content-length',
  content_length_and_transfer_encoding: 'either content-length or transfer-encoding',
  content_length_twice: 'one content-length',
  credential_reflected: 'an answer without the credential or an encoding of it',
  duplicate_header: 'every retained header once',
  head_too_large: `a head of at most ${MAXIMUM_RESPONSE_HEAD_BYTES} bytes`,
  header_line: 'a header line as name, colon, value',
  header_line_too_long: `header lines of at most ${MAXIMUM_RESPONSE_HEADER_LINE_BYTES} bytes`,
  header_name_too_long: `header names of at most ${MAXIMUM_HEADER_NAME_BYTES} bytes`,
  header_value: 'tab, visible ASCII or 0x80–0xff in a header value',
  header_value_too_long: `header values of at most ${MAXIMUM_HEADER_VALUE_BYTES} bytes`,
  line_folding: 'no folded header line',
  no_framing: 'content-length or transfer-encoding',
  redirect: 'no redirect',
  response_too_large: 'head and decoded body within the response limit',
  status_line: 'HTTP/1.1, a space and a status of three digits',
  status_line_too_long: `a status line of at most ${MAXIMUM_STATUS_LINE_BYTES} bytes`,
  status_range: 'a final status, 200 to 599',
  surplus_bytes: 'nothing after the complete answer',
  too_many_headers: `at most ${MAXIMUM_HEADER_COUNT} headers`,
  trailer: 'no trailer after the last chunk',
  transfer_encoding: 'transfer-encoding chunked, once, and nothing else',
} as const

export type ResponseRefusal = keyof typeof EXPECTED
export const RESPONSE_REFUSALS = Object.keys(EXPECTED) as readonly ResponseRefusal[]

/** Thrown by the reader and the checks after it. `detail` holds our own words only. */
export class ResponseRefused extends BrokerError {
  readonly reason: ResponseRefusal

  constructor(reason: ResponseRefusal, detail?: string) {
    const got = detail === undefined ? '' : `, got ${detail}`
    super(
      'response_rejected',
      `provider response rejected after acceptance: expected ${EXPECTED[reason]}${got}`,
      {
        outcome: 'completed',
      },
    )
    this.reason = reason
  }
}
