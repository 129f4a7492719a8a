import { describe, expect, it } from 'vitest'
import { ResponseReader } from '../../../daemon/provider/response-reader.js'
import {
  bodyOf,
  chunked,
  LIMIT,
  lines,
  ok,
  read,
  readPieces,
  type Verdict,
} from '../../support/provider-answers.js'

describe('an acceptable answer', () => {
  it.each<[string, string, string]>([
    ['a body by length', ok(['Content-Length: 5'], 'hello'), 'hello'],
    ['an empty body', ok(['Content-Length: 0']), ''],
    ['length with leading zeros', ok(['Content-Length: 0005'], 'hello'), 'hello'],
    ['no space after the colon', ok(['content-length:5'], 'hello'), 'hello'],
    ['blanks around a value', ok(['CONTENT-LENGTH: \t 5  '], 'hello'), 'hello'],
    ['chunks', chunked('3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n'), 'hello'],
    [
      'chunk sizes with leading zeros and letters',
      chunked('00a\r\n0123456789\r\n0B\r\n0123456789a\r\n000\r\n\r\n'),
      '01234567890123456789a',
    ],
    ['a chunk size of 16 digits', chunked('0000000000000005\r\nhello\r\n0\r\n\r\n'), 'hello'],
    ['Chunked in other case', ok(['transfer-encoding: Chunked'], '1\r\nx\r\n0\r\n\r\n'), 'x'],
    ['an empty chunked body', chunked('0\r\n\r\n'), ''],
    [
      'bytes that look like a head in the body',
      ok(['Content-Length: 8'], '\r\n\r\n\r\n\r\n'),
      '\r\n\r\n\r\n\r\n',
    ],
    ['a reason with obs-text', lines('HTTP/1.1 200 \xe4\xf6 \t ok', 'Content-Length: 1', '') + 'x', 'x'],
    ['an empty reason', lines('HTTP/1.1 200 ', 'Content-Length: 1', '') + 'x', 'x'],
    ['no reason and no space', lines('HTTP/1.1 200', 'Content-Length: 1', '') + 'x', 'x'],
    ['an error status', lines('HTTP/1.1 503 Down', 'Content-Length: 1', '') + 'x', 'x'],
    ['status 599', lines('HTTP/1.1 599 x', 'Content-Length: 1', '') + 'x', 'x'],
    ['206', lines('HTTP/1.1 206 Partial', 'Content-Length: 1', '') + 'x', 'x'],
    ['204', lines('HTTP/1.1 204 No Content', ''), ''],
    ['204 with length 0', lines('HTTP/1.1 204 No Content', 'Content-Length: 0', ''), ''],
    ['205', lines('HTTP/1.1 205 Reset', 'Content-Length: 0', ''), ''],
    ['304 with the length of what was not sent', lines('HTTP/1.1 304 x', 'Content-Length: 500', ''), ''],
    ['304 without framing', lines('HTTP/1.1 304 x', ''), ''],
    ['empty header values', ok(['X-Empty:', 'X-Blank:  ', 'Content-Length: 1'], 'x'), 'x'],
    ['odd token names', ok(["!#$%&'*+-.^_`|~: v", 'Content-Length: 1'], 'x'), 'x'],
  ])('%s', (_what, text, body) => {
    expect(bodyOf(read(text))).toBe(body)
  })

  it.each(['Content-Length: 500', 'Transfer-Encoding: chunked', 'X-None: 1'])(
    'HEAD has no body: %s',
    header => {
      expect(bodyOf(read(ok([header]), { method: 'HEAD' }))).toBe('')
    },
  )

  it('gives names in lower case and values without blanks', () => {
    const verdict = read(ok(['X-Some:\t a b ', 'Content-Length: 0']))
    if (typeof verdict === 'string') throw new Error(verdict)
    expect(verdict.fields.map(({ name, value }) => [name, Buffer.from(value).toString()])).toEqual([
      ['x-some', 'a b'],
      ['content-length', '0'],
    ])
  })
})

describe('limits', () => {
  const statusLine = (length: number): string => 'HTTP/1.1 200 '.padEnd(length, 'r')
  const headOf = (total: number): string => {
    const opening = lines('HTTP/1.1 200 OK', 'Content-Length: 5')
    const filler = (length: number, name: string): string => `${name}: `.padEnd(length - 2, 'v') + '\r\n'
    const left = total - opening.length - 2
    return opening + filler(6_000, 'X-A') + filler(6_000, 'X-B') + filler(left - 12_000, 'X-C') + '\r\n'
  }

  it.each<[string, string, Verdict | 'accepted']>([
    ['a status line of 1,024 bytes', lines(statusLine(1_024), 'Content-Length: 0', ''), 'accepted'],
    [
      'a status line of 1,025 bytes',
      lines(statusLine(1_025), 'Content-Length: 0', ''),
      'status_line_too_long',
    ],
    ['a header name of 128 bytes', ok([`${'n'.repeat(128)}: v`, 'Content-Length: 0']), 'accepted'],
    [
      'a header name of 129 bytes',
      ok([`${'n'.repeat(129)}: v`, 'Content-Length: 0']),
      'header_name_too_long',
    ],
    ['a header value of 8,192 bytes', ok([`x: ${'v'.repeat(8_192)}`, 'Content-Length: 0']), 'accepted'],
    [
      'a header value of 8,193 bytes',
      ok([`x: ${'v'.repeat(8_193)}`, 'Content-Length: 0']),
      'header_value_too_long',
    ],
    [
      'a header line of 8,384 bytes',
      ok([`${'n'.repeat(128)}:${' '.repeat(63)}${'v'.repeat(8_192)}`, 'Content-Length: 0']),
      'accepted',
    ],
    [
      'a header line of 8,385 bytes',
      ok([`${'n'.repeat(128)}:${' '.repeat(64)}${'v'.repeat(8_192)}`, 'Content-Length: 0']),
      'header_line_too_long',
    ],
    [
      '64 headers',
      ok([...Array.from({ length: 63 }, (_unused, index) => `x-${index}: v`), 'Content-Length: 0']),
      'accepted',
    ],
    [
      '65 headers',
      ok([...Array.from({ length: 64 }, (_unused, index) => `x-${index}: v`), 'Content-Length: 0']),
      'too_many_headers',
    ],
    [
      '100,000 headers',
      ok(Array.from({ length: 100_000 }, (_unused, index) => `x${index}: v`)),
      'too_many_headers',
    ],
    ['a header of 1 MiB', ok([`x: ${'v'.repeat(1_048_576)}`, 'Content-Length: 0']), 'header_line_too_long'],
    ['a head of 16,384 bytes', headOf(16_384) + 'hello', 'accepted'],
    ['a head of 16,385 bytes', headOf(16_385) + 'hello', 'head_too_large'],
    ['endless blank lines before the status', '\r\n'.repeat(50_000), 'status_line'],
    ['an endless status line', 'HTTP/1.1 200 '.padEnd(1_048_576, 'r'), 'status_line_too_long'],
    ['an endless trailer', chunked(`0\r\nx: ${'v'.repeat(1_048_576)}`), 'trailer'],
    ['an endless chunk extension', chunked(`5;${'v'.repeat(1_048_576)}`), 'chunk_extension'],
    ['an endless chunk size', chunked('0'.repeat(1_048_576)), 'chunk_line'],
  ])('%s', (_what, text, expected) => {
    const verdict = read(text)
    expect(typeof verdict === 'string' ? verdict : 'accepted').toBe(expected)
  })

  it('counts exact head bytes and decoded body bytes, at and one over the limit', () => {
    const text = ok(['Content-Length: 5'], 'hello')
    expect(bodyOf(read(text, { limit: text.length }))).toBe('hello')
    expect(read(text, { limit: text.length - 1 })).toBe('response_too_large')
  })

  it('counts a chunked body decoded, not as sent', () => {
    const text = chunked('1\r\nh\r\n1\r\ne\r\n1\r\nl\r\n1\r\nl\r\n1\r\no\r\n0\r\n\r\n')
    const head = chunked('').length
    expect(bodyOf(read(text, { limit: head + 5 }))).toBe('hello')
    expect(read(text, { limit: head + 4 })).toBe('response_too_large')
  })

  it('refuses a head alone that is over the limit, before its end has come', () => {
    expect(read('HTTP/1.1 200 OK\r\nX: y', { limit: 10 })).toBe('response_too_large')
  })

  it.each([
    ['a length', ok(['Content-Length: 999999999999999'])],
    ['a chunk', chunked('ffffffffffffffff\r\n')],
  ])('refuses %s that announces more than the limit before any of it comes', (_what, text) => {
    expect(read(text)).toBe('response_too_large')
  })

  it('reads a body of 2 MiB in one-byte chunks without a piece of memory for each', () => {
    const count = 1_000_000
    const bytes = Buffer.from(chunked(`${'1\r\nx\r\n'.repeat(count)}0\r\n\r\n`), 'latin1')
    const pieces = Array.from({ length: Math.ceil(bytes.length / 16_384) }, (_unused, index) =>
      bytes.subarray(index * 16_384, (index + 1) * 16_384),
    )
    const verdict = readPieces(pieces, {})
    expect(typeof verdict === 'string' ? verdict : verdict.body.length).toBe(count)
  })
})

describe('a cut answer', () => {
  it.each([
    ok(['Content-Length: 5'], 'hello'),
    chunked('3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n'),
    lines('HTTP/1.1 204 x', ''),
  ])('is never complete before its last byte (%#)', text => {
    for (let length = 0; length < text.length; length++)
      expect(read(text.slice(0, length))).toBe('incomplete')
  })

  it('has no result', () => {
    const reader = new ResponseReader({ method: 'GET', responseLimitBytes: LIMIT })
    reader.push(Buffer.from('HTTP/1.1 200 OK\r\n'))
    expect(() => reader.result()).toThrow(RangeError)
  })

  it('that went on after its refusal says nothing of what the provider sent', () => {
    expect.assertions(1)
    try {
      new ResponseReader({ method: 'GET', responseLimitBytes: LIMIT }).push(Buffer.from('PEER-BYTES 200\r\n'))
    } catch (error) {
      expect((error as Error).message).not.toContain('PEER')
    }
  })
})
