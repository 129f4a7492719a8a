// Owns one TCP connection and its TLS handshake with one checked address. No proxy, no second lookup, no
// session resumption, no early data, no protocol but HTTP/1.1. Must never write a byte of a request.
// Source: RFC 9112, RFC 7301 (ALPN), RFC 9325 (TLS ≥ 1.2), broker wire §14.

import { connect, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { isAddressLiteral } from '../../protocol/destination.js'
import type { BrokerError } from '../../protocol/errors.js'
import { refusalIn } from './budget.js'
import { OpeningFault } from './opening-fault.js'
import type { ProviderRoute } from './route.js'
import { systemErrorCode } from './system-error.js'
import { CertificateFault, judgeCertificate, trustFor } from './trust.js'

/**
 * Opens a verified TLS connection to an address.
 * @param address checked and canonical; the connected peer must be exactly it, before and after TLS.
 * @param signal ends the attempt; its socket is destroyed.
 * @returns a paused socket on which nothing was written but the handshake.
 * @throws OpeningFault `unreachable` or `unverified`, with an error code, never peer bytes.
 */
export async function establish(
  address: string,
  route: ProviderRoute,
  signal: AbortSignal,
): Promise<TLSSocket> {
  if (signal.aborted) throw refusalIn(signal)
  const socket = connect({ host: address, port: route.port, noDelay: true, autoSelectFamily: false })
  await whenReady(socket, 'connect', signal)
  assertPinned(socket, address)
  const secured = secure(socket, route)
  await whenReady(secured, 'secureConnect', signal)
  assertPinned(secured, address)
  assertHandshake(secured)
  return secured
}

function secure(socket: Socket, route: ProviderRoute): TLSSocket {
  return connectTls({
    socket,
    secureContext: trustFor(route),
    // Stated here, so that no environment variable can switch the verification off.
    rejectUnauthorized: true,
    ALPNProtocols: ['http/1.1'],
    // SNI carries names only (RFC 6066 §3); a local provider may be an address.
    ...(isAddressLiteral(route.host) ? {} : { servername: route.host }),
    checkServerIdentity: (_name, certificate) => judgeCertificate(route.host, certificate),
  })
}

function assertPinned(socket: Socket, address: string): void {
  if (socket.remoteAddress === address) return
  abandon(socket, 'a peer at another address than the checked one')
}

function assertHandshake(socket: TLSSocket): void {
  socket.disableRenegotiation()
  if (!socket.authorized) abandon(socket, 'a certificate that was not verified')
  if (socket.isSessionReused()) abandon(socket, 'a session that was resumed')
  if (socket.alpnProtocol !== false && socket.alpnProtocol !== 'http/1.1') {
    abandon(socket, 'another protocol than http/1.1')
  }
}

function abandon(socket: Socket, why: string): never {
  socket.destroy()
  throw new OpeningFault('unverified', why)
}

function whenReady(socket: Socket, event: 'connect' | 'secureConnect', signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (fault?: BrokerError): void => {
      socket.off(event, onReady).off('error', onError).off('close', onClose)
      signal.removeEventListener('abort', onAbort)
      // An error after this has no other listener and would end the process.
      socket.on('error', ignoreLateError)
      if (fault === undefined) return resolve()
      socket.destroy()
      reject(fault)
    }
    const onReady = (): void => settle()
    const onError = (error: Error): void => settle(unreachable(event, error))
    const onClose = (): void => settle(unreachable(event, undefined))
    const onAbort = (): void => settle(refusalIn(signal))
    socket.once(event, onReady).once('error', onError).once('close', onClose)
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
  })
}

function ignoreLateError(): void {
  // The 'close' that follows it is what every owner of the socket acts on.
}

/** A connection that ended, at whatever moment: it says nothing of the provider's identity. */
const LOST: ReadonlySet<string> = new Set([
  'ECONNABORTED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETDOWN',
  'ENETUNREACH',
  'EPIPE',
  'ETIMEDOUT',
])

// The error itself is left out: a TLS error's message quotes the peer's certificate.
function unreachable(event: 'connect' | 'secureConnect', error: Error | undefined): OpeningFault {
  const code = error === undefined ? 'one that the provider closed' : codeOf(error)
  if (event === 'connect') return new OpeningFault('unreachable', code)
  const isLost = error === undefined || LOST.has(code)
  return new OpeningFault(isLost ? 'unreachable' : 'unverified', `${code} in the TLS handshake`)
}

/** A fault of our own judgement has no code: what it says is ours. */
function codeOf(error: Error): string {
  return (
    systemErrorCode(error) ?? (error instanceof CertificateFault ? error.message : 'a fault without a code')
  )
}
