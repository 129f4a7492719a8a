// What a client knows of its broker before it speaks to it. Pins come from the operator's files, never
// from the broker.
import type { PublicKey } from '../protocol/keys.js'

/** Socket, owner and keys of one broker. `socketGid` null: a private socket of one uid. */
export interface BrokerPins {
  readonly socketPath: string
  readonly uid: number
  readonly socketGid: number | null
  readonly receiptKey: PublicKey
  readonly tenantScope: string
  readonly requestFrameBytes: number
  readonly responseFrameBytes: number
}

/** Socket and owner of one kernel. */
export interface KernelPins {
  readonly socketPath: string
  readonly uid: number
  readonly socketGid: number | null
  readonly tenantScope: string
}
