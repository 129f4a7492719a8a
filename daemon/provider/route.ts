// Owns the decision where a destination may be looked for: a public host by name, or a configured
// local provider. Pure: no lookup, no connection, so that preparation can refuse before anything moves.
// Source: broker wire §5.2 and §14.

import { type BrokerDestination, isAddressLiteral } from '../../protocol/destination.js'
import { BrokerError } from '../../protocol/errors.js'
import type { LocalProviderEntry, LocalProviders } from './local-providers.js'

export interface ProviderRoute {
  /** The signed host: certificate and SNI are checked against it, never against an address. */
  readonly host: string
  readonly port: number
  /** Set for a configured local provider: its address and CA, instead of DNS and public trust. */
  readonly local: LocalProviderEntry | null
}

/**
 * Chooses the way to a signed destination.
 * @throws BrokerError `authorization_denied` for anything but https, and for an address in place of a
 *   name that no local provider configures. Nothing has been looked up then.
 */
export function routeTo(destination: BrokerDestination, localProviders: LocalProviders): ProviderRoute {
  const { normalizedHost: host, explicitPort: port } = destination
  if ((destination.scheme as string) !== 'https') deny('scheme', 'https')
  const local = localProviders.find(host, port) ?? null
  if (local === null && isAddressLiteral(host)) {
    deny('host', 'a DNS name; addresses are reached only as a configured local provider')
  }
  return { host, port, local }
}

function deny(part: string, expected: string): never {
  throw new BrokerError('authorization_denied', `destination ${part} refused: expected ${expected}`)
}
