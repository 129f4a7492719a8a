// Owns who holds the slot, how a holder ends before its dispatch commit, and what is said of both.
// Must never: let an end wait for anything. The slot is free, the prewarmed connection dropped and the stream
// closed in the same run; the record follows, and is tried again if the disk refuses it.
// Source: the broker protocol's prepared connection slot, section 9.
import { type Clock, NS_PER_MS } from '../protocol/clock.js'
import type { BrokerExecuteFailure } from '../protocol/failure.js'
import { PREPARATION_BUDGET_MS } from '../protocol/limits.js'
import type { SlotStatus } from '../protocol/status.js'
import { hasPassed, whenPassed } from '../system/deadline.js'
import type { RefusedFrame } from './attempts.js'
import { bootNsAfter, leftMsUntil } from './deadline.js'
import { type BrokerLog, faultFields } from './log.js'
import { type Candidate, Preparation } from './preparation.js'
import { PreparedSlot } from './prepared-slot.js'
import type { Recorder, Recording } from './recorder.js'
import { refusalRow, type RefusalReason } from './refusals.js'
import { Refused } from './refused.js'
import type { SlotGuard } from './slot-guard.js'

/** How often a connector that cannot be heard is looked at: half of what its end may take to be noticed. */
const CONNECTOR_LOOK_MS = 10

export interface DeskParts {
  readonly clock: Clock
  readonly recorder: Recorder
  readonly log: BrokerLog
  readonly guard: SlotGuard
  readonly decryptions: () => number
  readonly isStopping: () => boolean
}

export class SlotDesk {
  readonly #parts: DeskParts
  readonly #slot = new PreparedSlot()
  #holder: Preparation | undefined
  #lastRelease: SlotStatus['lastRelease'] = null
  #stopWatching: () => void = () => {}
  #stopDeadline: () => void = () => {}

  constructor(parts: DeskParts) {
    this.#parts = parts
  }

  get holder(): Preparation | undefined {
    return this.#holder
  }

  /** The preparation that holds the slot for an attempt, or executes it. */
  heldBy(attemptId: string): Preparation | undefined {
    return this.#holder?.attemptId === attemptId ? this.#holder : undefined
  }

  /**
   * Claims the slot; a holder past its deadline is ended on the spot.
   * @throws Refused `slot_held`, or `grant_backed_off` or `provider_paused` where the guard lets nobody through, or
   * `broker_closing` for one that was being decoded when the broker was told to stop: the drain has looked already.
   */
  claim(candidate: Candidate): Preparation {
    if (this.#parts.isStopping()) throw new Refused('broker_closing', 'one that stops')
    this.#parts.guard.assertMayClaim(candidate.execute)
    this.#evictExpired()
    const permit = this.#slot.claim()
    if (permit === undefined) throw new Refused('slot_held', 'one that is held')
    const claimedBootNs = this.#parts.clock.bootNs()
    const budgetBootNs = bootNsAfter(this.#parts.clock, PREPARATION_BUDGET_MS)
    const preparation = new Preparation(candidate, permit, { claimedBootNs, budgetBootNs })
    this.#holder = preparation
    this.govern(preparation, budgetBootNs)
    this.#stopWatching = this.#watchConnector(preparation)
    return preparation
  }

  /** Puts a preparation under a deadline: its comparison governs, the timer only tidies. */
  govern(preparation: Preparation, deadlineBootNs: bigint): void {
    this.#stopDeadline()
    preparation.governingBootNs = deadlineBootNs
    this.#stopDeadline = whenPassed(this.#parts.clock, deadlineBootNs, () => this.#expire(preparation))
  }

  /** The dispatch is committed: from here the provider's deadline governs, and nobody evicts. */
  committed(preparation: Preparation, governingBootNs: bigint): void {
    this.#stopDeadline()
    this.#stopWatching()
    preparation.progress = 'committed'
    preparation.governingBootNs = governingBootNs
  }

  /**
   * Ends a preparation before its dispatch commit. Later calls find it ended.
   * @returns the recording of its signed failure; undefined when there is no attempt to end.
   */
  end(
    preparation: Preparation,
    refused: Refused,
    frame?: RefusedFrame,
  ): Recording<BrokerExecuteFailure> | undefined {
    if (preparation.isCommitted || !preparation.endWith(refused)) return undefined
    const { attempt, candidate, phase, progress } = preparation
    this.#parts.guard.ended(preparation, refused.reason)
    this.#free(preparation, refused.reason)
    if (phase === 'waiting') candidate.connection.closeNow()
    this.#parts.log.warn(
      { ...namesOf(preparation), phase, ...frame, ...faultFields(refused) },
      'preparation ended',
    )
    if (attempt === undefined || refusalRow(refused.reason).attempt === 'unchanged') {
      preparation.settle()
      return undefined
    }
    const recording = this.#parts.recorder.fail(attempt, { reason: refused.reason, progress, frame })
    preparation.recording = recording
    recording.durable.then(
      () => preparation.settle(),
      () => preparation.settle(),
    )
    return recording
  }

  /** The recorded end of a dispatched execution frees the slot. */
  finish(preparation: Preparation, reason: RefusalReason | 'completed'): void {
    if (reason === 'completed') this.#parts.guard.completed(preparation)
    else this.#parts.guard.failed(preparation, reason)
    this.#free(preparation, reason)
  }

  status(): SlotStatus {
    const { clock, decryptions, guard } = this.#parts
    const holder = this.#holder
    const shared = {
      declining: guard.declining(),
      decryptions: decryptions(),
      lastRelease: this.#lastRelease,
      schema: 'chio.broker-slot-status.v2',
    } as const
    if (holder === undefined) return { ...NOBODY, ...shared }
    const { peer } = holder.candidate
    return {
      ...shared,
      ageMs: Number((clock.bootNs() - holder.claimedBootNs) / NS_PER_MS),
      attemptId: holder.attemptId,
      connector: { pid: peer.pid, uid: peer.uid },
      deadlineLimit: holder.terms?.deadline.limit ?? null,
      leftMs: leftMsUntil(clock, holder.governingBootNs),
      operationId: holder.operationId,
      state: holder.phase,
    }
  }

  #evictExpired(): void {
    const holder = this.#holder
    if (holder === undefined || holder.isCommitted) return
    if (hasPassed(this.#parts.clock, holder.governingBootNs)) this.#expire(holder)
  }

  #expire(preparation: Preparation): void {
    const reason = preparation.phase === 'checking' ? 'preparation_budget' : 'deadline_expired'
    this.end(preparation, new Refused(reason))
  }

  #free(preparation: Preparation, reason: string): void {
    preparation.provider?.drop()
    if (this.#holder === preparation) {
      this.#stopDeadline()
      this.#stopWatching()
      this.#holder = undefined
      const { attemptId } = preparation
      this.#lastRelease = { attemptId, reason, releasedAtUnixMs: this.#parts.clock.unixMs() }
    }
    preparation.permit.release()
  }

  /**
   * A connector that died, whoever holds its stream now; one that closed both ways, reset, or sent a byte too many
   * while nobody reads.
   */
  #watchConnector(preparation: Preparation): () => void {
    const { connection, peer } = preparation.candidate
    const timer = setInterval(() => {
      // While it waits, what came on the stream before its end is read first: the end there has its own reason.
      if (preparation.phase !== 'waiting' && connection.hungUp()) {
        this.end(preparation, new Refused(leftReason(preparation), 'a closed one'))
      } else if (!peer.isAlive() && !connection.hungUp()) {
        this.end(preparation, new Refused('connector_gone', 'one that ended'))
      }
    }, CONNECTOR_LOOK_MS)
    void connection.ended.then(ending => {
      if (preparation.phase === 'waiting' || preparation.isCommitted) return
      this.end(
        preparation,
        new Refused(ending === 'surplus' ? 'surplus_bytes' : leftReason(preparation), ending),
      )
    })
    return () => clearInterval(timer)
  }
}

/** Before the acknowledgement a connector left; after the frame came, a tool that does not wait for its answer. */
function leftReason({ phase }: Preparation): RefusalReason {
  return phase === 'executing' ? 'stream_left' : 'stream_closed'
}

const NOBODY = {
  ageMs: null,
  attemptId: null,
  connector: null,
  deadlineLimit: null,
  leftMs: null,
  operationId: null,
  state: 'free',
} as const

export function namesOf(preparation: Preparation): Record<string, string | number> {
  const { peer } = preparation.candidate
  return {
    attemptId: preparation.attemptId,
    operationId: preparation.operationId,
    connectorPid: peer.pid,
    connectorUid: peer.uid,
  }
}
