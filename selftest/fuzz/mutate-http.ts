// Owns changes of HTTP answers that keep most of their form: lines away, doubled, moved or replaced, framing
// fields at their limits, chunk sizes that lie, line ends that are not.
import { mutateBytes } from './mutate-bytes.js'
import type { Random } from './random.js'

const STATUS = [
  'HTTP/1.1 200 OK',
  'HTTP/1.1 404 Not Found',
  'HTTP/1.1 503',
  'HTTP/1.1 201 ',
  'HTTP/1.1 204 x',
]
  .concat('HTTP/1.1 205 x', 'HTTP/1.1 206 \xe4', 'HTTP/1.1 304 x', 'HTTP/1.0 200 OK', 'HTTP/1.1 100 x')
  .concat(
    'HTTP/1.1 302 x',
    'HTTP/1.1  200 OK',
    'HTTP/2 200 x',
    'HTTP/1.1 2000 x',
    'HTTP/1.1 101 x',
    'ICY 200 OK',
  )
  .concat(`HTTP/1.1 200 ${'r'.repeat(1_020)}`, 'http/1.1 200 OK', 'HTTP/1.1 200\tOK', 'HTTP/1.1 599 x', '')
const LENGTHS = [
  '0',
  '2',
  '3',
  '5',
  '+3',
  '-1',
  '3, 3',
  '0x3',
  '',
  '3 ',
  '\t3',
  '3\t',
  '03',
  '1e1',
  '٣',
  '3;',
  '3,',
].concat('9007199254740993', '18446744073709551618', '4294967299', '00000000000000000003', '3\x0b', '3\xa0')
const CODINGS = [
  'chunked',
  'CHUNKED',
  'chunked ',
  '\tchunked',
  'gzip, chunked',
  'chunked, chunked',
  'identity',
].concat(
  'chunked;x',
  'xchunked',
  'chunked,',
  ', chunked',
  'gzip',
  '',
  '"chunked"',
  'chunked\t',
  'chunked\x0b',
)
const FIELDS = [
  'Server: x',
  'X-A:',
  'X-A: \t b \t',
  ' folded',
  '\tfolded',
  'Connection: close',
  'No-Colon',
  ': x',
]
  .concat(
    'X A: 1',
    'X-A : 1',
    'X-\x80: 1',
    'X-A: \x80\xff',
    'X-A: a\x00b',
    'X-A: a\rb',
    'X-A: \x01',
    'X-A: \x7f',
  )
  .concat('Content-Encoding: gzip', 'Trailer: X-T', 'Upgrade: h2c', 'Connection: upgrade', 'Set-Cookie: a=b')
  .concat(
    `X-${'n'.repeat(126)}: 1`,
    `X-${'n'.repeat(127)}: 1`,
    `X-A: ${'v'.repeat(8_192)}`,
    'Keep-Alive: max=0',
  )
const CHUNKS = [
  '0',
  '00',
  '1',
  '3',
  '5',
  'a',
  'A',
  '0x3',
  '3;x=y',
  '3 ',
  ' 3',
  '+3',
  '-3',
  'ffffffffffffffff',
  '',
].concat('00000000000000003', '10000000000000003', '3\t', '3;', '3\x00', '80000000', 'g')
const ENDS = ['\n', '\r', '\r\r\n', '\n\r', '\r\n\r\n', ' \r\n', '\0\r\n', '']
const TAILS = [
  '0\r\n\r\n',
  '0\r\n',
  '0\r\nX-T: 1\r\n\r\n',
  '0;x\r\n\r\n',
  '00\r\n\r\n',
  '3\r\nabc\r\n0\r\n\r\n',
  'HTTP/1.1 200 OK\r\n',
]

type Change = (lines: string[], random: Random) => void

const CHANGES: readonly Change[] = [
  (lines, random) => void lines.splice(0, 1, random.pick(STATUS)),
  (lines, random) => void lines.splice(1, 0, `Content-Length: ${random.pick(LENGTHS)}`),
  (lines, random) => void lines.splice(1, 0, `Transfer-Encoding: ${random.pick(CODINGS)}`),
  (lines, random) => void lines.splice(1 + random.below(3), 0, random.pick(FIELDS)),
  (lines, random) => void lines.splice(1 + random.below(lines.length), 1),
  (lines, random) => void lines.splice(random.below(lines.length), 0, random.pick(lines)),
  (lines, random) => void lines.splice(random.below(lines.length), 1, random.pick(CHUNKS)),
  (lines, random) => void lines.splice(random.below(lines.length + 1), 0, random.pick(CHUNKS)),
  (lines, random) => void lines.push(random.pick(TAILS)),
  (lines, random) => swap(lines, random.below(lines.length), random.below(lines.length)),
  (lines, random) => caseOf(lines, random.below(lines.length), random),
  (lines, random) =>
    void lines.splice(1, 0, ...Array.from({ length: 60 + random.below(6) }, (_, at) => `X-${at}: 1`)),
]

/** One to four changes of lines, of a line end, or of bytes. */
export function mutateHttp(base: Uint8Array, other: Uint8Array, random: Random): Uint8Array {
  if (random.once(4)) return mutateBytes(base, other, random)
  const lines = Buffer.from(base).toString('latin1').split('\r\n')
  const rounds = 1 + random.below(random.once(3) ? 4 : 1)
  for (let round = 0; round < rounds; round++) random.pick(CHANGES)(lines, random)
  if (!random.once(8)) return Buffer.from(lines.join('\r\n'), 'latin1')
  const odd = random.below(lines.length)
  const text = lines.map(
    (line, at) => line + (at === odd ? random.pick(ENDS) : at < lines.length - 1 ? '\r\n' : ''),
  )
  return Buffer.from(text.join(''), 'latin1')
}

function swap(lines: string[], one: number, another: number): void {
  const line = lines[one] ?? ''
  lines[one] = lines[another] ?? ''
  lines[another] = line
}

function caseOf(lines: string[], at: number, random: Random): void {
  const line = lines[at] ?? ''
  lines[at] = random.once(2) ? line.toLowerCase() : line.toUpperCase()
}
