import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  admitProviderRequest,
  assertInjectable,
  previewProviderRequest,
  type ProviderRequest,
  writeProviderRequest,
} from '../../../daemon/provider/request-writer.js'
import type { BrokerDestination } from '../../../protocol/destination.js'
import { type CredentialPlacement, FORBIDDEN_CALLER_HEADERS } from '../../../protocol/placement.js'
import { fullCount } from '../../support/counts.js'

const SECRET = Buffer.from('s3cret-Token_0123456789')
const bytes = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, 'latin1'))
const destination = (over: Partial<BrokerDestination> = {}): BrokerDestination => ({
  exactPathAndQuery: '/v1/issues?a=%20b',
  explicitPort: 443,
  method: 'POST',
  normalizedHost: 'api.example.com',
  scheme: 'https',
  ...over,
})
const request = (over: Partial<ProviderRequest> = {}): ProviderRequest => ({
  destination: destination(),
  headers: [],
  body: bytes('{}'),
  placement: { kind: 'bearer_authorization' },
  ...over,
})
const written = (over: Partial<ProviderRequest> = {}): string =>
  writeProviderRequest(admitProviderRequest(request(over)), SECRET).toString('latin1')

describe('the written request', () => {
  it('holds the head in its fixed order and then the body', () => {
    const headers = [
      { name: 'accept', value: bytes('application/json') },
      { name: 'content-type', value: bytes('application/json') },
    ]
    expect(written({ headers })).toBe(
      [
        'POST /v1/issues?a=%20b HTTP/1.1',
        'Host: api.example.com',
        'Connection: close',
        'Accept-Encoding: identity',
        'Content-Length: 2',
        'accept: application/json',
        'content-type: application/json',
        'authorization: Bearer s3cret-Token_0123456789',
        '',
        '{}',
      ].join('\r\n'),
    )
  })

  const basic = `authorization: Basic ${Buffer.from(`robot:${SECRET.toString()}`).toString('base64')}`
  it.each<[CredentialPlacement, string, string]>([
    [
      { kind: 'bearer_authorization' },
      'authorization: Bearer s3cret-Token_0123456789',
      'authorization: Bearer [credential]',
    ],
    [{ kind: 'api_key_header' }, 'x-api-key: s3cret-Token_0123456789', 'x-api-key: [credential]'],
    [{ kind: 'basic_authorization', user: 'robot' }, basic, 'authorization: Basic [credential]'],
    [{ kind: 'named_header', header: 'x-auth' }, 'x-auth: s3cret-Token_0123456789', 'x-auth: [credential]'],
  ])('places the credential by $kind, and a dry run shows a hole there', (placement, line, hole) => {
    expect(written({ placement }).split('\r\n')).toContain(line)
    const preview = previewProviderRequest(admitProviderRequest(request({ placement })))
    expect(preview.split('\r\n')).toContain(hole)
    expect(preview).not.toContain(SECRET.toString())
  })

  it.each([
    ['api.example.com', 443, 'Host: api.example.com'],
    ['api.example.com', 8443, 'Host: api.example.com:8443'],
    ['::1', 443, 'Host: [::1]'],
    ['::1', 8443, 'Host: [::1]:8443'],
  ])('writes host %s and port %i as %s', (normalizedHost, explicitPort, line) => {
    expect(written({ destination: destination({ normalizedHost, explicitPort }) }).split('\r\n')[1]).toBe(
      line,
    )
  })

  it.each(['GET', 'HEAD', 'DELETE', 'OPTIONS'])('writes Content-Length: 0 for %s without a body', method => {
    expect(
      written({
        destination: destination({ method: method as BrokerDestination['method'] }),
        body: bytes(''),
      }),
    ).toContain('\r\nContent-Length: 0\r\n')
  })

  it('keeps body and header bytes that are not ASCII as they are', () => {
    const body = Uint8Array.from({ length: 256 }, (_unused, index) => index)
    const text = written({ body, headers: [{ name: 'x-note', value: bytes('caf\u00e9') }] })
    expect(text).toContain('\r\nx-note: caf\u00e9\r\n')
    expect(text.slice(-256)).toBe(Buffer.from(body).toString('latin1'))
  })

  it('shares no memory, so that filling it with zeros leaves nothing', () => {
    const buffer = writeProviderRequest(admitProviderRequest(request()), SECRET)
    expect(buffer.buffer.byteLength).toBe(buffer.length)
    expect(buffer.byteOffset).toBe(0)
  })
})

describe('a request is refused before anything is prepared', () => {
  const header = (name: string, value = 'x'): Partial<ProviderRequest> => ({
    headers: [{ name, value: bytes(value) }],
  })
  const to = (over: Record<string, unknown>): Partial<ProviderRequest> => ({
    destination: destination(over),
  })

  it.each<[string, Partial<ProviderRequest>, string]>([
    ['CR LF in the path', to({ exactPathAndQuery: '/a\r\nx: y' }), 'destination.exactPathAndQuery'],
    ['LF in the path', to({ exactPathAndQuery: '/a\nb' }), 'destination.exactPathAndQuery'],
    ['NUL in the path', to({ exactPathAndQuery: '/a\0b' }), 'destination.exactPathAndQuery'],
    ['a space in the path', to({ exactPathAndQuery: '/a b' }), 'destination.exactPathAndQuery'],
    [
      'U+010A in the path, LF once truncated',
      to({ exactPathAndQuery: '/a\u010ab' }),
      'destination.exactPathAndQuery',
    ],
    ['a fragment', to({ exactPathAndQuery: '/a#b' }), 'destination.exactPathAndQuery'],
    ['a backslash', to({ exactPathAndQuery: '/a\\b' }), 'destination.exactPathAndQuery'],
    ['an open percent', to({ exactPathAndQuery: '/a%2' }), 'destination.exactPathAndQuery'],
    ['a path without slash', to({ exactPathAndQuery: 'a' }), 'destination.exactPathAndQuery'],
    ['CR LF in the host', to({ normalizedHost: 'a\r\nb' }), 'destination.normalizedHost'],
    ['U+010A in the host', to({ normalizedHost: 'a\u010ab' }), 'destination.normalizedHost'],
    ['user information in the host', to({ normalizedHost: 'a@b' }), 'destination.normalizedHost'],
    ['an upper-case host', to({ normalizedHost: 'API.example.com' }), 'destination.normalizedHost'],
    ['a final dot', to({ normalizedHost: 'api.example.com.' }), 'destination.normalizedHost'],
    ['an IDN homograph', to({ normalizedHost: 'аpi.example.com' }), 'destination.normalizedHost'],
    ['port 0', to({ explicitPort: 0 }), 'destination port'],
    ['port 65536', to({ explicitPort: 65_536 }), 'destination port'],
    ['a method with a line end', to({ method: 'GET / HTTP/1.1\r\nx:' }), 'method'],
    ['CONNECT', to({ method: 'CONNECT' }), 'method'],
    ['TRACE', to({ method: 'TRACE' }), 'method'],
    ['a lower-case method', to({ method: 'get' }), 'method'],
    ['CR LF in a value', header('x-a', 'a\r\nb: c'), 'caller header x-a'],
    ['a lone CR in a value', header('x-a', 'a\rb'), 'caller header x-a'],
    ['a lone LF in a value', header('x-a', 'a\nb'), 'caller header x-a'],
    ['NUL in a value', header('x-a', 'a\0b'), 'caller header x-a'],
    ['obs-fold in a value', header('x-a', 'a\r\n b'), 'caller header x-a'],
    ['DEL in a value', header('x-a', 'a\x7fb'), 'caller header x-a'],
    ['CR LF in a name', header('x-a\r\nx-b'), 'caller header name'],
    ['a colon in a name', header('x-a:'), 'caller header name'],
    ['an upper-case name', header('X-A'), 'caller header name'],
    ['an empty name', header(''), 'caller header name'],
    [
      'unsorted names',
      {
        headers: [
          { name: 'b', value: bytes('') },
          { name: 'a', value: bytes('') },
        ],
      },
      'caller header order',
    ],
    [
      'a name twice',
      {
        headers: [
          { name: 'a', value: bytes('') },
          { name: 'a', value: bytes('') },
        ],
      },
      'caller header order',
    ],
    ['a value one over 8,192 bytes', header('x-a', 'a'.repeat(8_193)), 'caller header x-a'],
    ['a name one over 128 bytes', header('a'.repeat(129)), 'caller header name'],
    ['a body one over 512 KiB', { body: new Uint8Array(524_289) }, 'request body'],
    [
      'the api key by a caller',
      { ...header('x-api-key'), placement: { kind: 'api_key_header' } },
      'caller header x-api-key',
    ],
    [
      'a named credential header by a caller',
      { ...header('x-auth'), placement: { kind: 'named_header', header: 'x-auth' } },
      'caller header x-auth',
    ],
    ['a placement over host', { placement: { kind: 'named_header', header: 'host' } }, 'placement header'],
    [
      'a placement over content-length',
      { placement: { kind: 'named_header', header: 'content-length' } },
      'placement header',
    ],
    [
      'a placement with a line end',
      { placement: { kind: 'named_header', header: 'x\r\ny' } },
      'placement header',
    ],
    [
      'a basic user with a colon',
      { placement: { kind: 'basic_authorization', user: 'a:b' } },
      'placement user',
    ],
    [
      'a basic user with a line end',
      { placement: { kind: 'basic_authorization', user: 'a\nb' } },
      'placement user',
    ],
  ])('%s', (_what, over, names) => {
    expect(() => admitProviderRequest(request(over))).toThrow(
      expect.objectContaining({ code: 'invalid_request', message: expect.stringContaining(names) as string }),
    )
  })

  it.each([...FORBIDDEN_CALLER_HEADERS])('the caller header %s, by name', name => {
    expect(() => admitProviderRequest(request(header(name, 'value-of-it')))).toThrow(
      `caller header ${name} refused`,
    )
  })

  it('with a message that never holds the content', () => {
    expect(() => admitProviderRequest(request(header('x-a', 'content\r\n')))).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('content') as string }),
    )
  })

  it('but 64 headers, 8,192 bytes of value and 512 KiB of body are accepted, and 65 headers are not', () => {
    const headers = Array.from({ length: 65 }, (_unused, index) => ({
      name: `x-${String(index).padStart(3, '0')}`,
      value: bytes(index === 0 ? 'v'.repeat(8_192) : ''),
    }))
    expect(() =>
      admitProviderRequest(request({ headers: headers.slice(0, 64), body: new Uint8Array(524_288) })),
    ).not.toThrow()
    expect(() => admitProviderRequest(request({ headers }))).toThrow(
      /caller headers refused: expected at most 64, got 65/,
    )
  })
})

describe('a credential that cannot stand in a header', () => {
  it.each([
    ['nothing', ''],
    ['a final newline', 'token\n'],
    ['CR LF', 'a\r\nx: y'],
    ['NUL', 'a\0b'],
    ['a space', 'a b'],
    ['a tab', 'a\tb'],
    ['DEL', 'a\x7f'],
    ['obs-text', 'a\x80'],
    ['one byte over 65,536', 'a'.repeat(65_537)],
  ])('is refused for %s, at provisioning and at writing, without a byte of it', (_what, text) => {
    const refusal: unknown = expect.objectContaining({
      code: 'invalid_request',
      message: expect.stringMatching(/^credential refused/) as string,
    })
    expect(() => assertInjectable(bytes(text))).toThrow(refusal)
    expect(() => writeProviderRequest(admitProviderRequest(request()), bytes(text))).toThrow(refusal)
  })

  it.each(['!', '~', 'a'.repeat(65_536)])('is accepted at the limits (%#)', text => {
    expect(() => assertInjectable(bytes(text))).not.toThrow()
  })
})

describe('any admitted request', () => {
  const name = fc.stringMatching(/^x-[a-z0-9-]{1,20}$/)
  const value = fc
    .uint8Array({ maxLength: 40 })
    .map(raw => raw.map(byte => (byte < 0x20 || byte === 0x7f ? 0x20 : byte)))

  it('has exactly its headers as lines, whatever bytes they hold', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(name, { maxLength: 10 }),
        value,
        fc.uint8Array({ maxLength: 100 }),
        (names, shared, body) => {
          const headers = [...names].sort().map(each => ({ name: each, value: shared }))
          const text = written({ headers, body })
          const head = text.slice(0, text.indexOf('\r\n\r\n'))
          expect(head.split('\r\n')).toHaveLength(5 + headers.length + 1)
          expect(text.slice(head.length + 4)).toBe(Buffer.from(body).toString('latin1'))
        },
      ),
      { numRuns: fullCount(200, 5_000) },
    )
  })
})
