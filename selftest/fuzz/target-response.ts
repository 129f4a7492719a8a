// Owns the fuzzing of the provider response reader. However an answer is cut, the verdict is one; and what ours
// takes, Node's own parser takes with the same status, header lines and body. Ours may refuse more.
import { type ReceivedResponse, ResponseReader } from '../../daemon/provider/response-reader.js'
import { ResponseRefused } from '../../daemon/provider/response-refusal.js'
import { type Method, METHODS } from '../../protocol/destination.js'
import { isBrokerError } from '../../protocol/errors.js'
import { labelled, readLabel } from './label.js'
import { mutateHttp } from './mutate-http.js'
import { type NodeReading, NodeReader } from './node-reading.js'
import type { Random } from './random.js'
import { piecesOf } from './target-frame.js'
import { accepted, FuzzFinding, type FuzzTarget, type Verdict, withoutNumbers } from './target.js'

const LIMITS = [20, 64, 200, 16_384, 65_536]
const MAXIMUM_INPUT_BYTES = 32_768

let node: NodeReader | undefined

export const responseTarget: FuzzTarget = {
  name: 'response',
  reads: 'answers of providers, against Node',
  maximumInputBytes: MAXIMUM_INPUT_BYTES,
  seeds: () => ANSWERS.map(answer => labelled('GET 65536', Buffer.from(answer, 'latin1'))),
  mutate(base, other, random) {
    const { label, rest } = readLabel(base)
    return labelled(random.once(8) ? labelOf(random) : label, mutateHttp(rest, readLabel(other).rest, random))
  },
  check: checkResponse,
  async close() {
    await node?.close()
    node = undefined
  },
}

const lines = (...all: string[]): string => all.map(line => `${line}\r\n`).join('')
const ANSWERS: readonly string[] = [
  lines('HTTP/1.1 200 OK', 'Content-Type: application/json', 'Content-Length: 2', '') + '{}',
  lines('HTTP/1.1 201 Created', 'Server: x', 'Date: Mon, 30 Nov 2026 00:00:00 GMT', 'Content-Length: 0', ''),
  lines('HTTP/1.1 200 OK', 'Transfer-Encoding: chunked', '', '3', 'abc', '0A', '0123456789', '0', ''),
  lines('HTTP/1.1 204 No Content', 'ETag: "1"', ''),
  lines('HTTP/1.1 304 Not Modified', 'Content-Length: 10', ''),
  lines('HTTP/1.1 404 Not Found', 'Connection: close', 'X-Empty:', 'Content-Length: 3', '') + 'a\r\n',
  lines('HTTP/1.1 103 Early', 'Link: </x>', '', 'HTTP/1.1 200 OK', 'Content-Length: 2', '') + 'ok',
  lines('HTTP/1.1 307 x', 'Location: https://evil.example/', 'Content-Length: 0', ''),
]

function labelOf(random: Random): string {
  return `${random.pick(METHODS)} ${random.pick(LIMITS)}`
}

interface Terms {
  readonly method: Method
  readonly responseLimitBytes: number
}

function readTerms(label: string): Terms {
  const [method = '', limit = ''] = label.split(' ')
  const bytes = Number(limit)
  return {
    method: METHODS.find(known => known === method) ?? 'GET',
    responseLimitBytes: Number.isInteger(bytes) && bytes > 0 ? bytes : 65_536,
  }
}

async function checkResponse(input: Uint8Array): Promise<Verdict> {
  const { label, rest } = readLabel(input)
  const terms = readTerms(label)
  const [whole, ...cut] = piecesOf(rest).map(pieces => oursReads(pieces, terms)) as [Ours, ...Ours[]]
  for (const other of cut) assertSame(whole, other)
  if (typeof whole === 'string') return { word: whole === 'incomplete' ? whole : 'refused', signal: whole }
  node ??= await NodeReader.open()
  assertNodeAgrees(whole, await node.read(rest, terms.method))
  if (whole.headBytes + whole.body.length > terms.responseLimitBytes)
    throw new FuzzFinding('an answer above its limit was taken')
  return accepted(`${terms.method} ${whole.status} ${whole.fields.length} ${Math.min(whole.body.length, 40)}`)
}

/** A whole answer, or the reason why it is none. */
type Ours = ReceivedResponse | string

function oursReads(pieces: readonly Uint8Array[], terms: Terms): Ours {
  const reader = new ResponseReader(terms)
  try {
    for (const piece of pieces) reader.push(piece)
  } catch (error) {
    if (!(error instanceof ResponseRefused)) throw error
    if (!isBrokerError(error) || error.outcome !== 'completed')
      throw new FuzzFinding('a refused answer does not say that the request was accepted')
    return `${error.reason} ${withoutNumbers(error.message)}`
  }
  return reader.complete ? reader.result() : 'incomplete'
}

function assertSame(whole: Ours, cut: Ours): void {
  if (typeof whole === 'string' || typeof cut === 'string') {
    if (whole !== cut) throw new FuzzFinding('an answer has another verdict when it is cut')
    return
  }
  if (textOf(whole) !== textOf(cut)) throw new FuzzFinding('an answer reads differently when it is cut')
}

function textOf({ status, fields, body, headBytes }: ReceivedResponse): string {
  const named = fields.map(({ name, value }) => [name, Buffer.from(value).toString('latin1')])
  return JSON.stringify([status, headBytes, named, Buffer.from(body).toString('latin1')])
}

function assertNodeAgrees({ status, fields, body }: ReceivedResponse, theirs: NodeReading | null): void {
  if (theirs === null) throw new FuzzFinding('an answer was taken that Node refuses or finds cut')
  if (theirs.status !== status) throw new FuzzFinding('Node reads another status')
  if (Buffer.compare(theirs.body, body) !== 0) throw new FuzzFinding('Node reads another body')
  const ours = fields.map(({ name, value }) => [
    name,
    withoutEndingBlanks(Buffer.from(value).toString('latin1')),
  ])
  const named = theirs.headers.map(([name, value]) => [name, withoutEndingBlanks(value)])
  if (JSON.stringify(ours) !== JSON.stringify(named)) throw new FuzzFinding('Node reads other header lines')
}

/** A tab behind a value is dropped later by ours; Node keeps it too in some fields. */
function withoutEndingBlanks(value: string): string {
  return value.replace(/[ \t]+$/, '')
}
