// A loopback issue tracker for trials: HTTPS with its own certificate authority, files an issue only with
// the right token, counts every request, and can be told to take its time.
import { once } from 'node:events'
import { createServer, type Server } from 'node:https'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { timingSafeEqual } from 'node:crypto'
import type { LocalProvider } from '../system/installation-plan.js'
import { makeAuthority } from './certificates.js'

const HOST = 'issues.localhost'
const LARGEST_ISSUE_BYTES = 1024 * 1024

/** One filed issue, as the tracker keeps it. */
export interface FiledIssue {
  readonly number: number
  readonly bytes: number
}

export interface IssueProvider {
  readonly url: string
  readonly local: LocalProvider
  /** Every request that arrived, with or without the right token. */
  readonly requests: number
  readonly issues: readonly FiledIssue[]
  close(): Promise<void>
}

export interface IssueProviderOptions {
  readonly token: string
  readonly delayMs?: number
}

/** Starts a provider on a port of the system's choice. */
export async function startIssueProvider(options: IssueProviderOptions): Promise<IssueProvider> {
  const authority = makeAuthority()
  const leaf = authority.issue([`DNS:${HOST}`])
  const issues: FiledIssue[] = []
  let requests = 0
  const server = createServer({ cert: leaf.certPem, key: leaf.keyPem }, (request, response) => {
    requests += 1
    void serve(request, response, options, issues)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `https://${HOST}:${port}/issues`,
    local: { host: HOST, port, address: '127.0.0.1', caPem: authority.certPem },
    issues,
    get requests() {
      return requests
    },
    close: () => closeServer(server),
  }
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  options: IssueProviderOptions,
  issues: FiledIssue[],
): Promise<void> {
  try {
    const bytes = await readLength(request)
    if (options.delayMs !== undefined) await sleep(options.delayMs)
    if (!isAuthorized(request.headers.authorization, options.token))
      return answer(response, 401, { error: 'unauthorized' })
    const issue = { number: issues.length + 1, bytes }
    issues.push(issue)
    answer(response, 201, { issue: issue.number, state: 'open' })
  } catch {
    response.destroy()
  }
}

async function readLength(request: IncomingMessage): Promise<number> {
  let bytes = 0
  for await (const chunk of request) {
    bytes += (chunk as Uint8Array).length
    if (bytes > LARGEST_ISSUE_BYTES)
      throw new RangeError(`issue: expected at most ${LARGEST_ISSUE_BYTES} bytes`)
  }
  return bytes
}

function isAuthorized(header: string | undefined, token: string): boolean {
  const expected = Buffer.from(`Bearer ${token}`)
  const got = Buffer.from(header ?? '')
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

async function closeServer(server: Server): Promise<void> {
  server.close()
  server.closeAllConnections()
  await once(server, 'close')
}
