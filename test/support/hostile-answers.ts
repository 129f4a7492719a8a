// Owns what a hostile provider says and does, one behaviour a row, with the ending that the signed record must then
// have. The endings are of three kinds: answered, refused after acceptance, unknown.
import { gzipSync } from 'node:zlib'
import { setTimeout as delay } from 'node:timers/promises'
import type { AttemptOptions } from './test-attempt.js'
import { answer, type ProviderBehaviour } from './provider.js'

/** `response`, or the reason in the record of the attempt. */
export type HostileEnding =
  | 'response'
  | 'credential_reflected'
  | 'response_rejected'
  | 'response_too_large'
  | 'provider_lost'
  | 'provider_timeout'

export interface HostileRow {
  readonly name: string
  readonly behaviour: ProviderBehaviour
  /** More than one where the network decides which of two truths is met. */
  readonly endings: readonly HostileEnding[]
  readonly attempt?: AttemptOptions
}

const row = (
  name: string,
  endings: HostileEnding | readonly HostileEnding[],
  behaviour: ProviderBehaviour,
  attempt: AttemptOptions = {},
): HostileRow => ({ name, behaviour, endings: typeof endings === 'string' ? [endings] : endings, attempt })

const head = (...lines: string[]): string => [...lines, '', ''].join('\r\n')
const OK = head('HTTP/1.1 200 OK', 'Content-Length: 2') + 'ok'
const CHUNKED = head('HTTP/1.1 200 OK', 'Transfer-Encoding: chunked')
/** In one write, so that it arrives in one piece. */
const says =
  (text: string | Uint8Array): ProviderBehaviour =>
  ({ socket }) =>
    void socket.write(text)
const saysAndEnds =
  (text: string): ProviderBehaviour =>
  ({ socket }) =>
    void socket.end(text)
const resetsAfter =
  (text: string): ProviderBehaviour =>
  async ({ socket, reset }) => {
    socket.write(text)
    await delay(30)
    reset()
  }
/** Byte by byte, for longer than any deadline here; ends with the connection. */
const drips =
  (opening: string, drop: string): ProviderBehaviour =>
  async ({ socket }) => {
    socket.write(opening)
    for (let count = 0; count < 1_000 && !socket.destroyed; count += 1) {
      socket.write(drop)
      await delay(10)
    }
  }

const each = (text: string, write: (byte: number) => string): string =>
  [...Buffer.from(text)].map(write).join('')
const hex = (byte: number): string => byte.toString(16).padStart(2, '0')

/** Forms in which a provider sends the credential back. */
export function reflections(secret: string): HostileRow[] {
  const forms: readonly (readonly [string, string | Uint8Array])[] = [
    ['raw', secret],
    ['base64', Buffer.from(`Bearer ${secret}`).toString('base64')],
    ['base64url', Buffer.from(secret).toString('base64url')],
    ['base64 in lines', Buffer.from(`x${secret}`).toString('base64').replace(/.{8}/g, '$&\r\n')],
    ['hex', Buffer.from(secret).toString('hex')],
    ['percent', each(secret, byte => `%${hex(byte)}`)],
    ['percent twice', each(secret, byte => `%25${hex(byte)}`)],
    ['JSON escapes', each(secret, byte => `\\u00${hex(byte)}`)],
    ['HTML references', each(secret, byte => `&#${byte};`)],
    ['UTF-16', Buffer.from(secret, 'utf16le')],
  ]
  return [
    ...forms.map(([form, body]) =>
      row(`reflects the credential: ${form}`, 'credential_reflected', ({ socket }) => answer(socket, body)),
    ),
    row('reflects the whole request', 'credential_reflected', ({ request, socket }) =>
      answer(socket, request.head),
    ),
    row('reflects it in a header', 'credential_reflected', ({ request, socket }) =>
      answer(socket, 'ok', [`X-Echo: ${request.header('authorization')}`]),
    ),
    row(
      'reflects it across chunks',
      'credential_reflected',
      says(CHUNKED + chunks(secret.slice(0, 5), secret.slice(5))),
    ),
    row('reflects it in a cookie, which is dropped', 'response', ({ request, socket }) =>
      answer(socket, 'ok', [`Set-Cookie: t=${request.header('authorization')}`]),
    ),
  ]
}

const chunks = (...parts: string[]): string =>
  parts.map(part => `${part.length.toString(16)}\r\n${part}\r\n`).join('') + '0\r\n\r\n'

const REDIRECTS = ['300', '301', '302', '303', '305', '307', '308'].map(status =>
  row(
    `redirects with ${status}`,
    'response_rejected',
    says(head(`HTTP/1.1 ${status} x`, 'Location: https://evil.example/', 'Content-Length: 0')),
  ),
)

const QUICK = { timeoutMs: 300 }
const bomb = gzipSync(Buffer.alloc(10_000_000))

const BOMBS = [
  row(
    'bombs with gzip',
    'response_rejected',
    says(
      Buffer.concat([
        Buffer.from(head('HTTP/1.1 200 OK', 'Content-Encoding: gzip', `Content-Length: ${bomb.length}`)),
        bomb,
      ]),
    ),
  ),
  row(
    'bombs with a chain of encodings',
    'response_rejected',
    says(head('HTTP/1.1 200 OK', 'Content-Encoding: gzip, br, gzip', 'Content-Length: 2') + 'ok'),
  ),
  row(
    'announces more than the limit',
    'response_too_large',
    says(head('HTTP/1.1 200 OK', 'Content-Length: 70000')),
  ),
  row(
    'announces a chunk beyond all numbers',
    ['response_too_large', 'response_rejected'],
    says(`${CHUNKED}ffffffffffffffff\r\n`),
  ),
  row(
    'sends chunks without end',
    'response_too_large',
    says(CHUNKED + `1000\r\n${'x'.repeat(4_096)}\r\n`.repeat(20)),
  ),
  row(
    'sends 100,000 headers',
    'response_rejected',
    says(`HTTP/1.1 200 OK\r\n${'X: y\r\n'.repeat(100_000)}\r\n`),
  ),
  row(
    'sends a header of a megabyte',
    'response_rejected',
    says(`HTTP/1.1 200 OK\r\nX: ${'y'.repeat(1_048_576)}\r\n\r\n`),
  ),
  row('sends trailers without end', 'response_rejected', says(`${CHUNKED}0\r\n${'T: x\r\n'.repeat(10_000)}`)),
]

const RESETS = [
  row('resets after the request', 'provider_lost', ({ reset }) => reset()),
  row('resets inside the status line', 'provider_lost', resetsAfter('HTTP/1.1 2')),
  row('resets inside the head', 'provider_lost', resetsAfter('HTTP/1.1 200 OK\r\nContent-Le')),
  row('resets behind the head', 'provider_lost', resetsAfter(head('HTTP/1.1 200 OK', 'Content-Length: 9'))),
  row(
    'resets inside the body',
    'provider_lost',
    resetsAfter(`${head('HTTP/1.1 200 OK', 'Content-Length: 9')}part`),
  ),
  row('resets inside a chunk', 'provider_lost', resetsAfter(`${CHUNKED}9\r\npart`)),
  row('resets behind the whole answer', ['response'], resetsAfter(OK)),
  row('ends without a byte', 'provider_lost', saysAndEnds('')),
  row('ends inside the head', 'provider_lost', saysAndEnds('HTTP/1.1 200 OK\r\nContent-')),
  row('half-closes behind the whole answer', 'response', saysAndEnds(OK)),
  row('closes at once, both ways', 'provider_lost', ({ socket }) => void socket.destroy()),
]

const LIES = [
  row(
    'announces less than it sends',
    'response_rejected',
    says(head('HTTP/1.1 200 OK', 'Content-Length: 2') + 'okay'),
  ),
  row(
    'announces more than it sends, and ends',
    'provider_lost',
    saysAndEnds(`${head('HTTP/1.1 200 OK', 'Content-Length: 9')}ok`),
  ),
  row(
    'announces more than it sends, and waits',
    'provider_timeout',
    says(`${head('HTTP/1.1 200 OK', 'Content-Length: 9')}ok`),
    QUICK,
  ),
  row('announces nothing and ends', 'response_rejected', saysAndEnds(`${head('HTTP/1.1 200 OK')}ok`)),
  row(
    'announces two lengths',
    'response_rejected',
    says(head('HTTP/1.1 200 OK', 'Content-Length: 2', 'Content-Length: 3') + 'ok'),
  ),
  row(
    'announces length and chunks',
    'response_rejected',
    says(head('HTTP/1.1 200 OK', 'Content-Length: 2', 'Transfer-Encoding: chunked') + '2\r\nok\r\n0\r\n\r\n'),
  ),
  row('sends more than a chunk announces', 'response_rejected', says(`${CHUNKED}2\r\nokay\r\n0\r\n\r\n`)),
  row(
    'sends less than a chunk announces, and ends',
    'provider_lost',
    saysAndEnds(`${CHUNKED}9\r\nok\r\n0\r\n\r\n`),
  ),
  row('sends a body with 204', 'response_rejected', says(head('HTTP/1.1 204 x', 'Content-Length: 2') + 'ok')),
]

const MANNERS = [
  row('answers twice at once', 'response_rejected', says(OK + OK)),
  row('answers again when it was heard', 'response', async ({ socket }) => {
    socket.write(OK)
    await delay(50)
    if (!socket.destroyed) socket.write(OK)
  }),
  row(
    'floods with early hints',
    'response_rejected',
    says(head('HTTP/1.1 103 x', 'Link: </x>').repeat(1_000) + OK),
  ),
  row('continues first', 'response_rejected', says(head('HTTP/1.1 100 Continue') + OK)),
  row(
    'switches protocols',
    'response_rejected',
    says(head('HTTP/1.1 101 x', 'Upgrade: websocket', 'Connection: upgrade')),
  ),
  row('speaks HTTP/1.0', 'response_rejected', says(head('HTTP/1.0 200 OK', 'Content-Length: 2') + 'ok')),
  // No line ends in it: nothing to refuse yet, and nothing more comes.
  row('speaks HTTP/2', 'provider_timeout', says(Buffer.from('00000004000000000000', 'hex')), QUICK),
  row('speaks something else', 'response_rejected', says('SSH-2.0-OpenSSH_9.2\r\n')),
]

/** Those that never end by themselves: the deadline does. */
export const STALLS: readonly HostileRow[] = [
  row('never answers', 'provider_timeout', () => undefined, QUICK),
  row('stalls inside the head', 'provider_timeout', says('HTTP/1.1 200 OK\r\nContent-Le'), QUICK),
  row(
    'stalls inside the body',
    'provider_timeout',
    says(`${head('HTTP/1.1 200 OK', 'Content-Length: 9')}ok`),
    QUICK,
  ),
  row('drips the head', 'provider_timeout', drips('HTTP/1.1 200 OK\r\nX-A: ', 'y'), QUICK),
  row('drips chunks', 'provider_timeout', drips(CHUNKED, '1\r\nx\r\n'), QUICK),
]

export const HOSTILE_ROWS: readonly HostileRow[] = [
  ...REDIRECTS,
  ...BOMBS,
  ...RESETS,
  ...LIES,
  ...MANNERS,
  ...STALLS,
]
