// What an installation is made from and what comes of it: users, folders, providers for trials, and the
// public halves of the keys. Types only.
import type { EligibleApprover } from '../protocol/threshold-proposal.js'
import type { PublicKey } from '../protocol/keys.js'
import type { Identities, Identity } from './identities.js'
import type { Layout } from './layout.js'

/** A user who runs tools; `gids` are the groups under which this user connects. */
export interface ClientUser extends Identity {
  readonly gids: readonly number[]
}

/** A loopback provider for trials: named, with its own certificate authority. */
export interface LocalProvider {
  readonly host: string
  readonly port: number
  readonly address: string
  readonly caPem: string
}

export interface InstallationPlan {
  readonly layout: Layout
  readonly identities: Identities
  /** Root, or the single user; holds the administrator's key. */
  readonly administrator: Identity
  readonly clients: readonly ClientUser[]
  /** Whose word counts for grants that ask for approvals; nobody's unless said. */
  readonly approvers?: readonly EligibleApprover[]
  readonly tenantScope: string
  readonly localProviders: readonly LocalProvider[]
}

/** Public halves of an installation's keys. */
export interface InstallationKeys {
  readonly receipt: PublicKey
  readonly kernel: PublicKey
  readonly authority: PublicKey
  readonly issuer: PublicKey
  readonly administrator: PublicKey
  readonly callers: ReadonlyMap<number, PublicKey>
}
