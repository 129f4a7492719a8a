// Owns: who may hold a socket and the directory where it lives alone: exactly one owner, at most one group.
// Must never: repair what it finds wrong, or accept more than the pinned owner and group. Custody proves nothing
// about the process behind the socket; the peer check after connecting does.
// Source: unix(7) "Pathname socket ownership and permissions", inode(7).
import { type BigIntStats, chmodSync, chownSync, lstatSync, mkdirSync, type Stats } from 'node:fs'
import { dirname, isAbsolute, resolve } from 'node:path'
import { MAXIMUM_SOCKET_PATH_BYTES } from '../protocol/limits.js'
import { assertAncestors } from './ancestors.js'
import { modeText, refused } from './custody-refusal.js'
import { overflowUid } from './peer.js'

export interface SocketOwner {
  readonly ownerUid: number
  /** Null: both ends are one uid, 0700 and 0600. A gid: its members may connect, 0710 and 0660. */
  readonly socketGid: number | null
}

export interface SocketIdentity {
  readonly device: bigint
  readonly inode: bigint
}

/** Refuses a path that does not fit, before anything is bound to it. */
export function checkSocketPath(path: string): void {
  if (!isAbsolute(path) || resolve(path) !== path) {
    throw new TypeError(`socket path: expected an absolute normal path, got ${JSON.stringify(path)}`)
  }
  const bytes = Buffer.byteLength(path)
  if (bytes > MAXIMUM_SOCKET_PATH_BYTES) {
    throw new RangeError(`socket path: expected at most ${MAXIMUM_SOCKET_PATH_BYTES} bytes, got ${bytes}`)
  }
}

/** Makes the directory when it is missing, then asserts it. Only root can make it for another uid. */
export function makeSocketDirectory(directory: string, owner: SocketOwner, ownerGid?: number): void {
  if (lstatSync(directory, { throwIfNoEntry: false }) === undefined) {
    mkdirSync(directory, { mode: 0o700 })
    const gid = owner.socketGid ?? ownerGid ?? process.getegid?.() ?? 0
    chownSync(directory, owner.ownerUid, gid)
    chmodSync(directory, directoryMode(owner))
  }
  assertSocketDirectory(directory, owner)
}

export function assertSocketDirectory(directory: string, owner: SocketOwner): void {
  assertAncestors(directory, owner.ownerUid)
  const stats = lstatSync(directory)
  if (!stats.isDirectory()) throw refused(directory, 'a directory', 'another kind of file')
  assertHeldBy(directory, stats, owner)
  if ((stats.mode & 0o7777) !== directoryMode(owner)) {
    throw refused(directory, `mode 0${directoryMode(owner).toString(8)}`, modeText(stats))
  }
}

/**
 * Judges directory and socket by name alone.
 * @returns the socket's inode, to be compared again after connecting.
 * @throws BrokerError `custody`; an error with code ENOENT when there is no socket.
 */
export function assertSocketCustody(path: string, owner: SocketOwner): SocketIdentity {
  checkSocketPath(path)
  assertSocketDirectory(dirname(path), owner)
  const stats = lstatSync(path)
  if (!stats.isSocket()) throw refused(path, 'a socket', 'another kind of file')
  assertHeldBy(path, stats, owner)
  if ((stats.mode & 0o7777) !== socketMode(owner)) {
    throw refused(path, `mode 0${socketMode(owner).toString(8)}`, modeText(stats))
  }
  if (stats.nlink !== 1) throw refused(path, 'one link', `${stats.nlink}`)
  return socketIdentity(lstatSync(path, { bigint: true }))
}

/** Refuses when another inode bears the name now: what we connected to may not be what was judged. */
export function assertSameSocket(path: string, before: SocketIdentity): void {
  const now = socketIdentity(lstatSync(path, { bigint: true }))
  if (now.device !== before.device || now.inode !== before.inode) {
    throw refused(path, `inode ${before.inode}`, `${now.inode} after connecting`)
  }
}

export function socketMode(owner: SocketOwner): number {
  return owner.socketGid === null ? 0o600 : 0o660
}

function directoryMode(owner: SocketOwner): number {
  return owner.socketGid === null ? 0o700 : 0o710
}

function socketIdentity(stats: BigIntStats): SocketIdentity {
  return { device: stats.dev, inode: stats.ino }
}

function assertHeldBy(path: string, stats: Stats, owner: SocketOwner): void {
  if (owner.ownerUid === overflowUid())
    throw refused(path, 'a pinned owner', `the overflow uid ${owner.ownerUid}`)
  if (stats.uid !== owner.ownerUid) throw refused(path, `owner uid ${owner.ownerUid}`, `${stats.uid}`)
  if (owner.socketGid !== null && stats.gid !== owner.socketGid) {
    throw refused(path, `gid ${owner.socketGid}`, `${stats.gid}`)
  }
}
