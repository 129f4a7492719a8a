import { createServer, type Server } from 'node:net'
import { once } from 'node:events'
import type { TlsOptions } from 'node:tls'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { ProviderConnection } from '../../../daemon/provider/connection.js'
import { PublicResolver } from '../../../daemon/provider/resolve.js'
import { routeTo } from '../../../daemon/provider/route.js'
import { LocalProviders, NO_LOCAL_PROVIDERS } from '../../../daemon/provider/local-providers.js'
import { makeAuthority, testAuthority } from '../../support/certificates.js'
import { startProvider, type TestProvider } from '../../support/provider.js'
import {
  destinationOf,
  endingOf,
  exchangeOn,
  exchangeWith,
  inMs,
  opened,
  termsFor,
} from '../../support/provider-exchange.js'

const pause = (milliseconds: number): Promise<void> =>
  new Promise(resolve => setTimeout(resolve, milliseconds))
const cleanups: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup()
})
async function provider(...options: Parameters<typeof startProvider>): Promise<TestProvider> {
  const started = await startProvider(...options)
  cleanups.push(() => started.close())
  return started
}
/** Accepts TCP and never says a word. */
async function silentServer(address: string, port: number): Promise<Server> {
  const server = createServer(socket => socket.on('error', () => undefined))
  server.listen(port, address)
  await once(server, 'listening')
  cleanups.push(async () => {
    server.close()
    await Promise.resolve()
  })
  return server
}

describe('an opened connection', () => {
  it('is alive, verified, pinned to the configured address and silent', async () => {
    const served = await provider()
    const connection = await opened(termsFor(served))
    expect([connection.isAlive(), connection.address, served.hits]).toEqual([true, '127.0.0.1', 0])
    connection.drop()
    expect(connection.isAlive()).toBe(false)
  })

  it('serves IPv6 loopback, and an address as host without SNI', async () => {
    const served = await provider({ host: '::1', address: '::1' })
    expect(endingOf(await exchangeWith(served))).toBe('response 200')
    expect(served.sockets[0]?.servername).toBeFalsy()
    expect(served.requests[0]?.header('host')).toBe(`[::1]:${served.port}`)
  })

  it('sends SNI and ALPN of the signed host, and never resumes a session', async () => {
    const seen: unknown[] = []
    const served = await provider({
      onConnection: socket => seen.push([socket.servername, socket.alpnProtocol, socket.isSessionReused()]),
    })
    await exchangeWith(served)
    await exchangeWith(served)
    expect(seen).toEqual([
      ['provider.test', 'http/1.1', false],
      ['provider.test', 'http/1.1', false],
    ])
  })

  it('accepts a provider without ALPN', async () => {
    const served = await provider({ tls: { ALPNProtocols: undefined } })
    expect(endingOf(await exchangeWith(served))).toBe('response 200')
  })

  it('serves one request only', async () => {
    const served = await provider()
    const connection = await opened(termsFor(served))
    const first = exchangeOn(connection, served)
    expect(endingOf(await exchangeOn(connection, served))).toBe('not_sent: connection_lost')
    expect(endingOf(await first)).toBe('response 200')
    expect(served.hits).toBe(1)
  })
})

describe('a connection is refused, and nothing is sent, for', () => {
  const other = makeAuthority('another CA')
  const leafOf = (names: string[], options = {}): TlsOptions => {
    const { certPem, keyPem } = testAuthority().issue(names, options)
    return { cert: certPem, key: keyPem }
  }
  const foreign = other.issue(['DNS:provider.test'])

  it.each<[string, () => TlsOptions, RegExp]>([
    [
      'a certificate of another CA',
      () => ({ cert: foreign.certPem, key: foreign.keyPem }),
      /SELF_SIGNED|UNABLE/,
    ],
    ['a certificate for another name', () => leafOf(['DNS:other.test']), /ERR_TLS_CERT_ALTNAME_INVALID/],
    ['a certificate for the address only', () => leafOf(['IP:127.0.0.1']), /ERR_TLS_CERT_ALTNAME_INVALID/],
    [
      'a certificate with the host as common name only',
      () => leafOf([], { commonName: 'provider.test' }),
      /a certificate without a subjectAltName in the TLS handshake/,
    ],
    [
      'the host as common name beside an address',
      () => leafOf(['IP:127.0.0.1'], { commonName: 'provider.test' }),
      /ERR_TLS_CERT_ALTNAME_INVALID/,
    ],
    [
      'the host as common name beside a mail address',
      () => leafOf(['email:a@provider.test'], { commonName: 'provider.test' }),
      /ERR_TLS_CERT_ALTNAME_INVALID/,
    ],
    ['an expired certificate', () => leafOf(['DNS:provider.test'], { days: -1 }), /CERT_HAS_EXPIRED/],
    ['a provider of HTTP/2 only', () => ({ ALPNProtocols: ['h2'] }), /TLS handshake/],
    [
      'TLS 1.1',
      () => ({ minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' }),
      /TLS handshake/,
    ],
    [
      'no common cipher',
      () => ({ maxVersion: 'TLSv1.2', ciphers: 'NULL-SHA256:@SECLEVEL=0' }),
      /TLS handshake/,
    ],
  ])('%s', async (_what, tls, message) => {
    const served = await provider({ tls: tls() })
    const connection = new ProviderConnection(termsFor(served))
    await expect(connection.ready).rejects.toMatchObject({
      code: 'upstream',
      kind: 'unverified',
      outcome: 'not_started',
    })
    await expect(connection.ready).rejects.toThrow(message)
    expect([connection.isAlive(), served.hits]).toEqual([false, 0])
    expect(endingOf(await exchangeOn(connection, served))).toBe('not_sent: connection_lost')
  })

  it('a foreign certificate, though the environment switches verification off', async () => {
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
    cleanups.push(async () => void (await Promise.resolve(vi.unstubAllEnvs())))
    const served = await provider({ tls: { cert: foreign.certPem, key: foreign.keyPem } })
    await expect(new ProviderConnection(termsFor(served)).ready).rejects.toMatchObject({ code: 'upstream' })
    expect(served.hits).toBe(0)
  })

  it('a local CA on a public route: it counts for its own entry alone', async () => {
    const served = await provider()
    const route = { host: served.host, port: served.port, local: null }
    const connection = new ProviderConnection(termsFor(served, { route, addresses: ['127.0.0.1'] }))
    await expect(connection.ready).rejects.toThrow(/SELF_SIGNED|UNABLE/)
  })

  it('a host that resolves to loopback, however it is spelled', async () => {
    const served = await provider()
    const route = routeTo(destinationOf(served, { normalizedHost: 'rebind.test' }), NO_LOCAL_PROVIDERS)
    const resolver = new PublicResolver(() => Promise.resolve(['1.1.1.1', '127.0.0.1']))
    const connection = new ProviderConnection(termsFor(served, { route, resolver }))
    await expect(connection.ready).rejects.toMatchObject({ code: 'authorization_denied' })
    expect(served.connections).toBe(0)
  })

  it('plain HTTP on the port', async () => {
    const server = createServer(socket => {
      socket.on('error', () => undefined)
      socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const served = await provider()
    const { port } = server.address() as { port: number }
    const route = routeTo(
      destinationOf(served, { explicitPort: port }),
      new LocalProviders([{ ...served.localProvider(), port }]),
    )
    await expect(new ProviderConnection(termsFor(served, { route })).ready).rejects.toThrow(
      /unverified: got .* in the TLS handshake/,
    )
    server.close()
  })

  it('nobody listening', async () => {
    const served = await provider()
    await served.close()
    cleanups.length = 0
    await expect(new ProviderConnection(termsFor(served)).ready).rejects.toThrow(
      /unreachable: got ECONNREFUSED/,
    )
  })
})

describe('every checked address is tried in order', () => {
  it('past one that refuses and one that is silent, each within its share', async () => {
    const served = await provider()
    await silentServer('127.0.0.3', served.port)
    const addresses = ['127.0.0.2', '127.0.0.3', '127.0.0.1']
    const connection = new ProviderConnection(termsFor(served, { addresses, deadlineBootNs: inMs(1_500) }))
    await connection.ready
    expect(connection.address).toBe('127.0.0.1')
    connection.drop()
  })

  it('and past one whose certificate is another', async () => {
    const impostor = await provider({ host: 'other.test', address: '127.0.0.4' })
    const served = await provider({ port: impostor.port })
    const connection = await opened(termsFor(served, { addresses: ['127.0.0.4', '127.0.0.1'] }))
    expect([connection.address, impostor.connections, impostor.hits]).toEqual(['127.0.0.1', 1, 0])
    connection.drop()
  })

  it('until the deadline, which ends a silent last address', async () => {
    const served = await provider()
    await silentServer('127.0.0.3', served.port)
    const started = Date.now()
    const terms = termsFor(served, { addresses: ['127.0.0.3'], deadlineBootNs: inMs(150) })
    await expect(new ProviderConnection(terms).ready).rejects.toThrow(/unreachable: got none in time/)
    expect(Date.now() - started).toBeLessThan(1_500)
  })

  it('and none after the connection was dropped', async () => {
    const served = await provider()
    await silentServer('127.0.0.3', served.port)
    const connection = new ProviderConnection(termsFor(served, { addresses: ['127.0.0.3', '127.0.0.1'] }))
    await pause(50)
    connection.drop()
    await expect(connection.ready).rejects.toThrow(/dropped/)
    await pause(50)
    expect(served.connections).toBe(0)
  })

  it('not at all when the deadline has passed', async () => {
    const served = await provider()
    const connection = new ProviderConnection(termsFor(served, { deadlineBootNs: inMs(-1) }))
    await expect(connection.ready).rejects.toThrow(/unreachable: got none in time/)
  })
})

describe('a waiting connection dies when the provider', () => {
  it.each<[string, (served: TestProvider) => void]>([
    ['closes it', served => served.sockets[0]?.end()],
    ['destroys it', served => served.sockets[0]?.destroy()],
    ['speaks first', served => served.sockets[0]?.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')],
    ['speaks first, one byte', served => served.sockets[0]?.write('H')],
  ])('%s', async (_what, act) => {
    const served = await provider()
    const connection = await opened(termsFor(served))
    await vi.waitFor(() => expect(served.sockets).toHaveLength(1))
    expect(connection.isAlive()).toBe(true)
    act(served)
    await vi.waitFor(() => expect(connection.isAlive()).toBe(false))
    expect(endingOf(await exchangeOn(connection, served))).toBe('not_sent: connection_lost')
    expect(served.hits).toBe(0)
  })
})
