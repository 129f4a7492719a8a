// Owns how an answer leaves: one status, one canonical body, fixed fields; and what happens to a body that nobody reads.
// Must never: read on without bound, or close before the sender of a refused body could read why.
// Source: RFC 9112 section 9.6: closing with unread bytes resets the connection and may lose the answer.
import type { IncomingMessage } from 'node:http'
import type { FastifyReply } from 'fastify'
import { DISCARD_BYTES, DISCARD_MS } from './http-limits.js'
import { type RefusalName, refusalBytes, SIDECAR_REFUSALS } from './refusals.js'

export function answerWith(reply: FastifyReply, status: number, body: Uint8Array): FastifyReply {
  return reply
    .code(status)
    .header('cache-control', 'no-store')
    .header('content-type', 'application/json')
    .header('x-content-type-options', 'nosniff')
    .send(body)
}

/** The fixed body of a refusal. What is left of the request's own body is thrown away, to a bound. */
export function refuseWith(reply: FastifyReply, name: RefusalName): FastifyReply {
  const { raw } = reply.request
  // Kept open where it was answered whole: the bound below ends it.
  reply.removeHeader('connection')
  answerWith(reply, SIDECAR_REFUSALS[name].status, refusalBytes(name))
  if (!raw.complete) discardRest(raw)
  return reply
}

/** Counts what still comes after the answer was written, and ends the connection that goes on sending. */
function discardRest(message: IncomingMessage): void {
  const { socket } = message
  let left = DISCARD_BYTES
  const patience = setTimeout(() => socket.destroy(), DISCARD_MS)
  patience.unref()
  message.on('data', (chunk: Uint8Array) => {
    left -= chunk.length
    if (left < 0) socket.destroy()
  })
  message.on('error', () => socket.destroy())
  message.once('close', () => clearTimeout(patience))
  message.resume()
}
