// The client of the sidecar: three steps over either address; what it refuses of a reply; what it says when one is lost.
import { chmodSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTcpServer, type Server as TcpServer, type Socket } from 'node:net'
import { inspect } from 'node:util'
import { afterEach, describe, expect, test } from 'vitest'
import { systemClock as clock } from '../../native/clock.js'
import type { CapabilityToken } from '../../protocol/capability-token.js'
import { SidecarClient, SidecarRefusal, UnsettledReply } from '../../sidecar/client.js'
import {
  CONTROL_TOKEN,
  OWN,
  type ScriptedKernel,
  scriptedKernel,
  socketPath,
  type TestSidecar,
  testSidecar,
} from '../support/sidecar.js'

const ends: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

const nonce = OWN.startBody.execution_nonce
const { request_id: requestId } = nonce.nonce.bound_to
const evaluate = {
  capability: OWN.evaluateBody['capability'] as CapabilityToken,
  parameters: { note: 'needle-of-the-arguments' },
  requestId,
  toolName: 'append',
  toolServer: 'notes',
}
const start = { arguments: { note: 'x' }, controlToken: CONTROL_TOKEN, executionNonce: nonce }
const { authorization, report } = OWN.reportBody
const reported = { authorization, controlToken: CONTROL_TOKEN, report }

async function served(
  options: Parameters<typeof testSidecar>[1] = {},
): Promise<{ kernel: ScriptedKernel; client: SidecarClient; sidecar: TestSidecar }> {
  const kernel = scriptedKernel()
  const sidecar = await testSidecar(kernel, options)
  ends.push(() => sidecar.running.close())
  const { listen } = sidecar
  const address =
    'path' in listen
      ? listen
      : { url: `http://${listen.host === '::1' ? '[::1]' : listen.host}:${listen.port}` }
  return { client: new SidecarClient(address, { clock }), kernel, sidecar }
}

describe.each([
  ['a Unix socket', {}],
  ['127.0.0.1', { host: '127.0.0.1' }],
  ['::1', { host: '::1' }],
] as const)('over %s', (_name, options) => {
  test('the three steps are replies as they are, denials too', async () => {
    const { client, kernel } = await served(options)
    expect(await client.evaluateToolCall(evaluate)).toEqual(OWN.reserved)
    expect(await client.startMediatedExecution(start)).toEqual(OWN.started)
    expect(await client.reportMediatedExecution(reported)).toEqual(OWN.reconciled)
    kernel.answer = {
      evaluate: () => Promise.resolve(OWN.evaluateDenied),
      report: () => Promise.resolve(OWN.reportDenied),
      start: () => Promise.resolve(OWN.startDenied),
    }
    expect(await client.evaluateToolCall(evaluate)).toEqual(OWN.evaluateDenied)
    expect(await client.startMediatedExecution(start)).toEqual(OWN.startDenied)
    expect(await client.reportMediatedExecution(reported)).toEqual(OWN.reportDenied)
    expect(kernel.asked).toEqual(['evaluate', 'start', 'report', 'evaluate', 'start', 'report'])
  })
})

describe('a refusal of the sidecar', () => {
  test('has its own code, and says whether anything may have been done', async () => {
    const { client, kernel } = await served()
    kernel.answer = { start: () => Promise.reject(new Error('any')) }
    const refusedBy = (asked: Promise<unknown>) =>
      asked.then(
        () => 'a reply',
        (error: unknown) =>
          error instanceof SidecarRefusal
            ? [error.code, error.status, error.sidecarCode, error.outcome]
            : error,
      )
    expect([
      await refusedBy(client.startMediatedExecution(start)),
      await refusedBy(client.startMediatedExecution({ ...start, controlToken: 'another' })),
    ]).toEqual([
      ['sidecar_refused', 409, 'chio_caller_delivery_rejected', 'unknown'],
      ['sidecar_refused', 403, 'chio_control_forbidden', 'not_started'],
    ])
  })

  test('comes to a large report without a token too', async () => {
    const { client } = await served({ token: null, host: '127.0.0.1' })
    const large = { ...report, report: { ...report.report, output: 'x'.repeat(1_000_000) } }
    await expect(client.reportMediatedExecution({ ...reported, report: large })).rejects.toMatchObject({
      sidecarCode: 'chio_control_forbidden',
    })
  })
})

/** A server at a socket that answers each request as it is told. */
async function answering(answer: RequestListener): Promise<SidecarClient> {
  const path = socketPath()
  await listening(createServer(answer), path)
  return new SidecarClient({ path }, { clock })
}

async function listening(server: Server | TcpServer, path: string): Promise<void> {
  await new Promise<void>(resolve => server.listen(path, resolve))
  chmodSync(path, 0o600)
  ends.push(() => new Promise<void>(resolve => server.close(() => resolve())))
}

const saying =
  (status: number, body: unknown): RequestListener =>
  (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  }

/** The error of what was asked. */
async function unsettled(asked: Promise<unknown>): Promise<UnsettledReply> {
  const error = await asked.catch((thrown: unknown) => thrown)
  if (error instanceof UnsettledReply) return error
  throw new Error('expected an unsettled reply', { cause: error })
}

describe('a reply', () => {
  const started = OWN.started as unknown as { readonly [member: string]: unknown }
  const other = JSON.parse(JSON.stringify(OWN.started)) as {
    authorization: {
      authorization: { committed: { execution_nonce_id: string }; invocation: { request_id: string } }
    }
  }
  other.authorization.authorization.invocation.request_id = 'call-of-another'
  const renonced = JSON.parse(JSON.stringify(OWN.started)) as typeof other
  renonced.authorization.authorization.committed.execution_nonce_id = '00000000-0000-7000-8000-000000000001'

  test.each([
    ['of another protocol', 200, { ...started, protocol: 'chio.caller-delivery.v2' }],
    ['of no protocol', 200, { ...started, protocol: undefined }],
    ['of another status', 200, { ...started, status: 'authorized' }],
    ['of the old reservation', 200, OWN.reserved],
    ['without an authorization', 200, { ...started, authorization: undefined }],
    ['with none in its place', 200, { ...started, authorization: null }],
    ['with a surplus member', 200, { ...started, output: 1 }],
    ['of another HTTP status', 403, OWN.started],
    ['of a denial that was accepted', 200, OWN.startDenied],
    ['to another request', 200, other],
    ['under another nonce', 200, renonced],
    ['of a redirection', 302, {}],
    ['that is empty', 200, ''],
  ])('%s is refused and carries what recovery needs', async (_name, status, body) => {
    const client = await answering(saying(status, body))
    const refused = await unsettled(client.startMediatedExecution(start))
    expect(refused).toMatchObject({ code: 'reply_refused', outcome: 'unknown' })
    expect(refused.recovery).toEqual({
      authorization: null,
      executionNonce: nonce,
      report: null,
      requestId,
      step: 'start',
    })
  })

  test('to an evaluate has to be of its own request', async () => {
    const client = await answering(saying(200, OWN.reserved))
    await expect(client.evaluateToolCall({ ...evaluate, requestId: 'call-mine' })).rejects.toMatchObject({
      code: 'reply_refused',
    })
  })
})

describe('a lost reply', () => {
  const endings: readonly (readonly [string, (socket: Socket) => void])[] = [
    ['closed without a byte', socket => socket.destroy()],
    ['half a head', socket => socket.end('HTTP/1.1 200 OK\r\ncontent-le')],
    ['half a body', socket => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"status":')],
    [
      'an unended chunk',
      socket => socket.end('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{}'),
    ],
    ['no HTTP', socket => socket.end('SSH-2.0-other\r\n')],
    [
      'another protocol from here on',
      socket => socket.write('HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n'),
    ],
    [
      'too much',
      socket => {
        socket.on('error', () => {})
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n')
        const more = (): void => {
          while (socket.write(Buffer.alloc(65_536, 'x')));
        }
        socket.on('drain', more)
        more()
      },
    ],
  ]

  test.each(endings)(
    '(%s) is told once, with all that recovery needs, and nothing is sent again',
    async (_name, end) => {
      const path = socketPath()
      let connections = 0
      const server = createTcpServer(socket => {
        connections += 1
        socket.on('error', () => {})
        socket.once('data', () => end(socket))
      })
      await listening(server, path)
      const lost = await unsettled(new SidecarClient({ path }, { clock }).reportMediatedExecution(reported))
      expect(lost).toMatchObject({ code: 'reply_lost', outcome: 'unknown' })
      expect(lost.recovery).toEqual({
        authorization,
        executionNonce: null,
        report,
        requestId: authorization.authorization.invocation.request_id,
        step: 'report',
      })
      expect(connections).toBe(1)
    },
  )

  test('may be one that never comes', async () => {
    const path = socketPath()
    await listening(
      createTcpServer(socket => socket.on('error', () => {}).resume()),
      path,
    )
    const client = new SidecarClient({ path }, { clock, timeoutMs: 50 })
    await expect(client.evaluateToolCall(evaluate)).rejects.toMatchObject({
      code: 'reply_lost',
      recovery: { executionNonce: null, requestId, step: 'evaluate' },
    })
  })

  test.each([
    ['that is announced again and again', 'HTTP/1.1 103 Early Hints\r\n\r\n', ''],
    ['whose body never ends', ' ', 'HTTP/1.1 200 OK\r\n\r\n'],
    ['whose head never ends', 'x-more: 1\r\n', 'HTTP/1.1 200 OK\r\n'],
  ])('may be one %s', async (_name, drop, first) => {
    const path = socketPath()
    const server = createTcpServer(socket => {
      socket.on('error', () => {})
      socket.once('data', () => {
        socket.write(first)
        const drip = setInterval(() => socket.write(drop), 5)
        socket.once('close', () => clearInterval(drip))
      })
    })
    await listening(server, path)
    const client = new SidecarClient({ path }, { clock, timeoutMs: 100 })
    await expect(client.evaluateToolCall(evaluate)).rejects.toMatchObject({ code: 'reply_lost' })
  })

  test('shows nothing that was sent', async () => {
    const client = await answering((_request, response) => response.destroy())
    const lost = await unsettled(client.startMediatedExecution(start))
    const shown = `${inspect(lost)} ${JSON.stringify(lost)} ${lost.message} ${lost.stack}`
    expect(shown).not.toContain(nonce.signature)
    expect(shown).not.toContain(CONTROL_TOKEN)
  })
})

test('where nobody listens nothing was asked', async () => {
  const client = new SidecarClient({ path: socketPath() }, { clock })
  await expect(client.startMediatedExecution(start)).rejects.toMatchObject({
    code: 'sidecar_unavailable',
    outcome: 'not_started',
  })
})

test.each([
  'http://localhost:80',
  'http://example.com',
  'https://127.0.0.1:1',
  'http://127.0.0.1:1/path',
  'http://127.0.0.2:1',
  'http://127.0.0.1.example:1',
])('the address %s is refused: the token would leave this machine', url => {
  expect(() => new SidecarClient({ url }, { clock })).toThrow(RangeError)
})

test('what is no token is refused before anything is sent', () => {
  const client = new SidecarClient({ path: socketPath() }, { clock })
  for (const controlToken of ['', 'a b', 'a\r\nx: y', 'x'.repeat(513)]) {
    expect(() => client.startMediatedExecution({ ...start, controlToken })).toThrow(TypeError)
  }
})
