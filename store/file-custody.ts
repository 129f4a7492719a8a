// Owns: who may hold a store file: one regular file, one link, 0600, in a directory that is private to our uid.
// Must never: open the file. Closing any descriptor of it would drop SQLite's POSIX locks of this whole process.
// Source: sqlite.org/howtocorrupt.html §2.2, fcntl(2) "record locks".
import { type BigIntStats, lstatSync } from 'node:fs'
import { dirname, isAbsolute, resolve } from 'node:path'
import { BrokerError } from '../protocol/errors.js'

export interface FileIdentity {
  readonly device: string
  readonly inode: string
}

/** Refuses a parent that another uid could write to or read from. */
export function assertPrivateParent(path: string): void {
  if (!isAbsolute(path) || resolve(path) !== path) {
    throw new TypeError(`store path: expected an absolute normal path, got ${JSON.stringify(path)}`)
  }
  const parent = dirname(path)
  const stats = statOf(parent)
  if (stats === undefined) {
    throw custody(parent, 'to exist', 'nothing', 'make it with mode 0700, owned by the uid of the service')
  }
  if (!stats.isDirectory()) throw custody(parent, 'to be a directory', 'another kind of file')
  assertOwner(parent, stats)
  if ((stats.mode & 0o077n) !== 0n) throw custody(parent, 'mode 0700', modeText(stats))
}

/** Refuses all but one private regular file, and says which inode on which device it is. */
export function assertStoreFile(path: string): FileIdentity {
  const stats = statOf(path)
  if (stats === undefined) throw missing(path)
  assertPrivateFile(path, stats)
  for (const sidecar of [`${path}-wal`, `${path}-shm`]) {
    const sidecarStats = statOf(sidecar)
    if (sidecarStats !== undefined) assertPrivateFile(sidecar, sidecarStats)
  }
  return { device: String(stats.dev), inode: String(stats.ino) }
}

export function exists(path: string): boolean {
  return statOf(path) !== undefined
}

function statOf(path: string): BigIntStats | undefined {
  return lstatSync(path, { bigint: true, throwIfNoEntry: false })
}

function assertPrivateFile(path: string, stats: BigIntStats): void {
  if (!stats.isFile()) throw custody(path, 'to be a regular file', kindOf(stats))
  assertOwner(path, stats)
  if (stats.nlink !== 1n) throw custody(path, 'exactly one link', `${stats.nlink}`)
  if ((stats.mode & 0o7777n) !== 0o600n) throw custody(path, 'mode 0600', modeText(stats))
}

function assertOwner(path: string, stats: BigIntStats): void {
  const euid = BigInt(process.geteuid?.() ?? -1)
  if (stats.uid !== euid) throw custody(path, `owner uid ${euid}`, `${stats.uid}`)
}

function kindOf(stats: BigIntStats): string {
  return stats.isSymbolicLink() ? 'a symbolic link' : 'another kind of file'
}

function modeText(stats: BigIntStats): string {
  return `0${(stats.mode & 0o7777n).toString(8)}`
}

function missing(path: string): BrokerError {
  return new BrokerError('store_missing', `store refused: expected ${path} to exist, got nothing`, {
    outcome: 'not_started',
  })
}

function custody(path: string, expected: string, got: string, next?: string): BrokerError {
  const sentence = `store custody of ${path} refused: expected ${expected}, got ${got}`
  return new BrokerError('storage', next === undefined ? sentence : `${sentence}; ${next}`, {
    outcome: 'not_started',
  })
}
