// The sockets of an installation, or of the one that would be made: whether their paths fit, and whether each and
// its folder are held by the daemon that the pins name. Nothing is connected to.
// Source: unix(7) sun_path; the custody rules of both ends.
import { dirname } from 'node:path'
import { isBrokerError } from '../../protocol/errors.js'
import { MAXIMUM_SOCKET_PATH_BYTES } from '../../protocol/limits.js'
import { areSeparate, type Identities, type Identity } from '../../system/identities.js'
import type { Layout } from '../../system/layout.js'
import { assertSocketCustody, assertSocketDirectory } from '../../system/socket-custody.js'
import { type Check, missing, ok } from './check.js'
import { lookAt } from './look.js'

const NAME = 'sockets'

export interface SocketFound {
  readonly path: string
  readonly bytes: number
  /** What custody said against it; null when nothing, or when nothing is there yet. */
  readonly refusal: string | null
  readonly isThere: boolean
}

export function findSockets(layout: Layout, identities: Identities | null): SocketFound[] {
  const owned: [path: string, owner: Identity | undefined][] = [
    [layout.broker.socket, identities?.broker],
    [layout.kernel.hostSocket, identities?.kernel],
    [layout.kernel.authoritySocket, identities?.kernel],
  ]
  return owned.map(([path, owner]) => {
    const bytes = Buffer.byteLength(path)
    const isThere = lookAt(path).kind === 'socket'
    if (identities === null || owner === undefined || bytes > MAXIMUM_SOCKET_PATH_BYTES)
      return { path, bytes, refusal: null, isThere }
    const socketGid = areSeparate(identities) ? owner.gid : null
    return { path, bytes, refusal: socketRefusal(path, { ownerUid: owner.uid, socketGid }), isThere }
  })
}

/** A folder that is not there is made when the daemons start; a socket in it that we may not see is not ours. */
export function socketRefusal(
  path: string,
  owner: { ownerUid: number; socketGid: number | null },
): string | null {
  if (lookAt(dirname(path)).kind === 'absent') return null
  try {
    assertSocketDirectory(dirname(path), owner)
    if (lookAt(path).kind === 'socket') assertSocketCustody(path, owner)
    return null
  } catch (error) {
    if (isBrokerError(error)) return error.message
    throw error
  }
}

export function judgeSockets(sockets: readonly SocketFound[]): Check {
  const long = sockets.find(({ bytes }) => bytes > MAXIMUM_SOCKET_PATH_BYTES)
  if (long !== undefined) {
    const found = `${long.path} has ${long.bytes} bytes, ${MAXIMUM_SOCKET_PATH_BYTES} fit`
    return missing(NAME, found, 'make the installation in a shorter folder: chio init --state DIR')
  }
  const refused = sockets.find(({ refusal }) => refusal !== null)
  if (refused !== undefined)
    return missing(
      NAME,
      refused.refusal ?? '',
      'stop what serves there; remove the folder; chio up makes it anew',
    )
  const longest = Math.max(...sockets.map(({ bytes }) => bytes))
  const served = sockets.filter(({ isThere }) => isThere).length
  return ok(
    NAME,
    `paths of at most ${longest} bytes, ${MAXIMUM_SOCKET_PATH_BYTES} fit; ${served} are there now`,
  )
}
