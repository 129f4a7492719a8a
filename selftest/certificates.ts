// Certificates for loopback providers: a CA of the run's own and the leaves it signs, made by the openssl
// command and kept in memory. The folder they are made in is removed at once.
import { execFileSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { allowedEnvironment } from '../system/environment.js'

export interface Certificate {
  readonly certPem: string
  readonly keyPem: string
}

export interface CertificateAuthority extends Certificate {
  /** A leaf for these subjectAltName entries, such as `DNS:provider.test` or `IP:127.0.0.1`. */
  issue(names: readonly string[], options?: LeafOptions): Certificate
}

export interface LeafOptions {
  readonly commonName?: string
  /** Negative: expired. */
  readonly days?: number
}

const openssl = (folder: string, ...args: string[]): void => {
  execFileSync('openssl', args, { cwd: folder, env: allowedEnvironment(), stdio: 'pipe' })
}
const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']

function inFolder<T>(work: (folder: string) => T): T {
  const folder = mkdtempSync(join(tmpdir(), 'chio-certificates-'))
  try {
    return work(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const read = (folder: string, name: string): Certificate => ({
  certPem: readFileSync(join(folder, `${name}.crt`), 'utf8'),
  keyPem: readFileSync(join(folder, `${name}.key`), 'utf8'),
})

/** Makes a certificate authority. */
export function makeAuthority(commonName = 'chio trial CA'): CertificateAuthority {
  const authority = inFolder(folder => {
    openssl(
      folder,
      'req',
      '-x509',
      ...NEW_KEY,
      '-keyout',
      'ca.key',
      '-out',
      'ca.crt',
      '-days',
      '30',
      '-subj',
      `/CN=${commonName}`,
    )
    return read(folder, 'ca')
  })
  return { ...authority, issue: (names, options = {}) => issueLeaf(authority, names, options) }
}

function issueLeaf(authority: Certificate, names: readonly string[], options: LeafOptions): Certificate {
  return inFolder(folder => {
    writeFileSync(join(folder, 'ca.crt'), authority.certPem)
    writeFileSync(join(folder, 'ca.key'), authority.keyPem)
    const extensions = ['basicConstraints=CA:FALSE', 'extendedKeyUsage=serverAuth']
    if (names.length > 0) extensions.push(`subjectAltName=${names.join(',')}`)
    writeFileSync(join(folder, 'leaf.ext'), extensions.join('\n'))
    openssl(
      folder,
      'req',
      ...NEW_KEY,
      '-keyout',
      'leaf.key',
      '-out',
      'leaf.csr',
      '-subj',
      `/CN=${options.commonName ?? 'leaf'}`,
    )
    const signing = `x509 -req -in leaf.csr -CA ca.crt -CAkey ca.key -set_serial ${randomInt(1, 2 ** 47)} -out leaf.crt`
    openssl(folder, ...signing.split(' '), '-days', String(options.days ?? 30), '-extfile', 'leaf.ext')
    return read(folder, 'leaf')
  })
}
