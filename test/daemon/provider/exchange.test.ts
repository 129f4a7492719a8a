import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { answer, type ProviderBehaviour, startProvider, type TestProvider } from '../../support/provider.js'
import {
  endingOf,
  exchangeOn,
  exchangeWith,
  opened,
  SECRET,
  termsFor,
} from '../../support/provider-exchange.js'
import { HeldClock } from '../../support/clock.js'

const pause = (milliseconds: number): Promise<void> =>
  new Promise(resolve => setTimeout(resolve, milliseconds))
let provider: TestProvider
beforeAll(async () => {
  provider = await startProvider()
})
afterAll(() => provider.close())

const says =
  (...pieces: (string | Uint8Array | number)[]): ProviderBehaviour =>
  async ({ socket }) => {
    for (const piece of pieces) {
      if (typeof piece === 'number') await pause(piece)
      else if (!socket.destroyed) socket.write(piece)
    }
  }
const resetsAfter =
  (text: string): ProviderBehaviour =>
  async ({ socket, reset }) => {
    socket.write(text)
    await pause(30)
    reset()
  }
const head = (...lines: string[]): string => [...lines, '', ''].join('\r\n')
const TOKEN = SECRET.toString()

describe('an answered request', () => {
  it('gives status, sorted headers and body, and reached the provider once as written', async () => {
    provider.behave(({ socket }) =>
      answer(socket, 'created', ['X-B: 2', 'Set-Cookie: a=b', 'Etag: "1"', 'Connection: close']),
    )
    const before = provider.hits
    const result = await exchangeWith(provider)
    if (result.ending !== 'response') throw result.error
    const { status, headers, body } = result.response
    expect([status, Buffer.from(body).toString()]).toEqual([200, 'created'])
    expect(headers.map(({ name, value }) => `${name}: ${Buffer.from(value).toString()}`)).toEqual([
      'content-length: 7',
      'content-type: text/plain',
      'etag: "1"',
      'x-b: 2',
    ])
    expect(provider.hits).toBe(before + 1)
    const request = provider.requests.at(-1)
    expect(request?.header('authorization')).toBe(`Bearer ${TOKEN}`)
    expect(request?.header('host')).toBe(`provider.test:${provider.port}`)
    expect(request?.body.toString()).toBe('{"title":"x"}')
  })

  it('is wiped from the buffer, and the connection is gone', async () => {
    provider.behave(({ socket }) => answer(socket, 'ok'))
    let written: Buffer = Buffer.alloc(0)
    const connection = await opened(termsFor(provider))
    await exchangeOn(connection, provider, { onRequest: request => (written = request) })
    expect(written.length).toBeGreaterThan(100)
    expect(written.every(byte => byte === 0)).toBe(true)
    expect(connection.isAlive()).toBe(false)
    expect(endingOf(await exchangeOn(connection, provider))).toBe('not_sent: connection_lost')
  })

  it('of 512 KiB with an answer of 2 MiB fits, and is not changed', async () => {
    const large = Buffer.alloc(2_097_152 - 200, 'r')
    provider.behave(({ socket }) => answer(socket, large))
    const body = Buffer.alloc(524_288, 'b')
    const result = await exchangeWith(provider, { request: { body }, limit: 2_097_152 })
    if (result.ending !== 'response') throw result.error
    expect(Buffer.compare(Buffer.from(result.response.body), large)).toBe(0)
    expect(Buffer.compare(provider.requests.at(-1)?.body ?? Buffer.alloc(0), body)).toBe(0)
  })

  it('may be answered in drips within the deadline, cut anywhere', async () => {
    const text = head('HTTP/1.1 200 OK', 'Transfer-Encoding: chunked') + '2\r\nok\r\n0\r\n\r\n'
    provider.behave(async ({ socket }) => {
      for (const byte of Buffer.from(text)) {
        socket.write(Uint8Array.of(byte))
        await new Promise(setImmediate)
      }
    })
    expect(endingOf(await exchangeWith(provider))).toBe('response 200')
  })

  it.each([
    ['GET', 'HTTP/1.1 204 No Content'],
    ['HEAD', 'HTTP/1.1 200 OK'],
    ['GET', 'HTTP/1.1 304 Not Modified'],
  ] as const)('may have no body: %s %s', async (method, statusLine) => {
    provider.behave(says(head(statusLine, 'Etag: "1"')))
    const destination = { ...termsDestination(), method }
    expect(
      endingOf(await exchangeWith(provider, { request: { destination, body: new Uint8Array(0) } })),
    ).toMatch(/^response/)
  })
})

const termsDestination = () => ({
  exactPathAndQuery: '/v1',
  explicitPort: provider.port,
  method: 'POST' as const,
  normalizedHost: provider.host,
  scheme: 'https' as const,
})

describe('the ending says whether it may have happened', () => {
  let before = 0
  beforeEach(() => {
    before = provider.hits
  })
  const partial = head('HTTP/1.1 200 OK', 'Content-Length: 10') + 'part'
  const chunkedHead = head('HTTP/1.1 200 OK', 'Transfer-Encoding: chunked')
  const bomb = gzipSync(Buffer.alloc(10_000_000))
  const okWith = (...headers: string[]): string =>
    head('HTTP/1.1 200 OK', 'Content-Length: 2', ...headers) + 'ok'

  it.each<[string, ProviderBehaviour, string]>([
    ['POST counted, then reset', ({ reset }) => reset(), 'unknown: connection_reset'],
    ['reset inside the head', resetsAfter('HTTP/1.1 2'), 'unknown: connection_reset'],
    ['reset inside the body', resetsAfter(partial), 'unknown: connection_reset'],
    ['closed without a byte', ({ socket }) => void socket.end(), 'unknown: response_truncated'],
    [
      'closed inside the head',
      ({ socket }) => void socket.end('HTTP/1.1 200 OK\r\nContent-'),
      'unknown: response_truncated',
    ],
    ['closed inside the body', ({ socket }) => void socket.end(partial), 'unknown: response_truncated'],
    [
      'closed inside a chunk',
      ({ socket }) => void socket.end(`${chunkedHead}5\r\nhel`),
      'unknown: response_truncated',
    ],
    [
      'closed before the last chunk',
      ({ socket }) => void socket.end(`${chunkedHead}2\r\nok\r\n`),
      'unknown: response_truncated',
    ],
    [
      'redirected',
      says(head('HTTP/1.1 307 x', 'Location: https://evil.example/', 'Content-Length: 0')),
      'rejected: redirect',
    ],
    [
      'gzip',
      says(head('HTTP/1.1 200 OK', 'Content-Encoding: gzip', `Content-Length: ${bomb.length}`), bomb),
      'rejected: content_encoding',
    ],
    [
      'a chain of encodings',
      says(okWith('Content-Encoding: gzip, gzip, gzip')),
      'rejected: content_encoding',
    ],
    [
      '100,000 headers',
      says('HTTP/1.1 200 OK\r\n', 'X: y\r\n'.repeat(100_000), '\r\n'),
      'rejected: too_many_headers',
    ],
    [
      'endless chunks',
      says(chunkedHead, '1000\r\n'.concat('x'.repeat(4_096), '\r\n').repeat(20)),
      'rejected: response_too_large',
    ],
    ['early hints', says(head('HTTP/1.1 103 Early', 'Link: </x>'), okWith()), 'rejected: status_range'],
    ['two answers', says(okWith() + okWith()), 'rejected: surplus_bytes'],
    ['a retained header twice', says(okWith('Vary: a', 'Vary: b')), 'rejected: duplicate_header'],
    ['HTTP/1.0', says(head('HTTP/1.0 200 OK', 'Content-Length: 2') + 'ok'), 'rejected: status_line'],
    ['not HTTP at all', says('SSH-2.0-OpenSSH_9.2\r\n'), 'rejected: status_line'],
    ['an answer before the body was read', ({ socket }) => answer(socket, 'no'), 'response 200'],
  ])('%s', async (_what, behaviour, ending) => {
    provider.behave(behaviour)
    const result = await exchangeWith(provider)
    expect(endingOf(result)).toBe(ending)
    expect(provider.hits).toBe(before + 1)
    if (result.ending === 'response') return
    expect(result.error.outcome).toBe(result.ending === 'unknown' ? 'unknown' : 'completed')
  })

  it('and nothing is sent a second time, not even a GET, though another connection would serve it', async () => {
    provider.behave(({ socket, hit, reset }) => (hit === before + 1 ? reset() : answer(socket, 'again')))
    const destination = { ...termsDestination(), method: 'GET' as const }
    const connectionsBefore = provider.connections
    const result = await exchangeWith(provider, { request: { destination, body: new Uint8Array(0) } })
    await pause(100)
    expect([endingOf(result), provider.hits - before, provider.connections - connectionsBefore]).toEqual([
      'unknown: connection_reset',
      1,
      1,
    ])
  })
})

describe('the provider deadline is one comparison over everything', () => {
  it.each<[string, ProviderBehaviour]>([
    ['silence', () => undefined],
    ['a stalled head', says('HTTP/1.1 200 OK\r\n')],
    ['a stalled body', says(head('HTTP/1.1 200 OK', 'Content-Length: 9') + 'x')],
    [
      'a drip that never ends',
      says(
        head('HTTP/1.1 200 OK', 'Transfer-Encoding: chunked'),
        ...Array.from({ length: 200 }, () => ['1\r\nx\r\n', 5]).flat(),
      ),
    ],
  ])('ends %s as unknown, in time', async (_what, behaviour) => {
    provider.behave(behaviour)
    const started = Date.now()
    expect(endingOf(await exchangeWith(provider, { deadlineMs: 120 }))).toBe('unknown: deadline_passed')
    expect(Date.now() - started).toBeLessThan(1_500)
  })

  it('refuses a complete answer that came after it, though no timer has fired', async () => {
    const clock = new HeldClock()
    provider.behave(({ socket }) => {
      clock.pass(31_000)
      answer(socket, 'late')
    })
    expect(endingOf(await exchangeWith(provider, { clock, deadlineMs: 30_000 }))).toBe(
      'unknown: deadline_passed',
    )
  })

  it('is not moved by a step of the wall clock', async () => {
    const clock = new HeldClock()
    provider.behave(({ socket }) => {
      clock.stepWall(3_600_000)
      answer(socket, 'ok')
    })
    expect(endingOf(await exchangeWith(provider, { clock, deadlineMs: 30_000 }))).toBe('response 200')
  })

  it('that has passed before the write sends nothing', async () => {
    const before = provider.hits
    const result = await exchangeWith(provider, { deadlineMs: 0 })
    await pause(50)
    expect([endingOf(result), provider.hits - before]).toEqual(['not_sent: deadline_passed', 0])
  })
})

describe('a reflected credential is rejected after acceptance', () => {
  const chunks = (...parts: string[]): string =>
    head('HTTP/1.1 200 OK', 'Transfer-Encoding: chunked') +
    parts.map(part => `${part.length.toString(16)}\r\n${part}\r\n`).join('') +
    '0\r\n\r\n'
  const reflecting =
    (body: string, ...headers: string[]): ProviderBehaviour =>
    ({ socket }) =>
      answer(socket, body, headers)

  it.each<[string, ProviderBehaviour]>([
    ['raw in the body', reflecting(`you sent ${TOKEN}`)],
    ['raw in a header', reflecting('ok', `X-Echo: ${TOKEN}`)],
    ['raw across chunks', says(chunks(TOKEN.slice(0, 7), TOKEN.slice(7, 8), TOKEN.slice(8)))],
    ['raw across chunks and packets', says(...splitAt(chunks(TOKEN.slice(0, 7), TOKEN.slice(7)), 60))],
    ['base64 in the body', reflecting(Buffer.from(`Bearer ${TOKEN}`).toString('base64'))],
    ['base64 in a header', reflecting('ok', `X-Echo: ${Buffer.from(TOKEN).toString('base64')}`)],
    ['hex in the body', reflecting(SECRET.toString('hex'))],
    ['percent-encoded', reflecting([...SECRET].map(byte => `%${byte.toString(16)}`).join(''))],
    ['JSON-escaped', reflecting(`{"a":"${[...SECRET].map(byte => `\\u00${byte.toString(16)}`).join('')}"}`)],
    ['in a header name', reflecting('ok', `X-${TOKEN.replaceAll('_', '-')}: v`)],
  ])('%s', async (_what, behaviour) => {
    const secret = _what === 'in a header name' ? Buffer.from(TOKEN.replaceAll('_', '-')) : SECRET
    provider.behave(behaviour)
    const before = provider.hits
    const result = await exchangeWith(provider, { secret })
    expect([endingOf(result), provider.hits - before]).toEqual(['rejected: credential_reflected', 1])
    if (result.ending !== 'rejected') return
    expect(result.error.message).not.toContain(TOKEN)
    expect(result.error).toMatchObject({ code: 'response_rejected', outcome: 'completed' })
  })

  it.each(['Set-Cookie', 'WWW-Authenticate', 'Authorization'])(
    'but not for what never reaches the caller: %s',
    async name => {
      provider.behave(reflecting('ok', `${name}: ${TOKEN}`))
      expect(endingOf(await exchangeWith(provider))).toBe('response 200')
    },
  )
})

function splitAt(text: string, ...positions: number[]): (string | number)[] {
  const cuts = [0, ...positions, text.length]
  return positions
    .concat(text.length)
    .flatMap((_unused, index) => [text.slice(cuts[index], cuts[index + 1]), 15])
}
