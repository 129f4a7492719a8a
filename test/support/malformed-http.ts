// Owns requests that are none, or that no route takes: every number gives one, the same every time.
// Must never be reached from anything that ships.
import { CALLER_PATHS } from '../../protocol/caller-http.js'
import { CONTROL_TOKEN } from './sidecar.js'

const PATHS = [
  ...Object.values(CALLER_PATHS),
  '/',
  '/v1/openapi.json',
  '*',
  '/%00',
  '/v1/../v1/evaluate',
  'http://x/',
]
const METHODS = ['POST', 'GET', 'HEAD', 'PUT', 'CONNECT', 'TRACE', 'PURGE', 'post', 'NONE', '\0']
const VERSIONS = ['HTTP/1.1', 'HTTP/1.0', 'HTTP/2.0', 'HTTP/9.9', 'http/1.1', '']
const FIELDS = [
  ['Content-Length: 5', 'Content-Length: 6'],
  ['Content-Length: -1'],
  ['Content-Length: 1e3'],
  ['Content-Length: 10'],
  ['Transfer-Encoding: chunked', 'Content-Length: 3'],
  ['Transfer-Encoding: chunked, identity'],
  ['Transfer-Encoding: gzip'],
  ['Content-Type: text/html', 'Content-Length: 0'],
  ['Content-Type: application/json', 'Content-Length: 40'],
  ['Upgrade: websocket', 'Connection: Upgrade'],
  ['Expect: 100-continue', 'Content-Length: 7'],
  ['Expect: other'],
  ['Host: a', 'Host: b'],
  ['no colon here'],
  [' : folded'],
  ['X-\u0001: control'],
  ['X-Long: ' + 'x'.repeat(200_000)],
  Array.from({ length: 3_000 }, (_, at) => `a${at}: b`),
  ['Connection: close', 'Trailer: x', 'TE: trailers'],
] as const
const BODIES = [
  '',
  'xxxxx',
  '{',
  '5\r\nab',
  'ffffffffffffffff\r\n',
  '0\r\nx: y\r\n\r\n',
  '\0'.repeat(64),
  '[[[[',
]

const pick = <T>(of: readonly T[], number: number): T => of[number % of.length] as T

/** @param number any whole number from 0. */
export function malformedRequest(number: number): Buffer {
  if (number % 13 === 0) return noise(number)
  const bearer = number % 2 === 0 ? [`Authorization: Bearer ${CONTROL_TOKEN}`] : []
  const line = `${pick(METHODS, number)} ${pick(PATHS, number >> 1)} ${pick(VERSIONS, (number >> 2) % 7)}`
  const end = number % 11 === 0 ? '\n' : '\r\n'
  const head = [line, ...bearer, ...pick(FIELDS, (number * 7) >> 1)].join(end)
  return Buffer.from(`${head}${end}${end}${pick(BODIES, number >> 3)}`, 'latin1')
}

/** Bytes without any form. */
function noise(number: number): Buffer {
  let state = number + 1
  return Buffer.from(
    Array.from({ length: 64 + (number % 256) }, () => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) | 0
      return (state >>> 16) & 0xff
    }),
  )
}
