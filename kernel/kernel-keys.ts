// Owns: how the kernel's four keys enter: each by exactly one source, and what is missing said at once.
// Must never: keep a seed longer than it takes to make its key.
// Source: key files and descriptors of the daemons (`--X-key-file`, `--X-key-fd`, `--X-key-credential`).
import { BrokerError } from '../protocol/errors.js'
import { type SigningKey, signingKey } from '../protocol/keys.js'
import { type KeySource, readKey } from '../system/key-file.js'
import type { KernelKeys } from './kernel-context.js'

export const KERNEL_KEY_NAMES = ['kernel', 'authority', 'issuer', 'storage'] as const
export type KernelKeyName = (typeof KERNEL_KEY_NAMES)[number]

/** The options of one key as they were given on a command line. */
export interface KeyChoice {
  readonly file?: string | undefined
  readonly fd?: string | undefined
  readonly credential?: string | undefined
}
export type KeyChoices = Readonly<Record<KernelKeyName, KeyChoice>>

/** @throws BrokerError `invalid_configuration` listing every key without exactly one source; `custody`. */
export function readKernelKeys(choices: KeyChoices): KernelKeys & { wipe(): void } {
  const sources = sourcesOf(choices)
  const keys = {
    kernel: readSigningKey(sources.kernel, 'kernel key'),
    authority: readSigningKey(sources.authority, 'authority key'),
    issuer: readSigningKey(sources.issuer, 'issuer key'),
    storage: readKey(sources.storage, 'storage key'),
  }
  return {
    ...keys,
    wipe() {
      for (const key of [keys.kernel, keys.authority, keys.issuer]) key.wipe()
      keys.storage.fill(0)
    },
  }
}

function sourcesOf(choices: KeyChoices): Record<KernelKeyName, KeySource> {
  const found = KERNEL_KEY_NAMES.map(name => [name, sourceOf(choices[name])] as const)
  const wrong = found.filter(([, source]) => source === undefined).map(([name]) => name)
  if (wrong.length === 0) return Object.fromEntries(found) as Record<KernelKeyName, KeySource>
  const options = wrong.map(name => `--${name}-key-{file,fd,credential}`).join(', ')
  throw new BrokerError(
    'invalid_configuration',
    `kernel refused: expected exactly one each of ${options}, got none or several`,
  )
}

function sourceOf({ credential, fd, file }: KeyChoice): KeySource | undefined {
  const sources: KeySource[] = []
  if (file !== undefined) sources.push({ file })
  if (fd !== undefined && /^[0-9]{1,6}$/.test(fd)) sources.push({ fd: Number(fd) })
  if (credential !== undefined) sources.push({ credential })
  return sources.length === 1 ? sources[0] : undefined
}

function readSigningKey(source: KeySource, what: string): SigningKey {
  const seed = readKey(source, what)
  try {
    return signingKey(seed)
  } finally {
    seed.fill(0)
  }
}
