// Owns the OpenAPI description of the caller routes, made of the codecs that read and write them.
// Must never: hold a shape of its own: a member that a codec learns stands here by itself.
// Source: OpenAPI 3.1.0, whose schemas are JSON Schema 2020-12.
import {
  EvaluateBody,
  EvaluateReply,
  ReportBody,
  ReportReply,
  StartBody,
  StartReply,
} from '../protocol/caller-http.js'
import { canonicalBytes } from '../protocol/canonical.js'
import type { Codec, DocumentSchema } from '../protocol/codec.js'
import type { JsonValue } from '../protocol/json.js'
import { MAXIMUM_BODY_BYTES } from './http-limits.js'
import { type RefusalName, SIDECAR_REFUSALS } from './refusals.js'
import { type Route, ROUTES } from './routes.js'

export const OPENAPI_PATH = '/v1/openapi.json'

interface Described {
  readonly summary: string
  readonly body: Codec<unknown>
  readonly reply: Codec<unknown>
  /** Statuses of the reply. */
  readonly statuses: readonly number[]
  readonly refusals: readonly RefusalName[]
}

const OF_EVERY_ROUTE: readonly RefusalName[] = [
  'headersTooLarge',
  'host',
  'malformed',
  'origin',
  'timeout',
  'tooLarge',
  'type',
]

const DESCRIBED: Readonly<Record<Route['name'], Described>> = {
  evaluate: {
    summary: 'Reserve one tool call. It authorizes nothing: a start is required.',
    body: EvaluateBody,
    reply: EvaluateReply,
    statuses: [200],
    refusals: [...OF_EVERY_ROUTE, 'wrongRoute', 'failed'],
  },
  start: {
    summary: 'Commit a reserved call. The same authorization again where the answer was lost.',
    body: StartBody,
    reply: StartReply,
    statuses: [200, 403],
    refusals: [...OF_EVERY_ROUTE, 'forbidden', 'rejected', 'unsupported'],
  },
  report: {
    summary:
      'End a started call by the signed report of its executor. The original receipt again for the same report.',
    body: ReportBody,
    reply: ReportReply,
    statuses: [200],
    refusals: [...OF_EVERY_ROUTE, 'forbidden', 'rejected', 'unsupported'],
  },
}

export function openApiDocument(): DocumentSchema {
  return {
    openapi: '3.1.0',
    info: {
      title: 'chio caller delivery',
      version: '1',
      description: `Bodies have at most ${MAXIMUM_BODY_BYTES} bytes. Every refusal has a fixed body.`,
    },
    paths: Object.fromEntries(ROUTES.map(route => [route.path, { post: operationOf(route) }])),
    components: { securitySchemes: { control: { type: 'http', scheme: 'bearer' } } },
  }
}

let bytes: Uint8Array | undefined

export function openApiBytes(): Uint8Array {
  return (bytes ??= canonicalBytes(openApiDocument()))
}

function operationOf({ access, name }: Route): DocumentSchema {
  const { body, refusals, reply, statuses, summary } = DESCRIBED[name]
  return {
    operationId: name,
    summary,
    ...(access === 'control' && { security: [{ control: [] }] }),
    requestBody: { required: true, content: jsonOf(body.describe()) },
    responses: responsesOf(reply, statuses, refusals),
  }
}

/** By status; where several answers share one, each of their bodies. */
function responsesOf(
  reply: Codec<unknown>,
  statuses: readonly number[],
  refusals: readonly RefusalName[],
): JsonValue {
  const byStatus = new Map<number, DocumentSchema[]>(statuses.map(status => [status, [reply.describe()]]))
  for (const name of refusals) {
    const { body, status } = SIDECAR_REFUSALS[name]
    byStatus.set(status, [...(byStatus.get(status) ?? []), { const: { ...body } }])
  }
  return Object.fromEntries(
    [...byStatus].map(([status, schemas]) => [
      String(status),
      {
        description: status < 300 ? 'the reply' : 'a denial or a fixed refusal',
        content: jsonOf({ anyOf: schemas }),
      },
    ]),
  )
}

function jsonOf(schema: DocumentSchema): DocumentSchema {
  return { 'application/json': { schema } }
}
