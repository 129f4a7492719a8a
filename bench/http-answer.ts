// Owns the end of a plain HTTP request: body out, whole answer in, and only the provider's "created" will do, so
// that a refusal is never measured as speed.
import { once } from 'node:events'
import type { ClientRequest, IncomingMessage } from 'node:http'

const CREATED = 201

export async function collectAnswer(request: ClientRequest, body: Uint8Array): Promise<Uint8Array> {
  const answered = once(request, 'response') as Promise<[IncomingMessage]>
  request.end(body)
  const [response] = await answered
  const chunks: Buffer[] = []
  for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk)
  requireCreated(response.statusCode)
  return Buffer.concat(chunks)
}

export function requireCreated(status: number | undefined): void {
  if (status !== CREATED) throw new Error(`provider: expected status ${CREATED}, got ${status}`)
}
