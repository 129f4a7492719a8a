// Owns `release_attempt`: the authority's word that an attempt shall not be dispatched any more. Its acknowledgement
// says so for certain; where it cannot, the answer is `conflict`: read the outcome.
// Must never: make a row for an attempt that nobody registered, or acknowledge one that was dispatched.
// Source: the broker protocol, section 8.3.
import { RELEASE_ACKNOWLEDGEMENT_SCHEMA, ReleaseAttemptAcknowledgement } from '../protocol/acknowledgement.js'
import { encode } from '../protocol/codec.js'
import { registrationDigest } from '../protocol/registration.js'
import { type AttemptRecord, findAttempt } from './attempts.js'
import { openAttemptRequest } from './attempt-request.js'
import { bootNsAfter } from './deadline.js'
import type { BrokerExchange, BrokerParts } from './parts.js'
import { Refused } from './refused.js'
import { within } from './within.js'

export async function releaseAttempt(parts: BrokerParts, exchange: BrokerExchange): Promise<Uint8Array> {
  const { registration } = await openAttemptRequest(parts, exchange, 'release', 'payload_malformed')
  const { attemptId } = registration.ids
  const attempt = findAttempt(parts.store, attemptId)
  if (attempt === undefined) throw new Refused('attempt_unknown', 'none')
  if (attempt.registrationDigest !== registrationDigest(registration)) {
    throw new Refused('attempt_differs', 'another registration of this attempt')
  }
  await endBeforeDispatch(parts, attempt)
  return acknowledgement(findAttempt(parts.store, attemptId) ?? attempt)
}

async function endBeforeDispatch(parts: BrokerParts, attempt: AttemptRecord): Promise<void> {
  const { clock, config, desk, recorder } = parts
  const holder = desk.heldBy(attempt.attemptId)
  const pending =
    holder === undefined
      ? undefined
      : (desk.end(holder, new Refused('released'))?.durable ?? holder.recording?.durable)
  const ending = pending ?? recorder.pendingOf(attempt.attemptId) ?? failed(parts, attempt)
  if (ending === undefined) return
  const recorded = await within(ending, clock, bootNsAfter(clock, config.writeTimeoutMs)).catch(() => null)
  if (recorded === undefined) throw new Refused('store_fault', 'none in time')
}

function failed(parts: BrokerParts, attempt: AttemptRecord): Promise<unknown> | undefined {
  if (attempt.state !== 'registered' || parts.desk.heldBy(attempt.attemptId) !== undefined) return undefined
  const { attemptId, operationId } = attempt
  parts.log.info({ attemptId, operationId, reason: 'released' }, 'attempt released')
  return parts.recorder.fail(attempt, { reason: 'released', progress: 'before_hold_query' }).durable
}

function acknowledgement(attempt: AttemptRecord): Uint8Array {
  const { attemptId, operationId, dispatchCommittedAtUnixMs, endedAtUnixMs, state } = attempt
  if (state !== 'failed' || dispatchCommittedAtUnixMs !== null || endedAtUnixMs === null) {
    throw new Refused('attempt_dispatched', state)
  }
  return encode(ReleaseAttemptAcknowledgement, {
    attemptId,
    operationId,
    releasedAtUnixSeconds: Math.max(1, Math.floor(endedAtUnixMs / 1000)),
    schema: RELEASE_ACKNOWLEDGEMENT_SCHEMA,
  })
}
