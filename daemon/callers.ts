// Owns which connector may speak for which caller key. The peer check names the connector; the configuration says
// whose capabilities that connector may register, prepare, release and read back.
// Must never: widen authority. It only narrows what a valid signature would allow.
import type { PeerIdentity } from '../system/peer.js'
import type { BrokerdClient } from './config.js'
import { Refused } from './refused.js'

/** @throws Refused `caller_key_mismatch`. A client without a key (kernel, root) speaks for all. */
export function assertCaller(clients: readonly BrokerdClient[], peer: PeerIdentity, subject: string): void {
  const own = clients.filter(client => client.uid === peer.uid && client.gids.includes(peer.gid))
  const mayUse = own.some(client => client.callerPublicKey === null || client.callerPublicKey === subject)
  if (!mayUse) throw new Refused('caller_key_mismatch', 'one of another caller')
}
