// The three routes over their socket: statuses, exact bodies, and what no answer tells.
import { statSync } from 'node:fs'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { canonicalBytes } from '../../protocol/canonical.js'
import { BrokerError } from '../../protocol/errors.js'
import type { JsonValue } from '../../protocol/json.js'
import type { ErrorCode } from '../../protocol/error-codes.js'
import {
  askRaw,
  fieldsOf,
  OWN,
  type RawReply,
  rawRequest,
  type ScriptedKernel,
  scriptedKernel,
  type TestSidecar,
  testSidecar,
} from '../support/sidecar.js'

let kernel: ScriptedKernel
let sidecar: TestSidecar
beforeAll(async () => {
  kernel = scriptedKernel()
  sidecar = await testSidecar(kernel)
})
afterAll(() => sidecar.running.close())
beforeEach(() => {
  kernel.answer = {}
  kernel.asked.length = 0
})

function post(path: string, body: unknown, changes: { readonly [name: string]: string | null } = {}) {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const own = path === '/v1/evaluate' ? { authorization: null, ...changes } : changes
  return askRaw(
    sidecar.listen,
    rawRequest(path, fieldsOf(sidecar.listen, Buffer.byteLength(text), own), text),
  )
}
const textOf = (value: unknown): string => Buffer.from(canonicalBytes(value as JsonValue)).toString('latin1')
const brief = ({ body, status }: RawReply) => [status, JSON.parse(body) as unknown]

test('its socket is for this user alone', () => {
  const { path } = sidecar.listen as { path: string }
  expect(statSync(path).mode & 0o777).toBe(0o600)
})

describe('evaluate', () => {
  test('reserves without credentials, and says that nothing is authorized', async () => {
    const reply = await post('/v1/evaluate', OWN.evaluateBody)
    expect(brief(reply)).toEqual([200, JSON.parse(textOf(OWN.reserved))])
    expect(JSON.parse(reply.body)).toMatchObject({
      execution_authorized: false,
      start_required: true,
      status: 'reserved',
    })
    expect(reply.head).toMatch(/cache-control: no-store/i)
  })

  test('hands the kernel the request of the body for the subject of its capability', async () => {
    const seen: unknown[] = []
    kernel.answer = {
      evaluate: (agent, request) => {
        seen.push(agent, request.id, request.tool, request.params)
        return Promise.resolve(OWN.reserved)
      },
    }
    const { agent_id: _, parameters: __, request_id: ___, ...least } = OWN.evaluateBody
    await post('/v1/evaluate', least)
    const { subject } = OWN.evaluateBody['capability'] as { subject: string }
    expect(seen).toEqual([subject, expect.stringMatching(/^[0-9a-f-]{36}$/), expect.anything(), null])
  })

  test('answers every failure of the kernel alike', async () => {
    kernel.answer = { evaluate: () => Promise.reject(new BrokerError('storage', 'disk /secret/path full')) }
    expect(brief(await post('/v1/evaluate', OWN.evaluateBody))).toEqual([
      500,
      { error: 'chio_mediation_failed', message: 'mediated authorization failed' },
    ])
  })

  test.each([
    ['a nonce', { execution_nonce: OWN.startBody.execution_nonce }],
    ['a context of its own', { context: {} }],
    ['a surplus member', { surplus: true }],
    ['a null in place of a member that is not there', { request_id: null }],
    ['no capability', { capability: undefined }],
    ['an agent that is no key', { agent_id: '0'.repeat(64) }],
    ['two kinds of approvals', { approval_tokens: [] }],
  ])('refuses %s', async (_name, changes) => {
    const reply = await post('/v1/evaluate', { ...OWN.evaluateBody, ...changes })
    expect(brief(reply)).toEqual([400, BAD_REQUEST])
    expect(kernel.asked).toEqual([])
  })
})

const BAD_REQUEST = { error: 'chio_bad_request', message: 'invalid caller delivery request' }
const REJECTED = {
  error: 'chio_caller_delivery_rejected',
  message: 'original committed caller delivery could not be authenticated or finalized',
}

describe('start', () => {
  test('answers with the committed authorization, the same bytes every time', async () => {
    const replies = [
      await post('/v1/caller/start', OWN.startBody),
      await post('/v1/caller/start', OWN.startBody),
    ]
    expect(replies.map(({ status }) => status)).toEqual([200, 200])
    expect(replies.map(({ body }) => body)).toEqual([textOf(OWN.started), textOf(OWN.started)])
  })

  test('answers a denial with 403 and its receipt', async () => {
    kernel.answer = { start: () => Promise.resolve(OWN.startDenied) }
    expect(brief(await post('/v1/caller/start', OWN.startBody))).toEqual([
      403,
      JSON.parse(textOf(OWN.startDenied)),
    ])
  })
})

describe('report', () => {
  test.each([
    ['reconciled', OWN.reconciled],
    ['denied by finalization', OWN.reportDenied],
  ])('answers 200 when it is %s, and never authorizes', async (_name, decision) => {
    kernel.answer = { report: () => Promise.resolve(decision) }
    const reply = await post('/v1/caller/report', OWN.reportBody)
    expect(brief(reply)).toEqual([200, JSON.parse(textOf(decision))])
    expect(JSON.parse(reply.body)).toMatchObject({ execution_authorized: false })
  })
})

describe('a control route', () => {
  const routes = [
    ['/v1/caller/start', OWN.startBody],
    ['/v1/caller/report', OWN.reportBody],
  ] as const

  test.each(routes)('%s answers every failure of the kernel with the same bytes', async (path, body) => {
    const causes: readonly ErrorCode[] = [
      'caller_delivery_signature',
      'conflict',
      'execution_nonce_expired',
      'operation_unknown',
      'storage',
    ]
    const errors = [
      ...causes.map(code => new BrokerError(code, `secret of ${code}`)),
      new TypeError('a fault'),
    ]
    const replies = await Promise.all(
      errors.map(async error => {
        const own = scriptedKernel()
        own.answer = { report: () => Promise.reject(error), start: () => Promise.reject(error) }
        const { listen, running } = await testSidecar(own)
        const text = JSON.stringify(body)
        const reply = await askRaw(listen, rawRequest(path, fieldsOf(listen, Buffer.byteLength(text)), text))
        await running.close()
        return reply
      }),
    )
    const withoutDate = ({ body: said, head }: RawReply) => head.replace(/date: .*/i, 'date') + said
    expect(new Set(replies.map(withoutDate)).size).toBe(1)
    expect(brief(replies[0] as RawReply)).toEqual([409, REJECTED])
  })

  test.each(routes)(
    '%s refuses another protocol by name, and everything malformed alike',
    async (path, body) => {
      const unsupported = { error: 'chio_bad_request', message: 'unsupported caller delivery protocol' }
      expect(brief(await post(path, { ...body, protocol: 'chio.caller-delivery.v2' }))).toEqual([
        400,
        unsupported,
      ])
      const { protocol: _, ...without } = body
      const malformed = [
        without,
        { ...body, protocol: 1 },
        { ...body, surplus: null },
        '',
        '[]',
        'null',
        '{',
        `${JSON.stringify(body)}x`,
        JSON.stringify(body).replace('{', '{"protocol":"chio.caller-delivery.v1",'),
        JSON.stringify(body).replace('{', '{"__proto__":null,'),
        '{"protocol":"chio.caller-delivery.v1","arguments":"\\ud800"}',
        `${'['.repeat(65)}${']'.repeat(65)}`,
      ]
      const replies = await Promise.all(malformed.map(text => post(path, text)))
      expect(replies.map(brief)).toEqual(malformed.map(() => [400, BAD_REQUEST]))
      expect(kernel.asked).toEqual([])
    },
  )

  test.each(routes)('%s is closed without its token', async (path, body) => {
    const forbidden = {
      error: 'chio_control_forbidden',
      message: 'sidecar control endpoints require a configured control token and valid bearer credentials',
    }
    expect(brief(await post(path, body, { authorization: null }))).toEqual([403, forbidden])
    expect(kernel.asked).toEqual([])
  })
})

test('the control token is refused on every other route', async () => {
  const refused = {
    error: 'chio_control_credential_wrong_route',
    message: 'sidecar control credentials belong to the control routes alone',
  }
  const { listen } = sidecar
  for (const [method, path] of [
    ['POST', '/v1/evaluate'],
    ['GET', '/v1/openapi.json'],
    ['GET', '/v1/caller/start'],
    ['DELETE', '/v1/caller/report'],
    ['PUT', '/'],
    ['GET', '/%ff'],
    ['POST', 'http://other.example/v1/caller/start/'],
  ] as const) {
    expect([path, ...brief(await askRaw(listen, rawRequest(path, fieldsOf(listen, 0), '', method)))]).toEqual(
      [path, 403, refused],
    )
  }
  expect(kernel.asked).toEqual([])
})

test('what is no route is answered without a word of what was asked', async () => {
  const { listen } = sidecar
  for (const [method, path] of [
    ['GET', '/v1/evaluate'],
    ['POST', '/v1/evaluate/'],
    ['PROPFIND', '/secret-path'],
    ['OPTIONS', '*'],
    ['POST', '/%ff-secret'],
    ['PURGE', '/'],
  ] as const) {
    const fields = fieldsOf(listen, 0, { authorization: null })
    const reply = await askRaw(listen, rawRequest(path, fields, '', method))
    expect([path, ...brief(reply)]).toEqual([
      path,
      404,
      { error: 'chio_route_unknown', message: 'no such route' },
    ])
  }
})

test('the log holds no body, no token and no argument', async () => {
  kernel.answer = { start: () => Promise.reject(new BrokerError('conflict', 'start of op refused')) }
  await post('/v1/caller/start', { ...OWN.startBody, arguments: { note: 'needle-in-arguments' } })
  await post('/v1/caller/start', '{"needle-in-body"')
  await post('/v1/needle-in-path', {})
  const text = JSON.stringify(sidecar.events)
  expect(text).toContain('sidecar_refused')
  expect(text).toContain('start of op refused')
  expect(text).not.toMatch(/needle|the-control-token/)
})
