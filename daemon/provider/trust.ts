// Owns which certificates count: the public roots for public hosts, the entry's own CA for a local
// provider. Nothing from the environment is trusted, and a certificate must name the signed host.
// Source: RFC 9525 (service identity, subjectAltName only), broker wire §14.

import {
  createSecureContext,
  checkServerIdentity as matchesHost,
  type PeerCertificate,
  rootCertificates,
  type SecureContext,
} from 'node:tls'
import type { LocalProviderEntry } from './local-providers.js'
import type { ProviderRoute } from './route.js'

// Parsing the public roots takes over 20 ms: once, and never on an execution's path after `warmTrust`.
let publicRoots: SecureContext | undefined
const localRoots = new WeakMap<LocalProviderEntry, SecureContext>()

export function trustFor(route: ProviderRoute): SecureContext {
  if (route.local === null) return (publicRoots ??= contextOf([...rootCertificates]))
  const known = localRoots.get(route.local)
  if (known !== undefined) return known
  const made = contextOf([route.local.caPem])
  localRoots.set(route.local, made)
  return made
}

/** Parses the public roots ahead of the first execution. */
export function warmTrust(): void {
  publicRoots ??= contextOf([...rootCertificates])
}

/** A fault that we found ourselves; Node's own have a code. */
export class CertificateFault extends Error {}

const WITHOUT_COMMON_NAME = {} as PeerCertificate['subject']

/**
 * Judges a certificate against the signed host. A common name never counts.
 * @returns undefined when it matches, otherwise the fault.
 */
export function judgeCertificate(host: string, certificate: PeerCertificate): Error | undefined {
  if (certificate.subjectaltname === undefined || certificate.subjectaltname === '') {
    return new CertificateFault('a certificate without a subjectAltName')
  }
  // Beside names of other kinds only, Node would fall back to the common name: it gets none to see.
  return matchesHost(host, { ...certificate, subject: WITHOUT_COMMON_NAME })
}

function contextOf(ca: string[]): SecureContext {
  return createSecureContext({ ca, minVersion: 'TLSv1.2' })
}
