// Owns `slot_status` and `attempt_status`: what an operator may know of the slot and of one attempt.
// Must never: need more than the peer check, or hold content.
import { decode, encode } from '../protocol/codec.js'
import { AttemptStatus, AttemptStatusRequest, SlotStatus, SlotStatusRequest } from '../protocol/status.js'
import { findAttempt } from './attempts.js'
import type { BrokerExchange, BrokerParts } from './parts.js'
import { Refused, refusing } from './refused.js'

export function slotStatus(parts: BrokerParts, { request }: BrokerExchange): Uint8Array {
  refusing('payload_malformed', () => decode(SlotStatusRequest, request.payload, 'slot status request'))
  return encode(SlotStatus, parts.desk.status())
}

export function attemptStatus(parts: BrokerParts, { request }: BrokerExchange): Uint8Array {
  const { attemptId } = refusing('payload_malformed', () =>
    decode(AttemptStatusRequest, request.payload, 'attempt status request'),
  )
  const attempt = findAttempt(parts.store, attemptId)
  if (attempt === undefined) throw new Refused('attempt_unknown', 'none')
  return encode(AttemptStatus, {
    attemptId,
    endedAtUnixMs: attempt.endedAtUnixMs,
    dispatchCommittedAtUnixMs: attempt.dispatchCommittedAtUnixMs,
    expectedFrameSha256: attempt.expectedFrameSha256,
    held: parts.desk.heldBy(attemptId) !== undefined,
    operationId: attempt.operationId,
    parentCapabilityId: attempt.parentCapabilityId,
    reason: attempt.reason,
    receiptReference: attempt.receiptReference,
    registeredAtUnixMs: attempt.registeredAtUnixMs,
    requestCanonicalDigest: attempt.requestCanonicalDigest,
    schema: 'chio.broker-attempt-status.v1',
    state: attempt.state,
    submittedFrameBytes: attempt.submittedFrameBytes,
    submittedFrameSha256: attempt.submittedFrameSha256,
  })
}
