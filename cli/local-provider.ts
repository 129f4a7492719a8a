// A provider on this machine as an operator names it: HOST:PORT:CA.pem. For trying without a public provider; the
// broker reaches it at this machine's loopback address alone, and believes no other authority for it.
import { readFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { LocalProviders } from '../daemon/provider/local-providers.js'
import { BrokerError } from '../protocol/errors.js'
import type { LocalProvider } from '../system/installation-plan.js'
import { fromOption } from './named-text.js'
import { given } from './output.js'

/** @throws BrokerError `usage` naming what is wrong with the option. */
export function parseLocalProviders(texts: readonly string[]): LocalProvider[] {
  const providers = texts.map(parseLocalProvider)
  return fromOption('--local-provider', () => [...new LocalProviders(providers).list()])
}

function parseLocalProvider(text: string): LocalProvider {
  const match = /^([^:]+):([0-9]{1,5}):(.+)$/.exec(text)
  if (match === null) {
    throw new BrokerError(
      'usage',
      `--local-provider refused: expected HOST:PORT:CA.pem, as api.example.com:8443:ca.pem, got ${given(text)}`,
    )
  }
  const [, host = '', port, path = ''] = match
  return { host, port: Number(port), address: loopback(), caPem: readAuthority(path) }
}

function readAuthority(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? 'a fault'
    throw new BrokerError(
      'usage',
      `--local-provider refused: expected a readable PEM file at ${path}, got ${code}`,
      {
        cause,
      },
    )
  }
}

/** A machine without IPv4 has its loopback at ::1 alone. */
function loopback(): string {
  const addresses = Object.values(networkInterfaces()).flatMap(list => list ?? [])
  return addresses.every(({ family }) => family === 'IPv6') && addresses.length > 0 ? '::1' : '127.0.0.1'
}
