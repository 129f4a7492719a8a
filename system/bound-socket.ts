// Owns: a listening socket at a path: the lock on its directory, the stale one of a dead daemon, and its removal.
// Must never: judge or remove anything without the lock, or remove what is not a socket of ours.
// Source: unix(7), flock(2); libuv unlinks at close the name it was bound by, whoever owns it by then, so the
// socket is bound under a passing name and linked to its own.
import { linkSync, lstatSync, unlinkSync } from 'node:fs'
import type { Server } from 'node:net'
import { dirname } from 'node:path'
import { closeDescriptor, lockFile, openDirectory } from '../native/index.js'
import { BrokerError } from '../protocol/errors.js'
import { refused } from './custody-refusal.js'
import {
  assertSocketCustody,
  assertSocketDirectory,
  checkSocketPath,
  type SocketIdentity,
  type SocketOwner,
  socketMode,
} from './socket-custody.js'
import { isSocketHeld } from './socket-holder.js'

const PASSING_SUFFIX = '.new'
const ALL_PERMISSIONS = 0o777

export interface BoundSocket {
  readonly identity: SocketIdentity
  /** Removes the name if it still bears our inode, and gives the lock back. Safe to repeat. */
  release(): void
}

/** Binds and listens, with the right mode from the first instant, or throws and leaves nothing. */
export function bindSocket(server: Server, path: string, owner: SocketOwner, backlog: number): BoundSocket {
  checkSocketPath(path + PASSING_SUFFIX)
  assertOurGroup(path, owner)
  assertSocketDirectory(dirname(path), owner)
  const lock = lockDirectory(dirname(path))
  try {
    removeStale(path + PASSING_SUFFIX)
    removeStale(path)
    listenUnder(server, path + PASSING_SUFFIX, owner, backlog)
    linkSync(path + PASSING_SUFFIX, path)
    unlinkSync(path + PASSING_SUFFIX)
    return held(path, assertSocketCustody(path, owner), lock)
  } catch (error) {
    server.close()
    closeDescriptor(lock)
    throw error
  }
}

/** Nothing is ever chgrp'ed: the group of the socket is the one that this process runs with. */
export function assertOurGroup(path: string, owner: SocketOwner): void {
  const egid = process.getegid?.()
  if (owner.socketGid !== null && egid !== owner.socketGid) {
    throw refused(path, `a process with primary gid ${owner.socketGid}`, `gid ${egid}`)
  }
}

/** One daemon serves a directory. @throws BrokerError `another_instance`. */
export function lockDirectory(directory: string): number {
  const descriptor = openDirectory(directory)
  try {
    return lockFile(descriptor)
  } catch (error) {
    closeDescriptor(descriptor)
    const code = (error as NodeJS.ErrnoException).code
    if (code !== 'EWOULDBLOCK' && code !== 'EAGAIN') throw error
    throw new BrokerError(
      'another_instance',
      `socket refused: expected ${directory} to be free, got a lock held by the daemon that serves there; stop it first`,
      { outcome: 'not_started', cause: error },
    )
  }
}

/** A daemon of ours would hold the lock: this is a socket unit whose service does not run, and the name is its own. */
function assertNobodyListens(path: string): void {
  if (!isSocketHeld(path)) return
  throw new BrokerError(
    'another_instance',
    `socket refused: expected nobody to listen at ${path}, got a listener without its lock, as a .socket unit is; start the service instead, or stop that unit`,
    { outcome: 'not_started' },
  )
}

/** Under the lock a socket of ours can only be a dead daemon's. Anything else stays where it is. */
function removeStale(path: string): void {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (stats === undefined) return
  if (!stats.isSocket())
    throw refused(path, 'nothing or a stale socket', 'another kind of file; move it away')
  if (stats.uid !== process.geteuid?.()) throw refused(path, 'a socket of our uid', `one of uid ${stats.uid}`)
  assertNobodyListens(path)
  unlinkSync(path)
}

/** `listen` binds and listens in this very call, so the umask covers exactly it. */
function listenUnder(server: Server, path: string, owner: SocketOwner, backlog: number): void {
  const umask = process.umask(ALL_PERMISSIONS & ~socketMode(owner))
  try {
    server.listen({ path, backlog })
  } finally {
    process.umask(umask)
  }
  if (!server.listening) throw refused(path, 'bind(2) and listen(2) to succeed', 'an error of one of them')
}

function held(path: string, identity: SocketIdentity, lock: number): BoundSocket {
  let released = false
  return {
    identity,
    release() {
      if (released) return
      released = true
      const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false })
      if (stats !== undefined && stats.dev === identity.device && stats.ino === identity.inode)
        unlinkSync(path)
      closeDescriptor(lock)
    },
  }
}
