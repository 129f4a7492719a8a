// Owns: serving on a socket that a service manager bound: the same custody as for one of our own, and the lock on its
// directory, so that no second daemon serves there.
// Must never: unlink it. Its name is the manager's, who listens on it again when this process is gone.
// Source: unix(7), listen(2): calling it again puts our credentials in place of the manager's, which is what a client
// pins; systemd.socket(5) "RemoveOnStop=".
import type { Server } from 'node:net'
import { dirname } from 'node:path'
import { closeDescriptor } from '../native/index.js'
import { assertOurGroup, type BoundSocket, lockDirectory } from './bound-socket.js'
import { refused } from './custody-refusal.js'
import { assertSocketCustody, type SocketOwner } from './socket-custody.js'

export interface Activated {
  readonly path: string
  readonly descriptor: number
}

/** @throws BrokerError `custody` or `another_instance`. */
export function adoptSocket(
  server: Server,
  { path, descriptor }: Activated,
  owner: SocketOwner,
  backlog: number,
): BoundSocket {
  assertOurGroup(path, owner)
  const identity = assertSocketCustody(path, owner)
  const lock = lockDirectory(dirname(path))
  try {
    server.listen({ fd: descriptor, backlog })
    if (!server.listening) throw refused(path, 'listen(2) to succeed', 'an error')
  } catch (error) {
    server.close()
    closeDescriptor(lock)
    throw error
  }
  let released = false
  return {
    identity,
    release() {
      if (released) return
      released = true
      closeDescriptor(lock)
    },
  }
}
