// Owns the three caller routes: body to document, document to the kernel, its decision to a reply.
// Must never: let a reply tell why a kernel call failed, or log a body, a token or an argument.
// Source: `chio.caller-delivery.v1`: status codes and bodies of evaluate, start and report.
import { randomUUID } from 'node:crypto'
import {
  CALLER_PATHS,
  CALLER_PROTOCOL,
  EvaluateBody,
  EvaluateReply,
  readHttpJson,
  ReportBody,
  ReportReply,
  StartBody,
  StartReply,
  toolCallOfBody,
} from '../protocol/caller-http.js'
import { type Codec, encode } from '../protocol/codec.js'
import { isBrokerError } from '../protocol/errors.js'
import { type JsonValue, parseStrictJson } from '../protocol/json.js'
import { admitPublicKey } from '../protocol/keys.js'
import { ToolCallRequest } from '../protocol/tool-call.js'
import type { Access } from './gate.js'
import type { CallerKernel } from './caller-kernel.js'
import type { RefusalName } from './refusals.js'

export type RouteName = keyof typeof CALLER_PATHS

export interface Answer {
  readonly status: number
  readonly body: Uint8Array
}

/** A refusal of a route, and what the log is told of it. */
export class RouteRefusal extends Error {
  readonly refusal: RefusalName

  constructor(refusal: RefusalName, cause?: unknown) {
    super(refusal, { cause })
    this.refusal = refusal
  }
}

export interface Route {
  readonly name: RouteName
  readonly path: string
  readonly access: Access
  /** @throws RouteRefusal for every other end than a reply. */
  readonly answer: (kernel: CallerKernel, bytes: Uint8Array) => Promise<Answer>
}

export const ROUTES: readonly Route[] = [
  { name: 'evaluate', path: CALLER_PATHS.evaluate, access: 'open', answer: evaluate },
  { name: 'start', path: CALLER_PATHS.start, access: 'control', answer: start },
  { name: 'report', path: CALLER_PATHS.report, access: 'control', answer: report },
]

/** A denial is an answer like a reservation: 200, with its receipt. */
async function evaluate(kernel: CallerKernel, bytes: Uint8Array): Promise<Answer> {
  const { agent, request } = asWellFormed(() => {
    const body = readHttpJson(EvaluateBody, bytes, 'evaluate body')
    const call = toolCallOfBody(body, randomUUID())
    // Members that are tied together are judged where the whole is written.
    encode(ToolCallRequest, call)
    return { agent: admitPublicKey(body.agent_id ?? body.capability.subject, 'agent'), request: call }
  })
  const reply = await asked('failed', () => kernel.evaluate(agent, request))
  return { status: 200, body: encode(EvaluateReply, reply) }
}

async function start(kernel: CallerKernel, bytes: Uint8Array): Promise<Answer> {
  const body = readProtocolBody(StartBody, bytes)
  const reply = await asked('rejected', () => kernel.start(body))
  return { status: reply.status === 'deny' ? 403 : 200, body: encode(StartReply, reply) }
}

async function report(kernel: CallerKernel, bytes: Uint8Array): Promise<Answer> {
  const body = readProtocolBody(ReportBody, bytes)
  const reply = await asked('rejected', () => kernel.report(body))
  return { status: 200, body: encode(ReportReply, reply) }
}

/** Who speaks another protocol is told so before what else may be another. */
function readProtocolBody<T>(codec: Codec<T>, bytes: Uint8Array): T {
  const document = asWellFormed(() => parseStrictJson(bytes, 'caller body'))
  const protocol = memberOf(document, 'protocol')
  if (typeof protocol === 'string' && protocol !== CALLER_PROTOCOL) throw new RouteRefusal('unsupported')
  return asWellFormed(() => readHttpJson(codec, bytes, 'caller body'))
}

function memberOf(document: JsonValue, name: string): JsonValue | undefined {
  if (typeof document !== 'object' || document === null || Array.isArray(document)) return undefined
  return (document as { readonly [member: string]: JsonValue })[name]
}

function asWellFormed<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    // Anything else is a fault of ours, and no word about the request.
    if (!isBrokerError(error)) throw error
    throw new RouteRefusal('malformed', error)
  }
}

/** Every failure of a kernel call is the same answer. */
async function asked<T>(refusal: RefusalName, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    throw new RouteRefusal(refusal, error)
  }
}
