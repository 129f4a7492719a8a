/**
 * Who is at the other end of a Unix socket, and whether that process still lives.
 * It names the connector, not whoever holds the descriptor now. Judged from socket and pidfd, never from /proc.
 * Source: unix(7), pidfd_open(2), pidfd_send_signal(2).
 */
import { constants } from 'node:os'
import { addon } from './addon.js'
import type { PeerCredentials, PeerPidfd } from './addon.js'
import { requireDescriptor, requireInteger } from './arguments.js'

export type { PeerCredentials, PeerPidfd } from './addon.js'

export function peerCredentials(fd: number): PeerCredentials {
  requireDescriptor(fd)
  return addon.peerCredentials(fd)
}

/** Supplementary groups that the connector had when it connected. */
export function peerGroups(fd: number): number[] {
  requireDescriptor(fd)
  return addon.peerGroups(fd)
}

/**
 * A pidfd of the connector, close-on-exec; the caller closes it. A peer that is gone gives a pidfd which is not
 * alive (newer kernels) or code ESRCH. `pidfd_open` is the weaker source below Linux 6.5: the number may already
 * be another process.
 */
export function peerPidfd(fd: number): PeerPidfd {
  requireDescriptor(fd)
  return addon.peerPidfd(fd)
}

export function pidfdOpen(pid: number): number {
  requireInteger(pid, 'pid', 1, 2 ** 22)
  return addon.pidfdOpen(pid)
}

/** Dead is a readable pidfd. A process that we may not signal is alive. */
export function pidfdAlive(pidfd: number): boolean {
  requireDescriptor(pidfd, 'pidfd')
  return addon.pidfdAlive(pidfd)
}

export function pidfdSignal(pidfd: number, signal: NodeJS.Signals | 0): void {
  requireDescriptor(pidfd, 'pidfd')
  const number = signal === 0 ? 0 : constants.signals[signal]
  if (number === undefined)
    throw new RangeError(`"signal" expected a signal's name or 0, got ${String(signal)}`)
  addon.pidfdSignal(pidfd, number)
}
