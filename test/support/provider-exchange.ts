// Owns the broker's side of a provider test: from a destination to an ending, on real sockets, with the
// counters that say what reached the provider.
import { type OpeningTerms, ProviderConnection } from '../../daemon/provider/connection.js'
import { exchange, type ExchangeResult } from '../../daemon/provider/exchange.js'
import { LocalProviders } from '../../daemon/provider/local-providers.js'
import {
  admitProviderRequest,
  type ProviderRequest,
  writeProviderRequest,
} from '../../daemon/provider/request-writer.js'
import { PublicResolver } from '../../daemon/provider/resolve.js'
import { routeTo } from '../../daemon/provider/route.js'
import { SecretScan } from '../../daemon/provider/secret-scan.js'
import type { Clock } from '../../protocol/clock.js'
import type { BrokerDestination } from '../../protocol/destination.js'
import { runningClock } from './clock.js'
import type { TestProvider } from './provider.js'

export const SECRET = Buffer.from('tok_Zq8wXe4Rt6Yu2Io0')

export const inMs = (milliseconds: number, clock: Clock = runningClock): bigint =>
  clock.bootNs() + BigInt(Math.round(milliseconds * 1e6))

/** A resolver that is never to be asked: local providers need none. */
export const noResolver = new PublicResolver(() => Promise.reject(new Error('resolved')))

export function destinationOf(
  provider: TestProvider,
  over: Partial<BrokerDestination> = {},
): BrokerDestination {
  return {
    exactPathAndQuery: '/v1',
    explicitPort: provider.port,
    method: 'POST',
    normalizedHost: provider.host,
    scheme: 'https',
    ...over,
  }
}

export function termsFor(provider: TestProvider, over: Partial<OpeningTerms> = {}): OpeningTerms {
  const route = routeTo(destinationOf(provider), new LocalProviders([provider.localProvider()]))
  return { route, resolver: noResolver, clock: runningClock, deadlineBootNs: inMs(5_000), ...over }
}

/** Opens a connection and waits until TLS is verified. */
export async function opened(terms: OpeningTerms): Promise<ProviderConnection> {
  const connection = new ProviderConnection(terms)
  await connection.ready
  return connection
}

export interface ExchangeOptions {
  readonly request?: Partial<ProviderRequest>
  readonly deadlineMs?: number
  readonly limit?: number
  readonly secret?: Uint8Array
  readonly clock?: Clock
  /** Also given the written request, to look at it afterwards. */
  readonly onRequest?: (request: Buffer) => void
}

/** One whole exchange on a fresh connection. */
export async function exchangeWith(
  provider: TestProvider,
  options: ExchangeOptions = {},
): Promise<ExchangeResult> {
  return exchangeOn(await opened(termsFor(provider)), provider, options)
}

export function exchangeOn(
  connection: ProviderConnection,
  provider: TestProvider,
  options: ExchangeOptions = {},
): Promise<ExchangeResult> {
  const { clock = runningClock, secret = SECRET, deadlineMs = 5_000, limit = 65_536 } = options
  const request = admitProviderRequest({
    destination: destinationOf(provider),
    headers: [],
    body: Buffer.from('{"title":"x"}'),
    placement: { kind: 'bearer_authorization' },
    ...options.request,
  })
  const written = writeProviderRequest(request, secret)
  options.onRequest?.(written)
  return exchange(connection, written, {
    clock,
    deadlineBootNs: inMs(deadlineMs, clock),
    method: request.destination.method,
    responseLimitBytes: limit,
    scan: new SecretScan(secret, request.placement),
  })
}

/** The ending in a word and its reason, for tables. */
export function endingOf(result: ExchangeResult): string {
  return result.ending === 'response'
    ? `response ${result.response.status}`
    : `${result.ending}: ${result.reason}`
}
