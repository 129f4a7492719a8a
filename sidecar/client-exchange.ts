// Owns one HTTP exchange with a sidecar: one connection, one request, one whole reply or the word that it was lost.
// Must never: send a byte to a socket that is not its pinned owner's, send anything twice, follow a redirect, go beyond
// this machine, or take half a reply for one.
// Source: node:http; a reset after the last byte was sent says nothing of what the other side did.
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { Socket } from 'node:net'
import type { Clock } from '../protocol/clock.js'
import { MAXIMUM_TOOL_OUTCOME_BYTES } from '../protocol/limits.js'
import { connectPinned, type ServerPins } from '../system/connect.js'
import { whenPassed } from '../system/deadline.js'

/**
 * A Unix socket's path with the uid that serves there, this process's own unless said; or `http://127.0.0.1:PORT` or
 * `http://[::1]:PORT`, where nothing tells who serves.
 */
export type SidecarAddress = { readonly path: string; readonly ownerUid?: number } | { readonly url: string }

/** An output at its limit with receipt and words around it, four times. */
const MAXIMUM_REPLY_BYTES = MAXIMUM_TOOL_OUTCOME_BYTES

export interface Sent {
  readonly path: string
  readonly body: Uint8Array
  readonly controlToken: string | null
}

/** `unreached`: no connection was made, so nothing was asked. `lost`: it may have been acted on. */
export type Exchange =
  | { readonly kind: 'reply'; readonly status: number; readonly body: Uint8Array }
  | { readonly kind: 'lost'; readonly reason: string }
  | { readonly kind: 'unreached'; readonly reason: string }

export type Target = ServerPins | { readonly host: string; readonly port: number }

/** How long one whole exchange may take. */
export interface Patience {
  readonly clock: Clock
  readonly deadlineBootNs: bigint
}

/** @throws RangeError for an address beyond the loopback interface: the token would leave this machine in the clear. */
export function targetOf(address: SidecarAddress): Target {
  if ('path' in address) {
    const { ownerUid = process.geteuid?.() ?? 0, path } = address
    return { ownerUid, path, socketGid: null }
  }
  const { hostname, pathname, port, protocol, search } = new URL(address.url)
  const isLoopback = protocol === 'http:' && ['127.0.0.1', '[::1]'].includes(hostname)
  if (!isLoopback || pathname !== '/' || search !== '') {
    throw new RangeError('"url" expected http://127.0.0.1:PORT or http://[::1]:PORT, got another address')
  }
  return { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? 80 : Number(port) }
}

/**
 * Sends once and waits for the whole reply.
 * @throws BrokerError `custody`, `peer_mismatch` or `sidecar_unavailable`, with nothing sent.
 */
export async function exchange(target: Target, sent: Sent, patience: Patience): Promise<Exchange> {
  if (!('path' in target)) return ask({ ...target, agent: false }, sent, patience)
  const descriptor = await connectPinned({ ...target, ...patience, unavailable: 'sidecar_unavailable' })
  const socket = new Socket({ fd: descriptor, readable: true, writable: true })
  return ask({ createConnection: () => socket }, sent, patience)
}

/** With an agent, even the one that `false` makes, node:http would not ask for the connection here. */
type Route =
  | { readonly agent: false; readonly host: string; readonly port: number }
  | { readonly createConnection: () => Socket }

function ask(route: Route, sent: Sent, { clock, deadlineBootNs }: Patience): Promise<Exchange> {
  return new Promise(resolve => {
    let isConnected = 'createConnection' in route
    const asked = request({
      ...route,
      headers: fieldsOf(sent),
      method: 'POST',
      path: sent.path,
    })
    // It ends the wait itself: a request that is destroyed after its head was answered says nothing any more.
    const stopWaiting = whenPassed(clock, deadlineBootNs, () => lose(new Error('no reply in time')))
    const end = (result: Exchange): void => {
      stopWaiting()
      resolve(result)
      asked.destroy()
    }
    const lose = (error: Error): void => {
      const reason = (error as NodeJS.ErrnoException).code ?? error.message
      end({ kind: isConnected ? 'lost' : 'unreached', reason })
    }
    asked.on('socket', socket => socket.once('connect', () => (isConnected = true)))
    asked.on('error', lose)
    // Without a listener node:http drops the connection without a word to whoever waits.
    asked.on('upgrade', (_response, socket) => {
      socket.destroy()
      lose(new Error('another protocol'))
    })
    asked.on('response', response => void whole(response).then(end, lose))
    finish(asked, sent.body)
  })
}

function fieldsOf({ body, controlToken }: Sent): Record<string, string | number> {
  return {
    connection: 'close',
    'content-length': body.length,
    'content-type': 'application/json',
    ...(controlToken !== null && { authorization: `Bearer ${controlToken}` }),
  }
}

function finish(asked: ClientRequest, body: Uint8Array): void {
  asked.end(body)
}

async function whole(response: IncomingMessage): Promise<Exchange> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response as AsyncIterable<Uint8Array>) {
    bytes += chunk.length
    if (bytes > MAXIMUM_REPLY_BYTES) throw new Error(`a reply of more than ${MAXIMUM_REPLY_BYTES} bytes`)
    chunks.push(chunk)
  }
  if (!response.complete) throw new Error('the reply ended early')
  return { kind: 'reply', status: response.statusCode ?? 0, body: Buffer.concat(chunks) }
}
