// Owns: how secret bytes enter a process: a sealed descriptor, a private file, or a service manager's credential.
// Must never: read a key from argv, the environment or a file that another uid could have written, or name a byte of it.
// Source: the broker protocol's credential custody; memfd_create(2), systemd.exec(5) "Credentials".
import { randomFillSync } from 'node:crypto'
import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs'
import { dirname, isAbsolute, join } from 'node:path'
import { closeDescriptor, FULL_SEALS, memfdSeals, readSealed } from '../native/index.js'
import { wipeableBytes } from '../protocol/digest.js'
import { BrokerError } from '../protocol/errors.js'
import { type SigningKey, signingKey } from '../protocol/keys.js'
import { KEY_BYTES } from '../protocol/limits.js'
import { assertAncestors } from './ancestors.js'
import { errorCode, modeText, refused } from './custody-refusal.js'
import { createFile } from './retained-file.js'

export type KeySource = { readonly fd: number } | { readonly file: string } | { readonly credential: string }

const KEY_FILE_MODES: readonly number[] = [0o600]
const CREDENTIAL_MODES: readonly number[] = [0o400, 0o440]
/** Standard input, output and error are never a key. */
const FIRST_KEY_DESCRIPTOR = 3

interface FileRules {
  readonly owners: readonly number[]
  readonly modes: readonly number[]
}

/** How many bytes a secret has. */
export interface SecretSize {
  readonly minimumBytes: number
  readonly maximumBytes: number
}
const KEY_SIZE: SecretSize = { minimumBytes: KEY_BYTES, maximumBytes: KEY_BYTES }

/**
 * Reads a key under the custody rules of its source; a key descriptor is closed by it.
 * @param what names the key in a refusal, "receipt signing key" for one.
 * @returns 32 bytes of the caller's own, to be overwritten after use.
 * @throws BrokerError `custody`.
 */
export function readKey(source: KeySource, what: string): Uint8Array {
  const key = readSecret(source, what, KEY_SIZE)
  // What a disk leaves of a file that was never synced, and what anybody can guess.
  if (key.every(byte => byte === 0)) throw refused(what, 'random bytes', 'only zeros; restore the key')
  return key
}

/**
 * Reads another secret than a key, such as a token, under the same rules of custody.
 * @returns bytes of the caller's own, to be overwritten after use.
 * @throws BrokerError `custody`.
 */
export function readSecret(source: KeySource, what: string, size: SecretSize): Uint8Array {
  if ('fd' in source) return readKeyDescriptor(source.fd, what, size)
  if ('file' in source) return readKeyFile(source.file, what, size)
  return readCredential(source.credential, what, size)
}

/** What a disk refuses, whatever the name of the file. */
const OF_THE_DISK: ReadonlySet<string> = new Set(['EDQUOT', 'EFBIG', 'EIO', 'ENOSPC', 'EROFS'])

/** Writes a new key file, 0600, on disk when it returns. @throws BrokerError `custody` when the name is taken. */
export function writeKeyFile(path: string, key: Uint8Array): void {
  if (key.length !== KEY_BYTES) throw new RangeError(`key: expected ${KEY_BYTES} bytes, got ${key.length}`)
  try {
    createFile(path, key, 0o600)
  } catch (error) {
    const code = errorCode(error)
    if (!OF_THE_DISK.has(code)) throw refused(path, 'a free name in a private directory', code, error)
    throw new BrokerError('storage', `key file ${path} refused: expected room on its disk, got ${code}`, {
      outcome: 'not_started',
      cause: error,
    })
  }
}

/** Makes a new key in a file of its own, as `writeKeyFile` does. The caller wipes what it gets. */
export function makeKeyFile(path: string): SigningKey {
  const seed = randomFillSync(wipeableBytes(KEY_BYTES))
  try {
    writeKeyFile(path, seed)
    return signingKey(seed)
  } finally {
    seed.fill(0)
  }
}

function readKeyDescriptor(fd: number, what: string, size: SecretSize): Uint8Array {
  if (!Number.isInteger(fd) || fd < FIRST_KEY_DESCRIPTOR) {
    throw new RangeError(`${what}: expected a descriptor from ${FIRST_KEY_DESCRIPTOR}, got ${fd}`)
  }
  try {
    return readSealed(fd, { exactBytes: sealedBytes(fd, what, size) })
  } catch (error) {
    if (error instanceof BrokerError) throw error
    throw refused(what, `a sealed memfd of ${bytesText(size)} at descriptor ${fd}`, errorCode(error), error)
  } finally {
    closeQuietly(fd)
  }
}

/** Root may hand a key to a daemon of another uid; nobody else may. */
function sealedBytes(fd: number, what: string, size: SecretSize): number {
  const stats = fstatSync(fd)
  if (!stats.isFile()) throw refused(what, 'a regular file behind the descriptor', 'another kind')
  assertOwner(stats, [0, effectiveUid()], what)
  const seals = memfdSeals(fd)
  if ((seals & FULL_SEALS) !== FULL_SEALS)
    throw refused(what, 'all four seals', `seals 0x${seals.toString(16)}`)
  assertSize(stats.size, what, size)
  return stats.size
}

function assertSize(bytes: number, what: string, size: SecretSize): void {
  if (bytes >= size.minimumBytes && bytes <= size.maximumBytes) return
  throw refused(what, bytesText(size), `${bytes}`)
}

function bytesText({ maximumBytes, minimumBytes }: SecretSize): string {
  return minimumBytes === maximumBytes ? `${minimumBytes} bytes` : `${minimumBytes} to ${maximumBytes} bytes`
}

function closeQuietly(fd: number): void {
  try {
    closeDescriptor(fd)
  } catch {
    return
  }
}

function readKeyFile(path: string, what: string, size: SecretSize): Uint8Array {
  assertAncestors(dirname(path), effectiveUid())
  return readFile(path, { owners: [effectiveUid()], modes: KEY_FILE_MODES }, what, size)
}

function readCredential(name: string, what: string, size: SecretSize): Uint8Array {
  if (!/^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}$/.test(name)) {
    throw refused(what, 'a credential name of letters, digits and _ . -', 'another')
  }
  const directory = process.env['CREDENTIALS_DIRECTORY']
  if (directory === undefined || !isAbsolute(directory)) {
    throw refused(
      what,
      'CREDENTIALS_DIRECTORY to be an absolute path',
      'none; start it from its service unit',
    )
  }
  const rules = { owners: [0, effectiveUid()], modes: CREDENTIAL_MODES }
  return readFile(join(directory, name), rules, what, size)
}

function readFile(path: string, rules: FileRules, what: string, size: SecretSize): Uint8Array {
  const descriptor = openKeyFile(path, what)
  try {
    const stats = fstatSync(descriptor)
    assertKeyFile(stats, rules, what)
    assertSize(stats.size, what, size)
    return readExactly(descriptor, what, stats.size)
  } finally {
    closeSync(descriptor)
  }
}

/** O_NONBLOCK, so that a FIFO in its place cannot hold the start. */
function openKeyFile(path: string, what: string): number {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    throw refused(what, `a readable file ${path} that is no symbolic link`, errorCode(error), error)
  }
}

function assertKeyFile(stats: Stats, rules: FileRules, what: string): void {
  if (!stats.isFile()) throw refused(what, 'a regular file', 'another kind')
  assertOwner(stats, rules.owners, what)
  if (!rules.modes.includes(stats.mode & 0o7777)) {
    const modes = rules.modes.map(mode => `0${mode.toString(8)}`).join(' or ')
    throw refused(what, `mode ${modes}`, modeText(stats))
  }
  if (stats.nlink !== 1) throw refused(what, 'one link', `${stats.nlink}`)
}

/** One byte more is asked for, so that a file that grew since is noticed. */
function readExactly(descriptor: number, what: string, bytes: number): Uint8Array {
  const buffer = wipeableBytes(bytes + 1)
  const length = readSync(descriptor, buffer, 0, bytes + 1, 0)
  const key = wipeableBytes(bytes)
  key.set(buffer.subarray(0, bytes))
  buffer.fill(0)
  if (length === bytes) return key
  key.fill(0)
  throw refused(what, `${bytes} bytes`, `${length}`)
}

function assertOwner(stats: Stats, owners: readonly number[], what: string): void {
  if (owners.includes(stats.uid)) return
  throw refused(what, `owner uid ${[...new Set(owners)].join(' or ')}`, `${stats.uid}`)
}

function effectiveUid(): number {
  return process.geteuid?.() ?? 0
}
