// Owns the wait for the one frame, and its comparison with the binding and the deadline.
// Must never: write a byte before a frame equals the binding inside the deadline, or keep a frame that does not.
// Source: the broker protocol's prepared connection slot, section 9.
import { ConnectionEnded } from '../system/connection-ended.js'
import { hasPassed } from '../system/deadline.js'
import { foreignFrameHash } from './binding.js'
import { executePrepared } from './execute.js'
import type { BrokerParts } from './parts.js'
import type { Preparation, PreparedTerms } from './preparation.js'
import { Refused } from './refused.js'
import type { RefusalReason } from './refusals.js'

/** @param reading of the frame, begun when the acknowledgement was written. */
export async function serveHeld(
  parts: BrokerParts,
  preparation: Preparation,
  reading: Promise<Uint8Array>,
): Promise<void> {
  const { terms } = preparation
  if (terms === undefined) throw new TypeError('held preparation: expected its terms, got none')
  let frame: Uint8Array
  try {
    frame = await reading
  } catch (error) {
    endUnread(parts, preparation, error)
    return
  }
  if (admitFrame(parts, preparation, terms, frame)) await executePrepared(parts, preparation, terms)
}

/** Moves to executing when the frame is the bound one, in time. */
function admitFrame(
  parts: BrokerParts,
  preparation: Preparation,
  terms: PreparedTerms,
  frame: Uint8Array,
): boolean {
  if (preparation.endedBy !== undefined) return false
  const submitted = foreignFrameHash(terms.binding, frame)
  frame.fill(0)
  if (submitted !== undefined) {
    const { frameBytes, sha256Hex } = terms.binding
    parts.desk.end(preparation, new Refused('frame_mismatch', 'another frame'), {
      expectedFrameSha256: sha256Hex,
      submittedFrameSha256: submitted,
      submittedFrameBytes: frameBytes,
    })
    return false
  }
  if (hasPassed(parts.clock, terms.deadline.bootNs)) {
    parts.desk.end(preparation, new Refused('deadline_expired', 'a late one'))
    return false
  }
  preparation.phase = 'executing'
  parts.atCutpoint('frame_received')
  return true
}

function endUnread(parts: BrokerParts, preparation: Preparation, error: unknown): void {
  const { terms } = preparation
  if (!(error instanceof ConnectionEnded) || terms === undefined) {
    parts.desk.end(preparation, new Refused('internal_fault', undefined, error))
    return
  }
  const reason = unreadReason(parts, terms, error)
  const frame = reason === 'frame_length_mismatch' ? lengthOf(terms, error) : undefined
  parts.desk.end(preparation, new Refused(reason, `${error.receivedBytes} bytes`, error), frame)
}

function unreadReason(parts: BrokerParts, terms: PreparedTerms, error: ConnectionEnded): RefusalReason {
  switch (error.ending) {
    case 'eof':
      return error.receivedBytes === 0 ? 'stream_closed' : 'frame_truncated'
    case 'deadline':
      return hasPassed(parts.clock, terms.deadline.bootNs) ? 'deadline_expired' : 'frame_read_timeout'
    case 'length':
      return 'frame_length_mismatch'
    case 'surplus':
      return 'surplus_bytes'
    case 'reset':
    case 'closed':
      return 'stream_reset'
  }
}

function lengthOf(terms: PreparedTerms, error: ConnectionEnded) {
  return {
    expectedFrameSha256: terms.binding.sha256Hex,
    submittedFrameSha256: null,
    submittedFrameBytes: error.announcedBytes ?? null,
  }
}
