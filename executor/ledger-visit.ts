// Owns one visit of a ledger: it is opened, judged as a whole, used for a commit or two, and closed. Nobody holds it while
// an effect runs, so that others who ask meanwhile are told that the outcome is not known yet.
// Must never: create, repair, or let anything be read of a ledger that is not exactly the one that was written.
// Source: the order of the caller execution ledger: lock, schema and file identity, before any row is believed.
import { type CallerExecutor, CallerExecutor as ExecutorCodec } from '../protocol/caller-authorization.js'
import { isSameDocument } from '../protocol/codec.js'
import { admitPublicKey, type SigningKey } from '../protocol/keys.js'
import { openStore } from '../store/open.js'
import type { Cutpoint, Store } from '../store/store.js'
import { readCorrections } from './clock-correction.js'
import { assertHead, writeHead } from './ledger-head.js'
import { assertContents, type HistoryLine, readHistory } from './ledger-history.js'
import { decodeKept, otherExecutor } from './ledger-refusals.js'
import { contentsOf, readConfiguration } from './ledger-rows.js'
import { LEDGER_SCHEMA } from './ledger-schema.js'
import { readSegments, type Segments } from './ledger-segments.js'
import type { LedgerTime } from './ledger-time.js'

/** Where a ledger is, whose it is, and by which time it lives. */
export interface LedgerPlace {
  readonly path: string
  readonly executor: CallerExecutor
  readonly time: LedgerTime
  readonly lockWaitMs: number
  readonly atCutpoint: Cutpoint
}

/** An open ledger that was judged whole. */
export interface LedgerVisit {
  readonly store: Store
  readonly segments: Segments
  readonly history: readonly HistoryLine[]
  /** Brings the head to the end of the history: to be called after every commit that added to it. */
  follow(key: SigningKey): void
}

/**
 * Opens, judges, acts, closes.
 * @throws BrokerError `another_instance` past the wait, `store_missing`, `store_replaced`, `storage`, `executor_mismatch`.
 */
export async function visitLedger<T>(
  place: LedgerPlace,
  act: (visit: LedgerVisit) => Promise<T>,
  lockWaitMs = place.lockWaitMs,
): Promise<T> {
  const { atCutpoint, path, time } = place
  const store = await openStore(path, LEDGER_SCHEMA, {
    atCutpoint,
    clock: time.clock,
    ownerWaitMs: lockWaitMs,
  })
  try {
    return await act(judged(place, store))
  } finally {
    store.close()
  }
}

function judged(place: LedgerPlace, store: Store): LedgerVisit {
  const { executor, path } = place
  const first = readConfiguration(store)
  const own = decodeKept(ExecutorCodec, first.identity, 'identity')
  if (!isSameDocument(ExecutorCodec, own, executor)) {
    throw otherExecutor(`executor ${own.executor_id} of key epoch ${own.key_epoch} with its key`)
  }
  const key = admitPublicKey(executor.public_key, 'executor public_key')
  const history = readHistory(store)
  const segments = readSegments(store, first, history, key)
  const { claims, reports } = contentsOf(store)
  assertContents(history, 'claim', claims)
  assertContents(history, 'report', reports)
  assertContents(history, 'segment', segments.contents)
  assertContents(history, 'clock', readCorrections(store, key))
  let isBehind = assertHead(path, key, store.storeId, history)
  return {
    history,
    segments,
    store,
    follow(signer) {
      const last = readHistory(store).at(-1)
      if (last === undefined || (!isBehind && last.sequence === history.length)) return
      writeHead(path, store.storeId, last, signer)
      isBehind = false
      place.atCutpoint('head_written:after_sync')
    },
  }
}
