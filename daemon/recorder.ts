// Owns the recording of ends: state, reason and signed receipt of an attempt in one commit, tried again while the
// disk refuses it. An attempt whose end is not on disk yet is ended in memory all the same.
// Must never: record an end twice, or an end of before the dispatch commit over one that was committed.
// Source: the broker protocol's failure order, section 8.4.
import { type Clock, unixSeconds } from '../protocol/clock.js'
import { BrokerError, isBrokerError } from '../protocol/errors.js'
import type { BrokerExecuteFailure } from '../protocol/failure.js'
import type { SigningKey } from '../protocol/keys.js'
import { receiptReference, type SignedExecutionReceipt } from '../protocol/receipt.js'
import type { Store } from '../store/store.js'
import type { Transaction } from '../store/transaction.js'
import { type AttemptRecord, endAttempt, findAttempt, type RefusedFrame } from './attempts.js'
import { type Progress, signAttemptFailure } from './failures.js'
import { type BrokerLog, faultFields } from './log.js'
import { insertExecutionReceipt, insertFailureReceipt } from './receipts.js'
import { refusalRow, type RefusalReason } from './refusals.js'
import type { ResponseVault, StoredResponse } from './stored-responses.js'

const RETRY_MS = 1_000

/** A record under way. */
export interface Recording<T> {
  /** Settles after the first try, whatever became of it. */
  readonly tried: Promise<void>
  /** Resolves once it is on disk; rejects when it never will be by this process. */
  readonly durable: Promise<T>
}

export interface Ending {
  readonly reason: RefusalReason
  readonly progress: Progress
  readonly frame?: RefusedFrame | undefined
}

export interface RecorderParts {
  readonly store: Store
  readonly clock: Clock
  readonly receiptKey: SigningKey
  readonly responses: ResponseVault
  readonly log: BrokerLog
}

export class Recorder {
  readonly #parts: RecorderParts
  readonly #pending = new Map<string, Promise<unknown>>()
  readonly #timers = new Set<NodeJS.Timeout>()
  #closed = false

  constructor(parts: RecorderParts) {
    this.#parts = parts
  }

  /** The end of an attempt that is decided and not on disk yet. */
  pendingOf(attemptId: string): Promise<unknown> | undefined {
    return this.#pending.get(attemptId)
  }

  /** Ends an attempt with a signed failure. */
  fail(attempt: AttemptRecord, ending: Ending): Recording<BrokerExecuteFailure> {
    const { clock, receiptKey: key } = this.#parts
    const endedAtUnixMs = clock.unixMs()
    const nowUnixSeconds = unixSeconds(clock)
    const failure = signAttemptFailure(attempt, ending.reason, ending.progress, { nowUnixSeconds, key })
    const state = refusalRow(ending.reason).attempt === 'unknown_outcome' ? 'unknown_outcome' : 'failed'
    return this.#record(state, attempt.attemptId, failure, tx => {
      const current = currentOf(tx, attempt, failure.receiptReference, ending.progress)
      if (current === undefined) return
      endAttempt(tx, current, {
        state,
        endedAtUnixMs,
        reason: ending.reason,
        receiptReference: failure.receiptReference,
        frame: ending.frame ?? null,
      })
      insertFailureReceipt(tx, attempt.attemptId, failure, endedAtUnixMs)
    })
  }

  /** Ends an attempt with its response and receipt. */
  complete(
    attempt: AttemptRecord,
    response: StoredResponse,
    receipt: SignedExecutionReceipt,
  ): Recording<SignedExecutionReceipt> {
    const { clock, responses } = this.#parts
    const endedAtUnixMs = clock.unixMs()
    const sealed = responses.seal(attempt.attemptId, response)
    const reference = receiptReference(receipt)
    return this.#record('completed', attempt.attemptId, receipt, tx => {
      const current = currentOf(tx, attempt, reference, 'committed')
      if (current === undefined) return
      endAttempt(tx, current, {
        state: 'completed',
        endedAtUnixMs,
        reason: null,
        receiptReference: reference,
        frame: null,
      })
      insertExecutionReceipt(tx, attempt.attemptId, receipt, endedAtUnixMs)
      responses.insert(tx, attempt.attemptId, sealed)
    })
  }

  /** Gives up what is not on disk; the next life of the daemon settles it. */
  close(): void {
    this.#closed = true
    for (const timer of this.#timers) clearTimeout(timer)
    this.#timers.clear()
  }

  #record<T>(name: string, attemptId: string, value: T, body: (tx: Transaction) => void): Recording<T> {
    const first = this.#try(name, body)
    const durable = first
      .then(async done => {
        if (!done) await this.#untilDone(name, attemptId, body)
        return value
      })
      .finally(() => this.#pending.delete(attemptId))
    this.#pending.set(attemptId, durable)
    durable.catch((error: unknown) =>
      this.#parts.log.error({ attemptId, ...faultFields(error) }, 'end not recorded'),
    )
    return { tried: first.then(ignore, ignore), durable }
  }

  async #try(name: string, body: (tx: Transaction) => void): Promise<boolean> {
    try {
      await this.#parts.store.transaction(name, body)
      return true
    } catch (error) {
      if (!isBrokerError(error) || error.code !== 'storage') throw error
      this.#parts.log.error(faultFields(error), `commit ${name} failed; tried again`)
      return false
    }
  }

  async #untilDone(name: string, attemptId: string, body: (tx: Transaction) => void): Promise<void> {
    for (;;) {
      await this.#pause()
      if (this.#closed) throw new BrokerError('storage', 'end not recorded: the broker stopped first')
      if (!(await this.#try(name, body))) continue
      this.#parts.log.warn({ attemptId }, `commit ${name} done after a fault`)
      return
    }
  }

  #pause(): Promise<void> {
    return new Promise(resolve => {
      const timer = setTimeout(() => {
        this.#timers.delete(timer)
        resolve()
      }, RETRY_MS)
      timer.unref()
      this.#timers.add(timer)
    })
  }
}

/** The row as it stands, or undefined when a commit whose answer was lost has recorded this very end. */
function currentOf(
  tx: Transaction,
  attempt: AttemptRecord,
  reference: string,
  progress: Progress,
): AttemptRecord | undefined {
  const current = findAttempt(tx, attempt.attemptId)
  if (current === undefined)
    throw new BrokerError('invariant', 'end refused: expected a registered attempt, got none')
  if (current.receiptReference === reference) return undefined
  const wasCommitted = current.state === 'dispatch_committed'
  if (wasCommitted !== (progress === 'committed')) {
    throw new BrokerError('conflict', `end refused: expected an open attempt, got ${current.state}`)
  }
  return current
}

function ignore(): void {
  // Whoever needs the fault waits on `durable`.
}
