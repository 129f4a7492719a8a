// Owns the operator's list of providers on this machine: the only way to a loopback address. An entry
// answers for its exact host and port and brings its own CA; no public CA counts for it, and its CA
// counts for nothing else.
// Source: broker wire §14 (exact exceptions).

import { X509Certificate } from 'node:crypto'
import { BrokerError } from '../../protocol/errors.js'
import { canonicalAddress, isLoopback } from './addresses.js'

/** One entry of `localProviders` in the broker's configuration. */
export interface LocalProviderEntry {
  readonly host: string
  readonly port: number
  /** Loopback, numeric. */
  readonly address: string
  /** One or more certificates that sign the provider's own. */
  readonly caPem: string
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g

export class LocalProviders {
  readonly #byOrigin = new Map<string, LocalProviderEntry>()

  /** @throws BrokerError `invalid_configuration` naming the entry and the member. */
  constructor(entries: readonly LocalProviderEntry[]) {
    entries.forEach((entry, index) => {
      const where = `localProviders[${index}]`
      const address = admitAddress(entry.address, where)
      admitPort(entry.port, where)
      admitAuthority(entry.caPem, where)
      this.#add({ ...entry, address }, where)
    })
  }

  /** The entry whose host and port both match exactly, if any. */
  find(host: string, port: number): LocalProviderEntry | undefined {
    return this.#byOrigin.get(originOf(host, port))
  }

  /** What `status` and `doctor` show. */
  list(): readonly LocalProviderEntry[] {
    return [...this.#byOrigin.values()]
  }

  #add(entry: LocalProviderEntry, where: string): void {
    if (!/^[a-z0-9.:-]{1,253}$/.test(entry.host) || entry.host.endsWith('.')) {
      refuse(
        `${where}.host`,
        `a lower-case host without brackets or final dot, got ${JSON.stringify(entry.host)}`,
      )
    }
    const origin = originOf(entry.host, entry.port)
    if (this.#byOrigin.has(origin)) refuse(where, 'one entry a host and port, got a second')
    this.#byOrigin.set(origin, entry)
  }
}

export const NO_LOCAL_PROVIDERS = new LocalProviders([])

function originOf(host: string, port: number): string {
  return `${host} ${port}`
}

function admitAddress(address: string, where: string): string {
  const canonical = canonicalAddress(address)
  if (canonical === null || !isLoopback(canonical)) {
    refuse(
      `${where}.address`,
      `a numeric loopback address, 127.0.0.0/8 or ::1, got ${JSON.stringify(address)}`,
    )
  }
  return canonical
}

function admitPort(port: number, where: string): void {
  if (!Number.isInteger(port) || port < 1 || port > 65_535) refuse(`${where}.port`, `1 to 65535, got ${port}`)
}

function admitAuthority(caPem: string, where: string): void {
  const certificates = caPem.match(CERTIFICATE) ?? []
  if (certificates.length === 0 || !certificates.every(isCertificate)) {
    refuse(
      `${where}.caPem`,
      `one or more PEM certificates, got ${certificates.length === 0 ? 'none' : 'one that cannot be read'}`,
    )
  }
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0
  } catch {
    return false
  }
}

function refuse(what: string, expected: string): never {
  throw new BrokerError('invalid_configuration', `${what} refused: expected ${expected}`)
}
