// Owns `register_attempt`: the one place where an attempt comes into being, on disk before it is acknowledged.
// Must never: register what could not be executed now, or one proof nonce twice.
// Source: the broker protocol, section 8.1.
import {
  RegisterAttemptAcknowledgement,
  REGISTER_ACKNOWLEDGEMENT_SCHEMA,
} from '../protocol/acknowledgement.js'
import { unixSeconds } from '../protocol/clock.js'
import { encode } from '../protocol/codec.js'
import { verifyExecuteRequest } from '../protocol/execute-request.js'
import { type AttemptRecord, findAttempt, insertAttempt, newAttempt } from './attempts.js'
import { openAttemptRequest } from './attempt-request.js'
import { executePins } from './execute-pins.js'
import type { BrokerExchange, BrokerParts } from './parts.js'
import { Refused, refusing } from './refused.js'

export async function registerAttempt(parts: BrokerParts, exchange: BrokerExchange): Promise<Uint8Array> {
  const { registration, execute } = await openAttemptRequest(parts, exchange, 'register', 'payload_malformed')
  const { clock, config, store, log } = parts
  const attempt = newAttempt(registration, execute, clock.unixMs())
  const known = findAttempt(store, attempt.attemptId)
  if (known !== undefined) return acknowledgement(sameRegistration(parts, known, attempt), 'exact_retry')
  refusing('request_unfit', () => verifyExecuteRequest(execute, executePins(config), unixSeconds(clock)))
  const registered = await store.transaction('registered', tx => {
    const raced = findAttempt(tx, attempt.attemptId)
    if (raced !== undefined) return sameRegistration(parts, raced, attempt)
    insertAttempt(tx, attempt)
    return attempt
  })
  const disposition = registered === attempt ? 'inserted' : 'exact_retry'
  const { attemptId, operationId } = registered
  log.info({ attemptId, operationId, disposition }, 'attempt registered')
  return acknowledgement(registered, disposition)
}

/** @throws Refused when the attempt differs, or ended; also when its end is not on disk yet. */
function sameRegistration(parts: BrokerParts, known: AttemptRecord, offered: AttemptRecord): AttemptRecord {
  if (known.registrationDigest !== offered.registrationDigest) {
    throw new Refused('attempt_differs', 'another registration of this attempt')
  }
  if (known.state !== 'registered' || parts.recorder.pendingOf(known.attemptId) !== undefined) {
    throw new Refused('registration_ended', known.state)
  }
  return known
}

function acknowledgement(attempt: AttemptRecord, disposition: 'inserted' | 'exact_retry'): Uint8Array {
  return encode(RegisterAttemptAcknowledgement, {
    attemptId: attempt.attemptId,
    disposition,
    operationId: attempt.operationId,
    registeredAtUnixSeconds: Math.floor(attempt.registeredAtUnixMs / 1000),
    schema: REGISTER_ACKNOWLEDGEMENT_SCHEMA,
  })
}
