// Owns: who connected: uid, groups and a handle on the process, taken at accept, before any byte.
// Must never: look into /proc or rest on the pid. It names the connector, not whoever holds the stream now.
// Source: unix(7) SO_PEERCRED, SO_PEERGROUPS, SO_PEERPIDFD; pidfd_open(2).
import { readFileSync } from 'node:fs'
import { closeDescriptor, peerCredentials, peerGroups, peerPidfd, pidfdAlive } from '../native/index.js'

export interface PeerIdentity {
  readonly uid: number
  /** Effective gid at connect. */
  readonly gid: number
  /** Supplementary groups at connect. */
  readonly gids: readonly number[]
  /** For logs alone; it may name another process by now. */
  readonly pid: number
  readonly pidfdSource: 'so_peerpidfd' | 'pidfd_open'
  /** Whether the connecting process still lives; false once closed. */
  isAlive(): boolean
  close(): void
}

export interface AllowedPeer {
  readonly uid: number
  readonly gids: readonly number[]
}

/** Takes the identity of whoever connected to an accepted socket. The caller closes it. */
export function identifyPeer(socketDescriptor: number): PeerIdentity {
  const { pid, uid, gid } = peerCredentials(socketDescriptor)
  const gids = peerGroups(socketDescriptor)
  const { pidfd, source } = peerPidfd(socketDescriptor)
  let open = true
  return {
    uid,
    gid,
    gids,
    pid,
    pidfdSource: source,
    isAlive: () => open && pidfdAlive(pidfd),
    close() {
      if (!open) return
      open = false
      closeDescriptor(pidfd)
    },
  }
}

/** @returns the entry that this peer is: same uid, its gid one of the entry's, its process alive. */
export function judgePeer<T extends AllowedPeer>(peer: PeerIdentity, allowed: readonly T[]): T | undefined {
  if (peer.uid === overflowUid() || !peer.isAlive()) return undefined
  return allowed.find(entry => entry.uid === peer.uid && entry.gids.includes(peer.gid))
}

let overflowUidRead: number | undefined

/** The uid that every unmapped uid reads as inside a user namespace: it is nobody in particular. */
export function overflowUid(): number {
  overflowUidRead ??= Number.parseInt(readFileSync('/proc/sys/kernel/overflowuid', 'latin1'), 10)
  return overflowUidRead
}
