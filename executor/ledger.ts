// Owns the executor's ledger as an application has it: provisioned once, opened ever after, extended by signed segments.
// Between two commands it holds nothing, so that several processes may share one ledger.
// Must never: provision where opening failed: a ledger that is lost is restored and looked into, never replaced.
// Source: the caller execution ledger of the kernel protocol.
import { rmSync } from 'node:fs'
import type { CallerAuthorization, CallerExecutor } from '../protocol/caller-authorization.js'
import type { VerifiedCallerReport } from '../protocol/caller-report.js'
import type { Clock } from '../protocol/clock.js'
import { encode } from '../protocol/codec.js'
import { BrokerError } from '../protocol/errors.js'
import { admitPublicKey, type SigningKey } from '../protocol/keys.js'
import { exists } from '../store/file-custody.js'
import { provisionStore } from '../store/provision.js'
import type { AdoptionRequest } from '../store/adopt.js'
import type { Cutpoint } from '../store/store.js'
import type { Transaction } from '../store/transaction.js'
import { type ClockCorrection, correctClock } from './clock-correction.js'
import { assertOwnKey, type ExecutionTerms, executeOnce, type ExecutorCallback } from './execute-once.js'
import { adoptLedger } from './ledger-adoption.js'
import { createHead, headPathOf } from './ledger-head.js'
import {
  countClaims,
  countReports,
  executorBytes,
  insertConfiguration,
  insertSegment,
} from './ledger-rows.js'
import { LEDGER_SCHEMA, MAXIMUM_SEGMENT_OPERATIONS_COUNT } from './ledger-schema.js'
import { SegmentHeader, signNextSegment } from './ledger-segments.js'
import { advanceClock } from './ledger-time.js'
import { type LedgerPlace, visitLedger } from './ledger-visit.js'

/** How far the wall clock may stray from the boot clock, unless said. */
const DEFAULT_CLOCK_SKEW_MS = 5_000
/** How long a command waits for another one that is at the ledger, unless said. */
const DEFAULT_LOCK_WAIT_MS = 5_000

export interface LedgerOptions {
  readonly clock: Clock
  /** The boot in which the clock's elapsed time counts. */
  readonly bootId: string
  readonly clockSkewMs?: number
  readonly lockWaitMs?: number
  /** Called around every durable boundary; a crash test ends the process there. */
  readonly atCutpoint?: Cutpoint
}

/** What a ledger holds. */
export interface LedgerCounts {
  readonly capacity: number
  readonly claims: number
  readonly reports: number
  readonly segments: number
}

export interface ProvisionTerms {
  readonly executor: CallerExecutor
  /** Operations of the first segment, 1 to 64. */
  readonly capacity: number
  /** The executor's own: it signs how far the history is. */
  readonly key: SigningKey
}

export class ExecutorLedger {
  readonly #place: LedgerPlace

  private constructor(place: LedgerPlace) {
    this.#place = place
  }

  /**
   * Makes a ledger, once. Its directory exists, 0700, and is ours.
   * @throws BrokerError `storage` where anything of a ledger exists, or the disk refuses: then nothing is left of it.
   */
  static async provision(
    path: string,
    terms: ProvisionTerms,
    options: LedgerOptions,
  ): Promise<ExecutorLedger> {
    const place = placeOf(path, terms.executor, options)
    assertOwnKey(place, terms.key)
    admitPublicKey(terms.executor.public_key, 'executor public_key')
    assertSegmentCapacity(terms.capacity)
    const first = { identity: executorBytes(terms.executor), maxOperations: terms.capacity }
    let hasHead = false
    try {
      await provisionStore(path, LEDGER_SCHEMA, {
        clock: options.clock,
        ownerWaitMs: place.lockWaitMs,
        first(rows) {
          if (exists(headPathOf(path))) throw remains(headPathOf(path))
          hasHead = true
          insertConfiguration(rows, first)
          createHead(path, rows.storeId, terms.key)
        },
      })
    } catch (error) {
      if (hasHead && !exists(path)) rmSync(headPathOf(path), { force: true })
      throw error
    }
    return new ExecutorLedger(place)
  }

  /**
   * Opens a ledger that was provisioned for this executor, and judges it as a whole.
   * @throws BrokerError `store_missing`, `store_replaced`, `executor_mismatch`, `storage` or `another_instance`.
   */
  static async open(path: string, executor: CallerExecutor, options: LedgerOptions): Promise<ExecutorLedger> {
    const ledger = new ExecutorLedger(placeOf(path, executor, options))
    await ledger.counts()
    return ledger
  }

  /**
   * Accepts, signed and kept, that the device number of the ledger's disk alone has changed; then judges it as a whole.
   * @throws BrokerError `conflict` where nothing has changed, `store_replaced` for another file, and those of `open`.
   */
  static async adopt(
    path: string,
    terms: { readonly executor: CallerExecutor; readonly key: SigningKey },
    options: LedgerOptions,
  ): Promise<AdoptionRequest> {
    const place = placeOf(path, terms.executor, options)
    assertOwnKey(place, terms.key)
    const change = await adoptLedger(place, terms.key)
    await new ExecutorLedger(place).counts()
    return change
  }

  /** See execute-once.ts: the callback is called at most once for one authorization, in all processes together. */
  executeOnce(
    authorization: CallerAuthorization,
    terms: ExecutionTerms,
    callback: ExecutorCallback,
  ): Promise<VerifiedCallerReport> {
    return executeOnce(this.#place, authorization, terms, callback)
  }

  /** What it holds now. */
  counts(): Promise<LedgerCounts> {
    return visitLedger(this.#place, async ({ segments, store }) => ({
      capacity: segments.capacity,
      claims: countClaims(store),
      reports: countReports(store),
      segments: segments.segment,
    }))
  }

  /**
   * Signs the next segment, which makes room for so many operations more. Nothing that stands is touched.
   * @returns the counts afterwards.
   */
  async extend(maxOperations: number, key: SigningKey): Promise<LedgerCounts> {
    assertOwnKey(this.#place, key)
    assertSegmentCapacity(maxOperations)
    await visitLedger(this.#place, async visit => {
      const { history, segments, store } = visit
      visit.follow(key)
      const signed = signNextSegment(segments, store.storeId, history, { key, maxOperations })
      await store.transaction('segment_added', tx => {
        advanceClock(tx, this.#place.time)
        const header = encode(SegmentHeader, signed)
        insertSegment(tx, store.storeId, { header, segment: signed.header.segment })
      })
      visit.follow(key)
    })
    return this.counts()
  }

  /** Signs that the wall clock is right as it is, also where that is earlier than the ledger's last commit. */
  async acceptClock(key: SigningKey): Promise<ClockCorrection> {
    assertOwnKey(this.#place, key)
    return visitLedger(this.#place, async visit => {
      const { store } = visit
      visit.follow(key)
      const accept = (tx: Transaction) => correctClock(tx, store.storeId, this.#place.time, key)
      const correction = await store.transaction('clock_accepted', accept)
      visit.follow(key)
      return correction
    })
  }
}

function placeOf(path: string, executor: CallerExecutor, options: LedgerOptions): LedgerPlace {
  const { atCutpoint = () => {}, bootId, clock, clockSkewMs: skewMs = DEFAULT_CLOCK_SKEW_MS } = options
  const { lockWaitMs = DEFAULT_LOCK_WAIT_MS } = options
  return { atCutpoint, executor, lockWaitMs, path, time: { bootId, clock, skewMs } }
}

function assertSegmentCapacity(maxOperations: number): void {
  const isWhole = Number.isInteger(maxOperations)
  if (isWhole && maxOperations >= 1 && maxOperations <= MAXIMUM_SEGMENT_OPERATIONS_COUNT) return
  const expected = `a whole number from 1 to ${MAXIMUM_SEGMENT_OPERATIONS_COUNT}`
  throw new RangeError(`"capacity" expected ${expected}, got ${maxOperations}`)
}

function remains(path: string): BrokerError {
  return new BrokerError(
    'storage',
    `provisioning refused: expected nothing of a ledger, got ${path}; restore the ledger that it belongs to`,
    { outcome: 'not_started' },
  )
}
