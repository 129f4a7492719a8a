// Owns the one transaction after which an effect may happen: every check that time can change stands inside it, so
// that nothing lies between the last look and the commit.
// Must never: have an effect of its own, or be entered twice for one attempt.
// Source: the broker protocol, section 8.4 (13 to 19).
import { unixSeconds } from '../protocol/clock.js'
import type { CapturedHold } from '../protocol/hold.js'
import { hasPassed } from '../system/deadline.js'
import type { Transaction } from '../store/transaction.js'
import { type AttemptRecord, commitDispatch, findAttempt } from './attempts.js'
import type { CurrentCapture } from './consumption.js'
import { bootNsAfter, earlier } from './deadline.js'
import { spendExecutions } from './executions.js'
import type { BrokerParts } from './parts.js'
import type { Preparation, PreparedTerms } from './preparation.js'
import type { ProviderConnection } from './provider/connection.js'
import { Refused } from './refused.js'
import { assertNotRevoked } from './revocations.js'

/** How long a commit waits for a file that another process holds, while the slot is held for it. */
const COMMIT_BUDGET_MS = 1_000

export interface Consumption {
  readonly terms: PreparedTerms
  readonly capture: CurrentCapture
  readonly connection: ProviderConnection
}

/** A dispatch that is on disk: from here the provider's deadline governs. */
export interface Dispatch {
  readonly attempt: AttemptRecord
  readonly terms: PreparedTerms
  readonly captured: CapturedHold
  readonly connection: ProviderConnection
  readonly committedAtUnixMs: number
  readonly deadlineBootNs: bigint
}

/** @throws Refused, or BrokerError `storage` when the disk refused the commit: then nothing was sent. */
export async function commitPrepared(
  parts: BrokerParts,
  preparation: Preparation,
  consumption: Consumption,
): Promise<Dispatch> {
  const { terms, capture, connection } = consumption
  const { clock, config } = parts
  const timeoutMs = Math.min(terms.request.request.options.timeoutMs, config.providerTimeoutCeilingMs)
  const { committedAtUnixMs, deadlineBootNs } = await parts.store.transaction(
    'dispatch_committed',
    tx => {
      const now = walkToDispatch(parts, preparation, consumption, tx)
      return { committedAtUnixMs: now, deadlineBootNs: bootNsAfter(clock, timeoutMs) }
    },
    { deadlineBootNs: earlier(terms.deadline.bootNs, bootNsAfter(clock, COMMIT_BUDGET_MS)) },
  )
  const { attempt } = preparation
  if (attempt === undefined) throw new TypeError('dispatch: expected the attempt that was prepared, got none')
  parts.desk.committed(preparation, deadlineBootNs)
  return { attempt, terms, captured: capture.captured, connection, committedAtUnixMs, deadlineBootNs }
}

function walkToDispatch(
  parts: BrokerParts,
  preparation: Preparation,
  { terms, capture, connection }: Consumption,
  tx: Transaction,
): number {
  const { registration } = preparation.candidate
  const { body } = terms.request.capability
  const attempt = findAttempt(tx, preparation.attemptId)
  if (attempt?.state !== 'registered') throw new Refused('duplicate_state', attempt?.state ?? 'none')
  assertNotRevoked(tx, body.parentCapabilityId)
  parts.credentials.assertEnabled(tx, body.credential)
  spendExecutions(tx, registration.quotas)
  const nowUnixMs = parts.clock.unixMs()
  commitDispatch(tx, attempt, capture.captured, nowUnixMs)
  assertNow(parts, preparation, terms, capture)
  if (!connection.isAlive()) throw new Refused('provider_unreachable', 'one that closed')
  return nowUnixMs
}

/** The last look: who connected, both hands of the clock, the slot. */
function assertNow(
  parts: BrokerParts,
  preparation: Preparation,
  terms: PreparedTerms,
  { parent }: CurrentCapture,
): void {
  const { clock } = parts
  const { peer, connection, registration } = preparation.candidate
  const { body } = terms.request.capability
  const nowUnixSeconds = unixSeconds(clock)
  preparation.assertHeld()
  if (!peer.isAlive()) throw new Refused('connector_gone', 'one that ended')
  if (connection.hungUp()) throw new Refused('stream_left', 'a closed one')
  if (nowUnixSeconds >= body.expiresAtUnixSeconds || nowUnixSeconds < body.notBeforeUnixSeconds) {
    throw new Refused('request_refused', 'a capability outside its time')
  }
  if (nowUnixSeconds > registration.nonceExpiresAtUnixSeconds) {
    throw new Refused('request_refused', 'an expired proof nonce')
  }
  if (nowUnixSeconds >= parent.expiresAtUnixSeconds) throw new Refused('parent_not_live', 'an expired one')
  if (hasPassed(clock, terms.deadline.bootNs)) throw new Refused('deadline_expired', 'a passed one')
}
