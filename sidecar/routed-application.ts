// Owns the routes as Fastify serves them: the gate before the body, the strict reader in place of Fastify's, one fixed
// answer for every end that is no reply.
// Must never: let Fastify parse, validate or word anything of its own: its texts quote what was asked.
// Source: Fastify 5: the lifecycle (onRequest runs before the content type parser), content type parsers.
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { RequestListener, Server } from 'node:http'
import type { KernelLog } from '../kernel/kernel-context.js'
import type { CallerKernel } from './caller-kernel.js'
import { type Access, type GateSettings, judgeHead } from './gate.js'
import { MAXIMUM_BODY_BYTES } from './http-limits.js'
import { OPENAPI_PATH, openApiBytes } from './openapi.js'
import type { RefusalName } from './refusals.js'
import { answerWith, refuseWith } from './reply.js'
import { type Route, RouteRefusal, ROUTES } from './routes.js'
import { faultOf } from './sidecar-faults.js'

export interface ApplicationParts {
  readonly gate: GateSettings
  readonly kernel: CallerKernel
  readonly log: KernelLog
}

type Asked = Route['name'] | 'openapi' | 'unknown'

/** @param serve makes the server that requests come from; it is bound by whoever called. */
export function routedApplication(
  parts: ApplicationParts,
  serve: (handler: RequestListener) => Server,
): FastifyInstance {
  const refuseUnknown = ({ raw }: FastifyRequest, reply: FastifyReply): FastifyReply =>
    refuse(parts, reply, {
      reason: judgeHead(raw, 'unknown', parts.gate) ?? 'unknownRoute',
      route: 'unknown',
    })
  const app: FastifyInstance = Fastify({
    bodyLimit: MAXIMUM_BODY_BYTES,
    exposeHeadRoutes: false,
    frameworkErrors: (_error, request, reply) => void refuseUnknown(request, reply),
    logger: false,
    return503OnClosing: false,
    serverFactory: serve,
  })
  readBytesAlone(app)
  app.setErrorHandler((cause, _request, reply) =>
    refuse(parts, reply, { cause, reason: refusalOf(cause), route: 'unknown' }),
  )
  // Where no route is there is no body to read either: its own handler would come after it.
  app.addHook('onRequest', (request, reply, done) => {
    if (request.is404) refuseUnknown(request, reply)
    else done()
  })
  for (const route of ROUTES) mount(app, parts, route)
  app.get(OPENAPI_PATH, { onRequest: gateOf(parts, 'openapi', 'open') }, (_request, reply) =>
    answerWith(reply, 200, openApiBytes()),
  )
  return app
}

/** One content type, and its bytes as they came; who waits for a word before it sends them gets it after the gate. */
function readBytesAlone(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => {
    done(null, body)
  })
  app.addHook('preParsing', (request, reply, payload, done) => {
    if (request.headers.expect !== undefined) reply.raw.writeContinue()
    done(null, payload)
  })
}

function mount(app: FastifyInstance, parts: ApplicationParts, { access, answer, name, path }: Route): void {
  app.post(path, { onRequest: gateOf(parts, name, access) }, async (request, reply) => {
    const answered = await answer(parts.kernel, bytesOf(request)).catch((error: unknown) => asRefusal(error))
    return 'body' in answered
      ? answerWith(reply, answered.status, answered.body)
      : refuse(parts, reply, { ...answered, route: name })
  })
}

function asRefusal(error: unknown): { readonly reason: RefusalName; readonly cause: unknown } {
  if (error instanceof RouteRefusal) return { reason: error.refusal, cause: error.cause }
  return { reason: 'failed', cause: error }
}

/** A body that is not there is an empty one. */
function bytesOf({ body }: FastifyRequest): Uint8Array {
  return body instanceof Uint8Array ? body : new Uint8Array()
}

function gateOf(parts: ApplicationParts, route: Asked, access: Access) {
  return (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    const reason = judgeHead(request.raw, access, parts.gate)
    if (reason === undefined) done()
    else refuse(parts, reply, { reason, route })
  }
}

interface Refused {
  readonly route: Asked
  readonly reason: RefusalName
  readonly cause?: unknown
}

function refuse({ log }: ApplicationParts, reply: FastifyReply, refused: Refused): FastifyReply {
  const { cause, reason, route } = refused
  const level = reason === 'failed' ? 'error' : 'warn'
  log({ level, event: 'sidecar_refused', reason, route, ...(cause !== undefined && faultOf(cause)) })
  return refuseWith(reply, reason)
}

const FASTIFY_REFUSALS: Readonly<Record<string, RefusalName>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'tooLarge',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'malformed',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'type',
}

/** What Fastify met while it read a body: its bound, its length, its end. */
function refusalOf(error: unknown): RefusalName {
  const { code, statusCode } = error as { readonly code?: string; readonly statusCode?: number }
  const known = FASTIFY_REFUSALS[code ?? '']
  if (known !== undefined) return known
  return statusCode !== undefined && statusCode < 500 ? 'malformed' : 'failed'
}
