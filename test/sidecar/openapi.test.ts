// The description of the routes against what they really answer, and against what they refuse to read.
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import Fastify, { type FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { packageRoot } from '../../native/paths.js'
import type { DocumentSchema } from '../../protocol/codec.js'
import type { JsonValue } from '../../protocol/json.js'
import { OPENAPI_PATH, openApiDocument } from '../../sidecar/openapi.js'
import {
  askRaw,
  fieldsOf,
  OWN,
  rawRequest,
  type ScriptedKernel,
  scriptedKernel,
  type TestSidecar,
  testSidecar,
} from '../support/sidecar.js'

type Json = { readonly [member: string]: unknown }

let kernel: ScriptedKernel
let sidecar: TestSidecar
let judge: (schema: DocumentSchema, value: unknown) => Promise<boolean>
let validator: FastifyInstance
beforeAll(async () => {
  kernel = scriptedKernel()
  sidecar = await testSidecar(kernel)
  const options = { coerceTypes: false, removeAdditional: false, useDefaults: false, strict: true } as const
  validator = Fastify({ ajv: { customOptions: options } })
  judge = validatorOf(validator)
})
afterAll(() => Promise.all([sidecar.running.close(), validator.close()]))

/** Fastify's own validator of JSON Schema: another reader than ours. */
function validatorOf(app: FastifyInstance): typeof judge {
  let asked: DocumentSchema = {}
  app.post('/', (request, reply) => reply.send({ isValid: request.validateInput(request.body, asked) }))
  return async (schema, value) => {
    asked = schema
    const { body } = await app.inject({ method: 'POST', payload: { value }, url: '/' })
    return (JSON.parse(body) as { isValid: boolean }).isValid
  }
}

const paths = openApiDocument()['paths'] as Json
const made = new Map<string, DocumentSchema>()

/** The schema at a place of the document, as one of a member `value`; the same object again, which is compiled once. */
function schemaAt(path: string, ...place: readonly string[]): DocumentSchema {
  const name = [path, ...place].join(' ')
  let found = paths[path] as Json
  for (const part of ['post', ...place, 'content', 'application/json', 'schema']) found = found[part] as Json
  const schema = made.get(name) ?? {
    type: 'object',
    properties: { value: found as JsonValue },
    required: ['value'],
  }
  made.set(name, schema)
  return schema
}

async function post(path: string, body: unknown, authorization?: null) {
  const text = JSON.stringify(body)
  const changes = authorization === null ? { authorization } : {}
  const { listen } = sidecar
  return askRaw(listen, rawRequest(path, fieldsOf(listen, Buffer.byteLength(text), changes), text))
}

const ROUTES = [
  [
    '/v1/evaluate',
    OWN.evaluateBody,
    [{ evaluate: OWN.reserved }, { evaluate: OWN.evaluateDenied }, { evaluate: OWN.evaluatePending }],
  ],
  ['/v1/caller/start', OWN.startBody, [{ start: OWN.started }, { start: OWN.startDenied }]],
  ['/v1/caller/report', OWN.reportBody, [{ report: OWN.reconciled }, { report: OWN.reportDenied }]],
] as const

describe.each(ROUTES)('%s', (path, body, replies) => {
  const credentials = path === '/v1/evaluate' ? null : undefined

  test('answers as it is described, whatever the answer is', async () => {
    for (const reply of replies) {
      const [[step, value]] = Object.entries(reply) as [[string, unknown]]
      kernel.answer = { [step]: () => Promise.resolve(value) }
      const { body: said, status } = await post(path, body, credentials)
      expect(await judge(schemaAt(path, 'responses', String(status)), JSON.parse(said))).toBe(true)
    }
    kernel.answer = { evaluate: fail, report: fail, start: fail }
    for (const [wrong, given] of [
      [body, credentials],
      [body, credentials === null ? undefined : null],
      [{}, credentials],
      [{ ...body, protocol: 'other' }, credentials],
    ] as const) {
      const { body: said, status } = await post(path, wrong, given)
      expect(status).toBeGreaterThanOrEqual(400)
      expect(await judge(schemaAt(path, 'responses', String(status)), JSON.parse(said))).toBe(true)
      expect(await judge(schemaAt(path, 'responses', String(status)), { error: 'other', message: '' })).toBe(
        false,
      )
    }
  })

  test('describes the body that it reads, and none with a member more or less', async () => {
    const schema = schemaAt(path, 'requestBody')
    expect(await judge(schema, body)).toBe(true)
    expect(await judge(schema, { ...body, surplus: 1 })).toBe(false)
    const required = (schema['properties'] as unknown as { value: { required: string[] } }).value.required
    for (const name of required) {
      expect([name, await judge(schema, { ...body, [name]: undefined })]).toEqual([name, false])
    }
  })
})

const fail = (): Promise<never> => Promise.reject(new Error('fails'))

test('the description is served to whoever can connect, and only read', async () => {
  const { listen } = sidecar
  const fields = fieldsOf(listen, 0, { authorization: null })
  const reply = await askRaw(listen, rawRequest(OPENAPI_PATH, fields, '', 'GET'))
  expect([reply.status, JSON.parse(reply.body)]).toEqual([200, openApiDocument()])
  expect(JSON.parse(reply.body)).toMatchObject({
    openapi: '3.1.0',
    paths: { '/v1/caller/start': { post: { security: [{ control: [] }] } } },
  })
})

test('the command line prints the same description, for whoever has nothing that serves it', () => {
  const program = join(packageRoot(), 'dist', 'bin', 'chio.js')
  const printed = execFileSync(process.execPath, [program, 'sidecar', 'openapi'], { encoding: 'utf8' })
  expect(JSON.parse(printed)).toEqual(openApiDocument())
})
