// Owns: whether any process still holds the socket that a path names, told by the kernel from the inode alone. Names in
// /proc/net/unix would not do: they are raw, so any user's process could forge the line of ours.
// Must never: make a connection: that would start the service of a manager that holds the socket for a daemon which
// does not run yet. A datagram socket cannot connect to a stream: asked to, the kernel looks up who holds the inode,
// and refuses for want of a holder (ECONNREFUSED) or because of its kind (EPROTOTYPE).
// Source: connect(2), unix(7); net/unix/af_unix.c unix_find_bsd.
import { getSystemErrorName } from 'node:util'
import { loadUnixDatagrams } from './unix-datagrams.js'

/** @throws Error when the kernel does not say, such as for want of the right to write to the socket. */
export function isSocketHeld(path: string): boolean {
  const code = codeOfConnect(path)
  if (code === 'ECONNREFUSED') return false
  if (code === null || code === 'EPROTOTYPE') return true
  throw Object.assign(new Error(`${code}: it is unknown whether ${path} is served`), {
    code,
    syscall: 'connect',
  })
}

/** @returns null when a datagram socket stands there. */
function codeOfConnect(path: string): string | null {
  const socket = loadUnixDatagrams().createSocket('unix_dgram')
  let code: string | null = null
  socket.on('error', error => (code = getSystemErrorName(Number(error.errno))))
  try {
    socket.connect(path)
  } finally {
    socket.close()
  }
  return code
}
