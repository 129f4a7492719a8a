// How a connector is held on to: by the handle that the socket itself gives, or by opening its number, which a
// new process may already bear. Tried on a socket of our own.
// Source: unix(7) SO_PEERPIDFD (Linux 6.5), pidfd_open(2).
import { closeDescriptor, peerPidfd, pidfdAlive, socketPair } from '../../native/index.js'
import { type Check, missing, ok, weaker } from './check.js'

const NAME = 'peer-handles'

export type PeerHandleFound =
  | { readonly source: 'so_peerpidfd' | 'pidfd_open'; readonly isAlive: boolean }
  | { readonly errno: string }

export function findPeerHandle(): PeerHandleFound {
  const [ours, theirs] = socketPair('stream')
  try {
    const { pidfd, source } = peerPidfd(ours)
    const isAlive = pidfdAlive(pidfd)
    closeDescriptor(pidfd)
    return { source, isAlive }
  } catch (error) {
    return { errno: (error as NodeJS.ErrnoException).code ?? 'an error' }
  } finally {
    closeDescriptor(ours)
    closeDescriptor(theirs)
  }
}

export function judgePeerHandle(found: PeerHandleFound): Check {
  const remedy = 'run on Linux 6.5 or later'
  if ('errno' in found) return missing(NAME, `no handle on a peer: ${found.errno}`, remedy)
  if (!found.isAlive) return missing(NAME, 'the handle of a living peer reads as dead', remedy)
  if (found.source === 'so_peerpidfd')
    return ok(NAME, "SO_PEERPIDFD: the socket's own handle on its connector")
  return weaker(NAME, 'pidfd_open of the number that connected: it may have been reused by then', remedy)
}
