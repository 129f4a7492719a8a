// Providers that are answered on this machine: a trial's own, with a certificate authority of its own. An operator
// has to see them, since whoever serves that port is sent the credential.
import type { BrokerdConfig } from '../../daemon/config.js'
import { type Check, ok, weaker } from './check.js'
import type { DocumentFound } from './configuration.js'

const NAME = 'loopback-providers'

export function judgeLoopbackProviders(broker: DocumentFound<Pick<BrokerdConfig, 'localProviders'>>): Check {
  if (broker.kind !== 'read') return ok(NAME, "not known: the broker's configuration is not ours to see")
  const { localProviders } = broker.document
  if (localProviders.length === 0) return ok(NAME, 'none: every provider is public')
  const named = localProviders.map(({ host, port, address }) => `${host}:${port} at ${address}`).join(', ')
  return weaker(NAME, named, "take them out of localProviders in the broker's configuration after the trial")
}
