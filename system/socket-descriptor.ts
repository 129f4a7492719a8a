// Owns: the one place that looks inside a net.Socket or net.Server for its descriptor.
// Must never: keep the number. It is only good while the socket is open.
// Source: Node has no public way to it: `_handle.fd`, present on Node 18 to 24 for Unix sockets.
import type { Server, Socket } from 'node:net'

/** @returns the descriptor, or undefined when the socket is closed already. */
export function descriptorOf(socket: Server | Socket): number | undefined {
  const handle: unknown = Reflect.get(socket, '_handle')
  if (typeof handle !== 'object' || handle === null) return undefined
  const descriptor: unknown = Reflect.get(handle, 'fd')
  return typeof descriptor === 'number' && descriptor >= 0 ? descriptor : undefined
}
