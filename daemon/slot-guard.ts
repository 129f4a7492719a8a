// Owns who is not let to the slot for a while, and what ends count for that: grants whose preparations are abandoned,
// destinations that hang.
// Must never: decline once the slot is claimed. Nothing is spent then, and the attempt stays what it was.
// Source: the broker protocol's prepared connection slot, section 9: one slot, shared by all.
import { type Clock, NS_PER_MS } from '../protocol/clock.js'
import type { BrokerExecuteRequest } from '../protocol/execute-request.js'
import { MINIMUM_CONNECT_HANG_MS } from '../protocol/limits.js'
import type { SlotStatus } from '../protocol/status.js'
import { hasPassed } from '../system/deadline.js'
import { GrantBackOff } from './grant-back-off.js'
import type { Preparation } from './preparation.js'
import { type Asking, ProviderBreaker } from './provider-breaker.js'
import type { RefusalReason } from './refusals.js'

/** Evidence for whoever comes, however patient. */
const FOR_EVERYBODY = Number.MAX_SAFE_INTEGER

/** Ends before the dispatch that are its host's or its tool's doing, or their doing nothing. */
const ABANDONED: ReadonlySet<RefusalReason> = new Set([
  'connector_gone',
  'deadline_expired',
  'frame_length_mismatch',
  'frame_mismatch',
  'frame_read_timeout',
  'frame_truncated',
  'hold_not_captured',
  'released',
  'stream_closed',
  'stream_left',
  'stream_reset',
  'surplus_bytes',
])
/** How a provider that cannot be reached ends a preparation whose frame is here. */
const UNREACHED: ReadonlySet<RefusalReason> = new Set([
  'deadline_expired',
  'provider_unreachable',
  'provider_unresolved',
  'provider_unverified',
])
/** How a dispatch ends that the provider answered, whatever it said. */
const ANSWERED: ReadonlySet<RefusalReason> = new Set([
  'credential_reflected',
  'response_rejected',
  'response_too_large',
])

export class SlotGuard {
  readonly #clock: Clock
  readonly #providerTimeoutCeilingMs: number
  readonly #grants: GrantBackOff
  readonly #providers: ProviderBreaker

  constructor(clock: Clock, providerTimeoutCeilingMs: number) {
    this.#clock = clock
    this.#providerTimeoutCeilingMs = providerTimeoutCeilingMs
    this.#grants = new GrantBackOff(clock)
    this.#providers = new ProviderBreaker(clock)
  }

  /** Before the claim. @throws Refused `grant_backed_off` or `provider_paused`. */
  assertMayClaim(execute: BrokerExecuteRequest): void {
    this.#grants.assertMayPrepare(execute.capability.body.parentCapabilityId)
    this.#providers.assertMayAsk(askingOf(execute), this.patienceMs(execute))
  }

  /** How long an execution waits for its provider. */
  patienceMs({ request }: BrokerExecuteRequest): number {
    return Math.min(request.options.timeoutMs, this.#providerTimeoutCeilingMs)
  }

  /** A preparation ended before its dispatch. */
  ended(preparation: Preparation, reason: RefusalReason): void {
    const { execute } = preparation.candidate
    const heldMs = Number((this.#clock.bootNs() - preparation.claimedBootNs) / NS_PER_MS)
    const waited = this.#waitedForProvider(preparation, reason)
    // Not since the claim: a host that submits at the last moment leaves the provider no time.
    if (
      waited &&
      preparation.provider !== undefined &&
      preparation.provider.openingMs >= MINIMUM_CONNECT_HANG_MS
    ) {
      // Whoever comes next would wait for the connection as well, however patient it is with the answer.
      this.#providers.hung({ ...askingOf(execute), waitedMs: FOR_EVERYBODY })
    } else if (waited || ABANDONED.has(reason)) {
      this.#grants.abandoned(execute.capability.body.parentCapabilityId, heldMs)
    }
  }

  /** A dispatch ended with an answer. */
  completed({ candidate }: Preparation): void {
    this.#grants.completed(candidate.execute.capability.body.parentCapabilityId)
    this.#providers.answered(askingOf(candidate.execute))
  }

  /** A dispatch ended without an answer that may be handed on. */
  failed({ candidate }: Preparation, reason: RefusalReason): void {
    const { execute } = candidate
    if (ANSWERED.has(reason)) this.#providers.answered(askingOf(execute))
    if (reason === 'provider_timeout')
      this.#providers.hung({ ...askingOf(execute), waitedMs: this.patienceMs(execute) })
  }

  declining(): SlotStatus['declining'] {
    return { grants: this.#grants.declining(), providers: this.#providers.declining() }
  }

  #waitedForProvider({ awaitsProvider, terms }: Preparation, reason: RefusalReason): boolean {
    if (!awaitsProvider || terms === undefined || !UNREACHED.has(reason)) return false
    return hasPassed(this.#clock, terms.deadline.bootNs)
  }
}

function askingOf({ capability, request }: BrokerExecuteRequest): Asking {
  return { destination: request.destination, parentCapabilityId: capability.body.parentCapabilityId }
}
