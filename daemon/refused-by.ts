// Owns the reason under which an error ends a preparation: what the checks name stays, what a stream or a store
// does gets its row, and what nobody expected is a fault of ours.
// Must never: guess from a message. Codes and types decide.
import { isBrokerError } from '../protocol/errors.js'
import { ConnectionEnded, type ConnectionEnding } from '../system/connection-ended.js'
import { OpeningFault, type OpeningFaultKind } from './provider/opening-fault.js'
import { Refused } from './refused.js'
import type { RefusalReason } from './refusals.js'

const ENDINGS: Record<ConnectionEnding, RefusalReason> = {
  closed: 'stream_closed',
  deadline: 'deadline_expired',
  eof: 'stream_closed',
  length: 'frame_length_mismatch',
  reset: 'stream_closed',
  surplus: 'surplus_bytes',
}

/** Why a provider is not there when its commit is due. */
const UNOPENED: Record<OpeningFaultKind, RefusalReason> = {
  restricted: 'destination_refused',
  unreachable: 'provider_unreachable',
  unresolved: 'provider_unresolved',
  unverified: 'provider_unverified',
}

/** @param moment what was under way: before the acknowledgement, or between the exact frame and the commit. */
export function refusedBy(error: unknown, moment: 'preparation' | 'consumption'): Refused {
  if (error instanceof Refused) return error
  if (error instanceof ConnectionEnded) return new Refused(endingReason(error, moment), error.ending, error)
  if (!isBrokerError(error)) return new Refused('internal_fault', undefined, error)
  if (moment === 'preparation') return new Refused('internal_fault', error.code, error)
  if (error.code === 'conflict') return new Refused('duplicate_state', 'another state', error)
  if (error.code === 'storage') return new Refused('commit_failed', error.code, error)
  if (error instanceof OpeningFault) return new Refused(UNOPENED[error.kind], error.got, error)
  if (error.code === 'upstream') return new Refused('provider_unreachable', undefined, error)
  if (error.code === 'authorization_denied') return new Refused('destination_refused', undefined, error)
  return new Refused('internal_fault', error.code, error)
}

function endingReason(error: ConnectionEnded, moment: 'preparation' | 'consumption'): RefusalReason {
  const reason = ENDINGS[error.ending]
  if (moment === 'preparation') return error.ending === 'deadline' ? 'preparation_budget' : reason
  return reason === 'stream_closed' ? 'stream_left' : reason
}
