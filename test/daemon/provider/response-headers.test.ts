import { describe, expect, it } from 'vitest'
import { retainHeaders } from '../../../daemon/provider/response-headers.js'

const retained = (...fields: [string, string][]): [string, string][] =>
  retainHeaders(fields.map(([name, value]) => ({ name, value: Buffer.from(value) }))).map(
    ({ name, value }) => [name, Buffer.from(value).toString()],
  )

describe('headers of the answer', () => {
  it.each([
    'content-type',
    'content-length',
    'etag',
    'location',
    'retry-after',
    'vary',
    'x-request-id',
    'server',
  ])('keep %s', name => {
    expect(retained([name, 'v'])).toEqual([[name, 'v']])
  })

  it.each([
    'authorization',
    'connection',
    'keep-alive',
    'proxy-authenticate',
    'proxy-authorization',
    'proxy-connection',
    'set-cookie',
    'te',
    'trailer',
    'transfer-encoding',
    'upgrade',
    'www-authenticate',
  ])('lose %s, even twice', name => {
    expect(retained([name, 'v'], [name, 'w'], ['etag', '1'])).toEqual([['etag', '1']])
  })

  it('lose what Connection names, in any case and over several lines', () => {
    expect(
      retained(
        ['connection', 'close, X-Hop'],
        ['x-hop', '1'],
        ['connection', 'x-other'],
        ['x-other', '2'],
        ['x-c', '3'],
      ),
    ).toEqual([['x-c', '3']])
  })

  it('lose a name that the wire cannot write', () => {
    expect(retained(['x_trace', '1'], ['x.y', '2'], ['x-a', '3'])).toEqual([['x-a', '3']])
  })

  it('lose blanks behind a value', () => {
    expect(retained(['x-a', 'a b\t '])).toEqual([['x-a', 'a b']])
  })

  it('are sorted by name', () => {
    expect(retained(['x-b', '1'], ['etag', '2'], ['x-a', '3']).map(([name]) => name)).toEqual([
      'etag',
      'x-a',
      'x-b',
    ])
  })

  it('refuse a retained name that comes twice', () => {
    expect(() => retained(['vary', 'a'], ['etag', '1'], ['vary', 'a'])).toThrow(
      expect.objectContaining({
        code: 'response_rejected',
        reason: 'duplicate_header',
        outcome: 'completed',
      }),
    )
  })
})
