// Owns where a sidecar listens: a Unix socket of this user alone, or one port of a loopback address.
// Must never: listen on an address that another machine reaches, or on a name that somebody else resolves.
// Source: unix(7), ip(7); the directory's lock and the stale socket are judged as for every socket of ours.
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { BrokerError } from '../protocol/errors.js'
import { bindSocket } from '../system/bound-socket.js'
import { BACKLOG } from './http-limits.js'

export type LoopbackHost = '127.0.0.1' | '::1'
export const LOOPBACK_HOSTS: readonly LoopbackHost[] = ['127.0.0.1', '::1']
const DEFAULT_HTTP_PORT = 80
const MAXIMUM_PORT = 65_535

/** `path`: absolute, alone in a directory 0700 of this user. `port` 0 takes a free one. */
export type SidecarListen = { readonly path: string } | { readonly host: LoopbackHost; readonly port: number }

export interface BoundSidecar {
  readonly listen: SidecarListen
  /** Removes the socket's name if it is still ours. */
  release(): void
}

/** @throws BrokerError `invalid_configuration` for an address that is no loopback address, or no port. */
export function assertListen(listen: SidecarListen): void {
  if ('path' in listen) return
  const isPort = Number.isInteger(listen.port) && listen.port >= 0 && listen.port <= MAXIMUM_PORT
  if (LOOPBACK_HOSTS.includes(listen.host) && isPort) return
  throw new BrokerError(
    'invalid_configuration',
    `sidecar address refused: expected ${LOOPBACK_HOSTS.join(' or ')} with a port of 0 to ${MAXIMUM_PORT}, got another; or listen at a path`,
  )
}

/** @throws BrokerError `custody`, `another_instance`; an error with the system's code for a port that is taken. */
export async function bindListener(server: Server, listen: SidecarListen): Promise<BoundSidecar> {
  if ('path' in listen) {
    const owner = { ownerUid: process.geteuid?.() ?? 0, socketGid: null }
    const bound = bindSocket(server, listen.path, owner, BACKLOG)
    return { listen, release: () => bound.release() }
  }
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ backlog: BACKLOG, exclusive: true, host: listen.host, port: listen.port }, () => {
      server.off('error', reject)
      resolve()
    })
  })
  const { port } = server.address() as AddressInfo
  return { listen: { host: listen.host, port }, release() {} }
}

/** What the Host field of every request has to be; null over a Unix socket. */
export function authorityOf(listen: SidecarListen): string | null {
  if ('path' in listen) return null
  const host = listen.host === '::1' ? '[::1]' : listen.host
  return listen.port === DEFAULT_HTTP_PORT ? host : `${host}:${listen.port}`
}
