// Owns what the operations of one broker work with, named once; and one request with who sent it.
// Must never: hold state of its own.
import type { Clock } from '../protocol/clock.js'
import type { AuthenticatedIpcRequest } from '../protocol/envelope.js'
import type { SigningKey } from '../protocol/keys.js'
import type { Store } from '../store/store.js'
import type { CallPlaces } from '../system/call-places.js'
import type { FramedConnection } from '../system/framed-connection.js'
import type { PeerIdentity } from '../system/peer.js'
import type { AuthorityClient } from './authority-client.js'
import type { BrokerdConfig } from './config.js'
import type { CredentialVault } from './credentials.js'
import type { BrokerLog } from './log.js'
import type { LocalProviders } from './provider/local-providers.js'
import type { PublicResolver } from './provider/resolve.js'
import type { Recorder } from './recorder.js'
import type { ReplayTurns } from './replay-turns.js'
import type { SlotDesk } from './slot-desk.js'
import type { ResponseVault } from './stored-responses.js'

export interface BrokerParts {
  readonly config: BrokerdConfig
  readonly clock: Clock
  readonly log: BrokerLog
  readonly store: Store
  readonly receiptKey: SigningKey
  readonly authority: AuthorityClient
  readonly credentials: CredentialVault
  readonly responses: ResponseVault
  readonly recorder: Recorder
  readonly replays: ReplayTurns
  readonly calls: CallPlaces
  readonly desk: SlotDesk
  readonly localProviders: LocalProviders
  readonly resolver: PublicResolver
  readonly atCutpoint: (name: string) => void
  readonly isStopping: () => boolean
  /** Whether it stops without waiting for what a provider says. */
  readonly isHurried: () => boolean
}

/** One request on one connection. */
export interface BrokerExchange {
  readonly connection: FramedConnection
  readonly peer: PeerIdentity
  readonly request: AuthenticatedIpcRequest
}
