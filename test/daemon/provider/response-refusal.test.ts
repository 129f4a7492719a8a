import { describe, expect, it } from 'vitest'
import { RESPONSE_REFUSALS, type ResponseRefusal } from '../../../daemon/provider/response-refusal.js'
import { chunked, lines, ok, read } from '../../support/provider-answers.js'

describe('an answer is refused for', () => {
  const refusals: [ResponseRefusal, string, string][] = [
    ['status_line', 'HTTP/1.0', lines('HTTP/1.0 200 OK', 'Content-Length: 0', '')],
    ['status_line', 'HTTP/2', lines('HTTP/2 200 OK', '')],
    ['status_line', 'HTTP/1.2', lines('HTTP/1.2 200 OK', '')],
    ['status_line', 'ICY', lines('ICY 200 OK', '')],
    ['status_line', 'lower case', lines('http/1.1 200 OK', '')],
    ['status_line', 'two digits', lines('HTTP/1.1 20 OK', '')],
    ['status_line', 'four digits', lines('HTTP/1.1 2000 OK', '')],
    ['status_line', 'a letter in the status', lines('HTTP/1.1 20x OK', '')],
    ['status_line', 'two spaces', lines('HTTP/1.1  200 OK', '')],
    ['status_line', 'a tab before the reason', lines('HTTP/1.1 200\tOK', '')],
    ['status_line', 'NUL in the reason', lines('HTTP/1.1 200 O\0K', '')],
    ['status_line', 'CR in the reason', lines('HTTP/1.1 200 O\rK', '')],
    ['status_line', 'an empty first line', '\r\n' + ok(['Content-Length: 0'])],
    ['status_range', '100 Continue', lines('HTTP/1.1 100 Continue', '') + ok(['Content-Length: 0'])],
    ['status_range', '101', lines('HTTP/1.1 101 Switching', 'Upgrade: x', '')],
    ['status_range', '103 Early Hints', lines('HTTP/1.1 103 Early', 'Link: </a>', '')],
    ['status_range', '199', lines('HTTP/1.1 199 x', '')],
    ['status_range', '600', lines('HTTP/1.1 600 x', '')],
    ['status_range', '000', lines('HTTP/1.1 000 x', '')],
    ['bare_line_feed', 'LF after the status line', 'HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n'],
    ['bare_line_feed', 'LF after a header', 'HTTP/1.1 200 OK\r\nContent-Length: 0\n\r\n'],
    ['bare_line_feed', 'LF as the empty line', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\n'],
    ['bare_line_feed', 'LF after a chunk size', chunked('5\nhello\r\n0\r\n\r\n')],
    ['line_folding', 'obs-fold', ok(['X-A: a', ' b', 'Content-Length: 0'])],
    ['line_folding', 'obs-fold by tab', ok(['X-A: a', '\tb', 'Content-Length: 0'])],
    ['line_folding', 'a blank before the first header', ok([' X-A: a', 'Content-Length: 0'])],
    ['header_line', 'a blank before the colon', ok(['Content-Length : 0'])],
    ['header_line', 'no colon', ok(['Content-Length'])],
    ['header_line', 'no name', ok([': x'])],
    ['header_line', 'a blank in a name', ok(['X A: x'])],
    ['header_line', 'NUL in a name', ok(['X\0A: x'])],
    ['header_line', 'obs-text in a name', ok(['X\xe4: x'])],
    ['header_value', 'NUL in a value', ok(['X-A: a\0b', 'Content-Length: 0'])],
    ['header_value', 'CR in a value', ok(['X-A: a\rb', 'Content-Length: 0'])],
    ['header_value', 'a control byte in a value', ok(['X-A: a\x01b', 'Content-Length: 0'])],
    ['header_value', 'DEL in a value', ok(['X-A: a\x7f', 'Content-Length: 0'])],
    ['content_length', 'a sign', ok(['Content-Length: +5'], 'hello')],
    ['content_length', 'a minus', ok(['Content-Length: -1'])],
    ['content_length', 'hex', ok(['Content-Length: 0x5'], 'hello')],
    ['content_length', 'a tab behind it', ok(['Content-Length: 5\t'], 'hello')],
    ['content_length', 'a fraction', ok(['Content-Length: 5.0'], 'hello')],
    ['content_length', 'nothing', ok(['Content-Length:'])],
    ['content_length', 'a list', ok(['Content-Length: 5, 5'], 'hello')],
    ['content_length', 'a blank inside', ok(['Content-Length: 1 1'])],
    ['content_length', '16 digits', ok(['Content-Length: 0000000000000005'], 'hello')],
    ['content_length_twice', 'two equal lengths', ok(['Content-Length: 5', 'Content-Length: 5'], 'hello')],
    [
      'content_length_twice',
      'two different lengths',
      ok(['Content-Length: 5', 'Content-Length: 6'], 'hello'),
    ],
    [
      'content_length_and_transfer_encoding',
      'both',
      ok(['Content-Length: 5', 'Transfer-Encoding: chunked'], '0\r\n\r\n'),
    ],
    [
      'content_length_and_transfer_encoding',
      'both, the other way',
      ok(['Transfer-Encoding: chunked', 'Content-Length: 5'], '0\r\n\r\n'),
    ],
    ['transfer_encoding', 'gzip, chunked', ok(['Transfer-Encoding: gzip, chunked'], '0\r\n\r\n')],
    ['transfer_encoding', 'chunked, chunked', ok(['Transfer-Encoding: chunked, chunked'], '0\r\n\r\n')],
    [
      'transfer_encoding',
      'chunked twice',
      ok(['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'], '0\r\n\r\n'),
    ],
    ['transfer_encoding', 'identity', ok(['Transfer-Encoding: identity'], 'x')],
    ['transfer_encoding', 'a tab behind it', ok(['Transfer-Encoding: chunked\t'], '0\r\n\r\n')],
    ['transfer_encoding', 'xchunked', ok(['Transfer-Encoding: xchunked'], '0\r\n\r\n')],
    ['transfer_encoding', 'quoted', ok(['Transfer-Encoding: "chunked"'], '0\r\n\r\n')],
    ['transfer_encoding', 'nothing', ok(['Transfer-Encoding:'], '0\r\n\r\n')],
    ['content_encoding', 'gzip', ok(['Content-Encoding: gzip', 'Content-Length: 0'])],
    ['content_encoding', 'gzip three times', ok(['Content-Encoding: gzip, gzip, gzip', 'Content-Length: 0'])],
    ['content_encoding', 'br', ok(['Content-Encoding: br', 'Content-Length: 0'])],
    ['content_encoding', 'zstd', ok(['Content-Encoding: zstd', 'Content-Length: 0'])],
    ['content_encoding', 'identity', ok(['Content-Encoding: identity', 'Content-Length: 0'])],
    ['content_encoding', 'nothing', ok(['Content-Encoding:', 'Content-Length: 0'])],
    ['no_framing', 'a body up to the end of the stream', ok(['X-A: b'], 'hello')],
    ['no_framing', 'no header at all', ok([])],
    ['chunk_extension', 'an extension', chunked('5;a=b\r\nhello\r\n0\r\n\r\n')],
    ['chunk_extension', 'an extension on the last chunk', chunked('0;a\r\n\r\n')],
    ['chunk_extension', 'a blank after the size', chunked('5 \r\nhello\r\n0\r\n\r\n')],
    ['chunk_line', 'no size', chunked('\r\nhello\r\n0\r\n\r\n')],
    ['chunk_line', '17 digits', chunked('00000000000000005\r\nhello\r\n0\r\n\r\n')],
    ['chunk_line', 'no hex', chunked('g\r\n')],
    ['chunk_line', '0x', chunked('0x5\r\nhello\r\n0\r\n\r\n')],
    ['chunk_line', 'a sign', chunked('-5\r\nhello\r\n0\r\n\r\n')],
    ['chunk_line', 'CR without LF', chunked('5\rXhello')],
    ['chunk_end', 'more data than announced', chunked('4\r\nhello\r\n0\r\n\r\n')],
    ['chunk_end', 'LF after data', chunked('5\r\nhello\n0\r\n\r\n')],
    ['chunk_end', 'CR and another byte after data', chunked('5\r\nhello\rX0\r\n\r\n')],
    ['trailer', 'a trailer', chunked('0\r\nX-T: 1\r\n\r\n')],
    ['trailer', 'a trailer that repeats a length', chunked('0\r\nContent-Length: 5\r\n\r\n')],
    ['trailer', 'LF after the last chunk', chunked('0\r\n\n')],
    ['trailer', 'CR and another byte after the last chunk', chunked('0\r\n\rX')],
    ['surplus_bytes', 'bytes after a length', ok(['Content-Length: 5'], 'hello!')],
    ['surplus_bytes', 'a second answer', ok(['Content-Length: 5'], 'hello' + ok(['Content-Length: 0']))],
    ['surplus_bytes', 'bytes after the last chunk', chunked('0\r\n\r\nx')],
    ['surplus_bytes', 'a body after 204', lines('HTTP/1.1 204 x', '') + 'x'],
    ['surplus_bytes', 'a body after 304', lines('HTTP/1.1 304 x', 'Content-Length: 1', '') + 'x'],
    ['body_not_allowed', '204 with a length', lines('HTTP/1.1 204 x', 'Content-Length: 5', '') + 'hello'],
    [
      'body_not_allowed',
      '204 with chunks',
      lines('HTTP/1.1 204 x', 'Transfer-Encoding: chunked', '') + '0\r\n\r\n',
    ],
    ['body_not_allowed', '205 with a length', lines('HTTP/1.1 205 x', 'Content-Length: 5', '') + 'hello'],
    [
      'body_not_allowed',
      '205 with chunks',
      lines('HTTP/1.1 205 x', 'Transfer-Encoding: chunked', '') + '0\r\n\r\n',
    ],
    ...[300, 301, 302, 303, 305, 307, 308].map((status): [ResponseRefusal, string, string] => [
      'redirect',
      `status ${status}`,
      lines(`HTTP/1.1 ${status} Moved`, 'Location: https://elsewhere.example/', 'Content-Length: 0', ''),
    ]),
  ]

  it.each(refusals)('%s: %s', (reason, _what, text) => {
    expect(read(text)).toBe(reason)
  })

  it('a body after HEAD', () => {
    expect(read(ok(['Content-Length: 5'], 'hello'), { method: 'HEAD' })).toBe('surplus_bytes')
  })

  it('every reason that the reader, the headers or the scan can give, somewhere in these tests', () => {
    const here = new Set(refusals.map(([reason]) => reason))
    const limits = [
      'head_too_large',
      'header_line_too_long',
      'header_name_too_long',
      'header_value_too_long',
      'response_too_large',
      'status_line_too_long',
      'too_many_headers',
    ]
    const elsewhere = ['credential_reflected', 'duplicate_header']
    expect(new Set([...here, ...limits, ...elsewhere])).toEqual(new Set(RESPONSE_REFUSALS))
  })
})
