// Owns `execute` on an ordinary connection: what is recorded of exactly this request, byte for byte as the stream
// got it. No expiry matters to it.
// Must never: dispatch, prepare or change anything. It reads.
// Source: the broker protocol, section 8.4 (replays); attempts that are not there answer with codes of ours.
import { decodeSliced, encode } from '../protocol/codec.js'
import { BrokerExecuteRequest, RequestProof } from '../protocol/execute-request.js'
import { deriveAttemptIds } from '../protocol/registration.js'
import { completedFrame, failureFrame } from './answers.js'
import { type AttemptRecord, findAttempt } from './attempts.js'
import { assertCaller } from './callers.js'
import { digestsOf } from './canonical-parts.js'
import type { BrokerExchange, BrokerParts } from './parts.js'
import { findReceipt } from './receipts.js'
import { Refused, refusing } from './refused.js'
import { assertThere } from './replay-turns.js'
import { nextSlice } from './turn-of-loop.js'
import { untilEnded } from './until-ended.js'

/** @returns the whole frame body, in its turn. @throws Refused `attempt_pending`, `attempt_unknown`, or a silent one. */
export async function replayExecute(parts: BrokerParts, exchange: BrokerExchange): Promise<Uint8Array> {
  const { connection, peer, request } = exchange
  const execute = await openExecute(request.payload)
  if (Buffer.compare(encode(RequestProof, execute.proof), request.authorization) !== 0) {
    throw new Refused('authorization_missing', 'other bytes than the proof of the request')
  }
  connection.authenticated()
  assertCaller(parts.config.clients, peer, execute.capability.body.subject)
  const digests = digestsOf(execute, request.payload)
  const attemptId = attemptIdOf(execute, digests.requestDigest)
  const digest = digests.requestCanonicalDigest
  findExact(parts, attemptId, digest)
  await untilEnded(parts, attemptId, connection)
  return parts.replays.take(peer.uid, connection, () =>
    recordedFrame(parts, findExact(parts, attemptId, digest), async () => {
      assertThere(connection)
      await nextSlice()
    }),
  )
}

async function openExecute(payload: Uint8Array): Promise<BrokerExecuteRequest> {
  try {
    return await decodeSliced(BrokerExecuteRequest, payload, 'execute request', nextSlice)
  } catch (cause) {
    return refusing('document_malformed', () => {
      throw cause
    })
  }
}

function attemptIdOf(execute: BrokerExecuteRequest, requestDigest: string): string {
  return deriveAttemptIds({
    brokerCapabilityId: execute.capability.body.capabilityId,
    invocationId: execute.invocationId,
    proofNonce: execute.proof.body.nonce,
    requestDigest,
  }).attemptId
}

/** The attempt of exactly this request, its signatures included. */
function findExact(parts: BrokerParts, attemptId: string, requestCanonicalDigest: string): AttemptRecord {
  const attempt = findAttempt(parts.store, attemptId)
  if (attempt?.requestCanonicalDigest === requestCanonicalDigest) return attempt
  throw new Refused('attempt_unknown', 'none for this exact request')
}

/**
 * The frame of what is recorded.
 * @param yieldNow between the slices of a large frame; it throws when nobody waits for the frame any more.
 * @throws Refused where nothing is recorded, or not yet.
 */
export async function recordedFrame(
  parts: BrokerParts,
  attempt: AttemptRecord,
  yieldNow: () => Promise<void> = nextSlice,
): Promise<Uint8Array> {
  const { attemptId, receiptReference, state } = attempt
  if (receiptReference === null) {
    if (state === 'registered' && parts.recorder.pendingOf(attemptId) === undefined) {
      throw new Refused('attempt_pending', state)
    }
    throw new Refused('outcome_unrecorded', state)
  }
  const stored = findReceipt(parts.store, receiptReference)
  if (stored?.kind === 'failure') return failureFrame(stored.failure)
  const response = parts.responses.find(parts.store, attemptId)
  if (stored === undefined || response === undefined) throw new Refused('outcome_unrecorded', 'a part of it')
  return completedFrame(response, stored.receipt, yieldNow)
}
