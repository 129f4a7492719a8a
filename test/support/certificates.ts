// Certificates that all tests of one process share, so that the openssl command runs seldom.
import { type Certificate, type CertificateAuthority, makeAuthority } from '../../selftest/certificates.js'

export {
  type Certificate,
  type CertificateAuthority,
  type LeafOptions,
  makeAuthority,
} from '../../selftest/certificates.js'

let shared: CertificateAuthority | undefined
const leaves = new Map<string, Certificate>()

/** The authority of this test process, made once. */
export function testAuthority(): CertificateAuthority {
  return (shared ??= makeAuthority())
}

/** A leaf of the shared authority, made once a set of names. */
export function testLeaf(names: readonly string[]): Certificate {
  const key = names.join(',')
  const known = leaves.get(key)
  if (known !== undefined) return known
  const made = testAuthority().issue(names)
  leaves.set(key, made)
  return made
}
