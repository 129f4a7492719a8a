// Whether a grant's destination can be reached at all, as far as that is known when it is issued: what can never work
// is refused, what does not work now is said. The broker judges again at every run, and its word alone counts.
// Must never: connect. A name is looked up, nothing more.
import { setTimeout as delay } from 'node:timers/promises'
import { parseConfig } from '../daemon/config.js'
import { restrictionOf } from '../daemon/provider/addresses.js'
import { LocalProviders } from '../daemon/provider/local-providers.js'
import { type HostLookup, systemLookup } from '../daemon/provider/resolve.js'
import { systemErrorCode } from '../daemon/provider/system-error.js'
import { type BrokerDestination, isAddressLiteral } from '../protocol/destination.js'
import { BrokerError, isBrokerError } from '../protocol/errors.js'
import { MAXIMUM_CONFIGURATION_BYTES } from '../protocol/limits.js'
import { readIdentities } from '../system/identities.js'
import type { Layout } from '../system/layout.js'
import { readRetainedFile } from '../system/retained-file.js'

/** Nobody waits longer for a warning. */
const LOOKUP_MS = 2_000
const GROUP_OR_OTHERS_WRITE = 0o022
const HOW = 'docs/local-provider.md says how'

/** @returns a sentence of what does not work now; null. @throws BrokerError `usage` for what can never work. */
export async function judgeDestination(
  layout: Layout,
  { explicitPort: port, normalizedHost: host }: BrokerDestination,
  lookupHost: HostLookup = systemLookup,
): Promise<string | null> {
  const local = localProvidersOf(layout)
  if (local?.find(host, port) !== undefined) return null
  const isNamed = !isAddressLiteral(host) && host !== 'localhost' && !host.endsWith('.localhost')
  if (isNamed) return lookupWarning(host, lookupHost)
  const expected = "a public DNS name, or host and port of an entry of the broker's localProviders"
  if (local === null) return `--url: ${host}:${port} is reached only as ${expected}; ${HOW}`
  throw new BrokerError('usage', `--url refused: expected ${expected}, got ${host}:${port}; ${HOW}`)
}

/** What the broker's configuration says now; null for who may not read it, or when it is refused. */
function localProvidersOf(layout: Layout): LocalProviders | null {
  try {
    const { broker } = readIdentities(layout.identities)
    const rules = {
      maximumBytes: MAXIMUM_CONFIGURATION_BYTES,
      ownerUid: broker.uid,
      forbiddenMode: GROUP_OR_OTHERS_WRITE,
    }
    return new LocalProviders(parseConfig(readRetainedFile(layout.broker.config, rules)).localProviders)
  } catch (error) {
    if (isBrokerError(error) || (error as NodeJS.ErrnoException).code !== undefined) return null
    throw error
  }
}

async function lookupWarning(host: string, lookupHost: HostLookup): Promise<string | null> {
  const found = await Promise.race([
    lookedUp(host, lookupHost),
    delay(LOOKUP_MS, 'nothing in time', { ref: false }),
  ])
  if (typeof found === 'string') {
    return `--url: expected addresses of ${host} from the name servers, got ${found}; runs fail until it resolves`
  }
  const restricted = found.map(restrictionOf).find(restriction => restriction !== null)
  if (restricted === undefined) return null
  return `--url: expected public addresses of ${host}, got one that is ${restricted}; runs are refused until it has none, or an entry in the broker's localProviders: ${HOW}`
}

/** The addresses, or the code of the failure. */
async function lookedUp(host: string, lookupHost: HostLookup): Promise<readonly string[] | string> {
  try {
    return await lookupHost(host)
  } catch (error) {
    return systemErrorCode(error) ?? 'a fault without a code'
  }
}
