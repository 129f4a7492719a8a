// Our reader against Node's own parser: whatever ours accepts, Node reads with the same status and body.
// The other way round it is stricter on purpose; those cases are listed, and Node is shown to take them.
import { request } from 'node:http'
import { Duplex } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Method } from '../../../protocol/destination.js'
import { fullCount } from '../../support/counts.js'
import { chunked, lines, ok, readPieces } from '../../support/provider-answers.js'

interface Parsed {
  readonly status: number | undefined
  readonly body: string
}

/** Feeds an answer to Node's HTTP client over an in-memory stream. */
function nodeReads(bytes: Buffer, method: Method): Promise<Parsed | 'refused'> {
  return new Promise(resolve => {
    const stream = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() })
    const sent = request({ createConnection: () => stream, method, path: '/' }, response => {
      const pieces: Buffer[] = []
      response.on('data', (piece: Buffer) => pieces.push(piece))
      response.on('error', () => resolve('refused'))
      response.on('close', () => {
        const body = Buffer.concat(pieces).toString('latin1')
        resolve(response.complete ? { status: response.statusCode, body } : 'refused')
      })
    })
    let answered = false
    sent.on('response', () => (answered = true))
    sent.on('error', () => resolve('refused'))
    sent.on('close', () => (answered ? undefined : resolve('refused')))
    sent.end()
    setImmediate(() => {
      stream.push(bytes)
      stream.push(null)
    })
  })
}

function oursReads(bytes: Buffer, method: Method): Parsed | 'refused' {
  const verdict = readPieces([bytes], { method })
  if (typeof verdict === 'string') return 'refused'
  return { status: verdict.status, body: Buffer.from(verdict.body).toString('latin1') }
}

const statusLine = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.constantFrom('HTTP/1.1 200 OK', 'HTTP/1.1 404 Not Found', 'HTTP/1.1 503', 'HTTP/1.1 201 '),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom('HTTP/1.1 204 x', 'HTTP/1.1 205 x', 'HTTP/1.1 304 x', 'HTTP/1.1 206 \xe4'),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      'HTTP/1.0 200 OK',
      'HTTP/1.1 100 x',
      'HTTP/1.1 302 x',
      'HTTP/1.1 99 x',
      'HTTP/2 200 x',
    ),
  },
)
const plainHeader = fc.oneof(
  fc
    .tuple(
      fc.stringMatching(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,12}$/),
      fc.stringMatching(/^[ -~\t\x80-\xff]{0,20}$/),
    )
    .map(([name, value]) => `${name}:${value}`),
  fc.constantFrom(
    'Server: x',
    'Date: Mon, 30 Nov 2026 00:00:00 GMT',
    'Connection: close',
    'Connection: keep-alive',
    'X-A:',
    ' folded',
  ),
)
const body = fc.stringMatching(/^[ -~\r\n]{0,40}$/)
const chunksOf = (text: string, size: number): string => {
  const pieces = text.match(new RegExp(`[\\s\\S]{1,${size}}`, 'g')) ?? []
  return pieces.map(piece => `${piece.length.toString(16)}\r\n${piece}\r\n`).join('')
}
const framed = fc.oneof(
  { weight: 4, arbitrary: body.map(text => ({ headers: [`Content-Length: ${text.length}`], body: text })) },
  {
    weight: 4,
    arbitrary: fc
      .tuple(
        body,
        fc.integer({ min: 1, max: 9 }),
        fc.constantFrom('0\r\n\r\n', '00\r\n\r\n', '0;x\r\n\r\n', '0\r\nT: 1\r\n\r\n', '0\r\n'),
      )
      .map(([text, size, end]) => ({
        headers: ['Transfer-Encoding: chunked'],
        body: chunksOf(text, size) + end,
      })),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(
        fc.array(
          fc.constantFrom(
            'Content-Length: 3',
            'Content-Length: +3',
            'Content-Length: 3, 3',
            'Content-Length: 0x3',
            'Content-Length:',
            'Content-Length : 3',

            'Transfer-Encoding: chunked',
            'Transfer-Encoding: gzip, chunked',
            'Transfer-Encoding: identity',
            'Transfer-Encoding:\tCHUNKED',
          ),
          { maxLength: 3 },
        ),
        fc.constantFrom('', 'abc', '3\r\nabc\r\n0\r\n\r\n', 'abcdef'),
      )
      .map(([headers, text]) => ({ headers, body: text })),
  },
)

/** A few bytes flipped, dropped or put in, mostly signs that framing is made of. */
const mutations = fc.array(
  fc.record({
    at: fc.nat(400),
    kind: fc.constantFrom('flip', 'drop', 'insert'),
    byte: fc.oneof(fc.constantFrom(0, 9, 10, 13, 32, 48, 58, 59, 44), fc.nat(255)),
  }),
  { maxLength: 3 },
)
const answers = fc
  .record({
    statusLine,
    headers: fc.array(plainHeader, { maxLength: 4 }),
    framed,
    mutations,
    mutate: fc.nat(3),
    seed: fc.nat(),
  })
  .map(
    ({
      statusLine: status,
      headers,
      framed: { headers: framing, body: text },
      mutations: changes,
      mutate,
      seed,
    }) => {
      const all = [...headers]
      all.splice(seed % (headers.length + 1), 0, ...framing)
      const bytes = [...Buffer.from(lines(status, ...all, '') + text, 'latin1')]
      if (mutate === 0) for (const { at, kind, byte } of changes) apply(bytes, at % bytes.length, kind, byte)
      return Buffer.from(bytes)
    },
  )

function apply(bytes: number[], at: number, kind: string, byte: number): void {
  if (kind === 'flip') bytes[at] = byte
  else if (kind === 'drop') bytes.splice(at, 1)
  else bytes.splice(at, 0, byte)
}

describe('differential reading', () => {
  it(
    'accepts nothing that Node refuses or reads otherwise',
    async () => {
      let accepted = 0
      await fc.assert(
        fc.asyncProperty(
          answers,
          fc.constantFrom<Method>('GET', 'GET', 'POST', 'HEAD'),
          async (bytes, method) => {
            const ours = oursReads(bytes, method)
            if (ours === 'refused') return
            accepted++
            expect(await nodeReads(bytes, method)).toEqual(ours)
          },
        ),
        { numRuns: fullCount(3_000, 100_000) },
      )
      // Otherwise the property would be true of a reader that refuses all.
      expect(accepted).toBeGreaterThan(fullCount(600, 20_000))
    },
    fullCount(30_000, 600_000),
  )

  it('gives one verdict however the answer is cut', () => {
    fc.assert(
      fc.property(answers, fc.array(fc.nat(400), { maxLength: 6 }), (bytes, positions) => {
        const cuts = [
          0,
          ...positions.map(position => position % (bytes.length + 1)).sort((a, b) => a - b),
          bytes.length,
        ]
        const pieces = cuts.slice(1).map((cut, index) => bytes.subarray(cuts[index], cut))
        expect(readPieces(pieces, {})).toEqual(readPieces([bytes], {}))
      }),
      { numRuns: fullCount(2_000, 50_000) },
    )
  })

  it('never throws anything but a refusal, whatever bytes come', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.boolean(), (bytes, afterHead) => {
        const head = afterHead ? Buffer.from(chunked(''), 'latin1') : Buffer.alloc(0)
        expect(() => readPieces([Buffer.concat([head, bytes])], {})).not.toThrow()
      }),
      { numRuns: fullCount(2_000, 50_000) },
    )
  })
})

describe('stricter than Node on purpose', () => {
  it.each<[string, string]>([
    ['HTTP/1.0', lines('HTTP/1.0 200 OK', 'Content-Length: 2', '') + 'ok'],
    ['an interim answer first', lines('HTTP/1.1 103 Early', '') + ok(['Content-Length: 2'], 'ok')],
    ['100 Continue first', lines('HTTP/1.1 100 Continue', '') + ok(['Content-Length: 2'], 'ok')],
    ['a body up to the end of the stream', ok([], 'ok')],
    ['a chunk extension', chunked('2;a=b\r\nok\r\n0\r\n\r\n')],
    ['a trailer', chunked('2\r\nok\r\n0\r\nX-T: 1\r\n\r\n')],
    [
      '65 headers',
      ok([...Array.from({ length: 64 }, (_unused, index) => `X-${index}: 1`), 'Content-Length: 2'], 'ok'),
    ],
    ['a content-encoding', ok(['Content-Encoding: gzip', 'Content-Length: 2'], 'ok')],
    ['a redirect', lines('HTTP/1.1 302 x', 'Location: /', 'Content-Length: 2', '') + 'ok'],
    ['a body with 205', lines('HTTP/1.1 205 x', 'Content-Length: 2', '') + 'ok'],
    ['gzip before chunked', ok(['Transfer-Encoding: gzip, chunked'], '2\r\nok\r\n0\r\n\r\n')],
    ['a status above 599', lines('HTTP/1.1 999 x', 'Content-Length: 2', '') + 'ok'],
    ['an empty line first', `\r\n${ok(['Content-Length: 2'], 'ok')}`],
  ])('%s: refused here, read there', async (_what, text) => {
    const bytes = Buffer.from(text, 'latin1')
    expect(oursReads(bytes, 'GET')).toBe('refused')
    expect(await nodeReads(bytes, 'GET')).not.toBe('refused')
  })
})
