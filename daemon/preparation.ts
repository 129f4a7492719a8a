// Owns one holder of the slot from claim to end: its phase, how far it came, what it was prepared with.
// Must never: end twice, or begin again. After its end every step that was under way learns the reason.
// Source: the broker protocol's prepared connection slot, section 9.
import type { LiveParent } from '../protocol/authority-rpc.js'
import type { BrokerExecuteRequest } from '../protocol/execute-request.js'
import type { BrokerExecuteFailure } from '../protocol/failure.js'
import type { AttemptRegistration } from '../protocol/registration.js'
import type { SlotState } from '../protocol/status.js'
import type { Verified } from '../protocol/verified.js'
import type { FramedConnection } from '../system/framed-connection.js'
import type { PeerIdentity } from '../system/peer.js'
import type { AttemptRecord } from './attempts.js'
import type { FrameBinding } from './binding.js'
import type { StoredCredential } from './credentials.js'
import type { PreparedDeadline } from './deadline.js'
import type { Progress } from './failures.js'
import type { SlotPermit } from './prepared-slot.js'
import type { PreparedProvider } from './provider/prepared-provider.js'
import type { AdmittedProviderRequest } from './provider/request-writer.js'
import type { ProviderRoute } from './provider/route.js'
import type { Recording } from './recorder.js'
import type { Refused } from './refused.js'

export type PreparationPhase = Exclude<SlotState, 'free'>

/** What was checked and fixed before the acknowledgement; consumption works with exactly this. */
export interface PreparedTerms {
  readonly request: Verified<BrokerExecuteRequest>
  readonly deadline: PreparedDeadline
  readonly binding: FrameBinding
  readonly parent: LiveParent
  readonly revocationIds: readonly string[]
  readonly credential: StoredCredential
  readonly route: ProviderRoute
  readonly providerRequest: AdmittedProviderRequest
}

export interface Candidate {
  readonly connection: FramedConnection
  readonly peer: PeerIdentity
  readonly registration: AttemptRegistration
  readonly execute: BrokerExecuteRequest
  /** Canonical bytes of the execute request, as they came. */
  readonly payload: Uint8Array
}

export class Preparation {
  readonly candidate: Candidate
  readonly permit: SlotPermit
  readonly claimedBootNs: bigint
  /** Resolves once its end is on disk, or was given up. */
  readonly settled: Promise<void>
  phase: PreparationPhase = 'checking'
  progress: Progress = 'before_hold_query'
  /** The row as it was found after the claim. */
  attempt: AttemptRecord | undefined
  terms: PreparedTerms | undefined
  provider: PreparedProvider | undefined
  /** Whether everything else is done and only the provider's connection is waited for. */
  awaitsProvider = false
  /** Its signed failure on the way to the disk, when it ended before its dispatch commit. */
  recording: Recording<BrokerExecuteFailure> | undefined
  /** Until when its end may be awaited: the prepared deadline, after the commit the provider's. */
  governingBootNs: bigint
  readonly #ended: Promise<never>
  #reject: (reason: Refused) => void = () => {}
  #settle: () => void = () => {}
  #endedBy: Refused | undefined

  constructor(
    candidate: Candidate,
    permit: SlotPermit,
    times: { claimedBootNs: bigint; budgetBootNs: bigint },
  ) {
    this.candidate = candidate
    this.permit = permit
    this.claimedBootNs = times.claimedBootNs
    this.governingBootNs = times.budgetBootNs
    this.settled = new Promise(resolve => {
      this.#settle = resolve
    })
    this.#ended = new Promise((_resolve, reject) => {
      this.#reject = reject
    })
    this.#ended.catch(() => undefined)
  }

  get attemptId(): string {
    return this.candidate.registration.ids.attemptId
  }

  get operationId(): string {
    return this.candidate.registration.ids.operationId
  }

  get isCommitted(): boolean {
    return this.progress === 'committed'
  }

  get endedBy(): Refused | undefined {
    return this.#endedBy
  }

  /** @throws Refused with the reason once it has ended, whoever ended it. */
  assertHeld(): void {
    if (this.#endedBy !== undefined) throw this.#endedBy
    if (!this.permit.isHeld)
      throw new TypeError('preparation: expected the slot to be held by it, got another')
  }

  /** Waits for a step, at most until the end of the preparation. */
  orEnded<T>(step: Promise<T>): Promise<T> {
    return Promise.race([step, this.#ended])
  }

  /** Ends it with a refusal. @returns false when it had ended before. */
  endWith(refused: Refused): boolean {
    if (this.#endedBy !== undefined) return false
    this.#endedBy = refused
    this.#reject(refused)
    return true
  }

  settle(): void {
    this.#settle()
  }
}
