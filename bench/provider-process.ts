// The provider of a run, as a process of its own, so that neither side shares its event loop with it: HTTPS with
// its own certificate authority. The token comes on the first line of standard input, port and CA go out on the
// first line of standard output; it ends when standard input does.
// A request says in its JSON body how long it is to be held before it is answered.
import { timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { makeAuthority } from '../selftest/certificates.js'
import { PROVIDER_HOST } from './provider-address.js'

const LARGEST_BODY_BYTES = 65_536

const token = await firstLine()
const authority = makeAuthority('chio bench CA')
const leaf = authority.issue([`DNS:${PROVIDER_HOST}`])
const server = createServer({ cert: leaf.certPem, key: leaf.keyPem }, (request, response) => {
  serve(request, response).catch(() => response.destroy())
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address() as AddressInfo
process.stdout.write(`${JSON.stringify({ port, caPem: authority.certPem })}\n`)

/** Reads on after it, so that the end of standard input ends this process. */
async function firstLine(): Promise<string> {
  const lines = createInterface({ input: process.stdin })
  lines.once('close', () => process.exit(0))
  const [line] = (await once(lines, 'line')) as [string]
  return line
}

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > LARGEST_BODY_BYTES) throw new RangeError(`body: expected at most ${LARGEST_BODY_BYTES} bytes`)
    chunks.push(chunk)
  }
  const { holdMs } = JSON.parse(Buffer.concat(chunks).toString('utf8')) as { holdMs: number }
  if (holdMs > 0) await sleep(holdMs)
  const isKnown = isAuthorized(request.headers.authorization)
  answer(response, isKnown ? 201 : 401, isKnown ? { state: 'open' } : { error: 'unauthorized' })
}

function isAuthorized(header: string | undefined): boolean {
  const [expected, got] = [Buffer.from(`Bearer ${token}`), Buffer.from(header ?? '')]
  return got.length === expected.length && timingSafeEqual(got, expected)
}

function answer(response: ServerResponse, status: number, document: object): void {
  const body = JSON.stringify(document)
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  })
  response.end(body)
}
