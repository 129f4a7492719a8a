// Owns `prepare_connection`: peer, frame and signature first, then the slot, then the checks, then the terms that
// nothing moves any more, and last the acknowledgement. The stream stays.
// Must never: decrypt a credential, or let the provider's connection delay the acknowledgement.
// Source: the broker protocol, sections 8.2 and 9.
import {
  PREPARE_ACKNOWLEDGEMENT_SCHEMA,
  PrepareDispatchAcknowledgement,
  preparedDispatchId,
} from '../protocol/acknowledgement.js'
import { NS_PER_MS, unixSeconds } from '../protocol/clock.js'
import { encode } from '../protocol/codec.js'
import { hasPassed } from '../system/deadline.js'
import { encodeResponse } from './answers.js'
import { openAttemptRequest } from './attempt-request.js'
import { earlier, leftMsUntil } from './deadline.js'
import type { Preparation, PreparedTerms } from './preparation.js'
import { PreparedProvider } from './provider/prepared-provider.js'
import type { BrokerExchange, BrokerParts } from './parts.js'
import { preparedTerms } from './prepared-terms.js'
import { Refused } from './refused.js'
import { refusedBy } from './refused-by.js'
import { serveHeld } from './serve-held.js'
import { namesOf } from './slot-desk.js'

export async function prepareConnection(parts: BrokerParts, exchange: BrokerExchange): Promise<void> {
  const request = await openAttemptRequest(parts, exchange, 'prepare', 'document_malformed')
  const { connection, peer } = exchange
  if (!peer.isAlive()) throw new Refused('peer_denied', 'one that ended')
  const preparation = parts.desk.claim({ connection, peer, ...request })
  let acknowledged: Acknowledged
  try {
    const asking = preparation.orEnded(preparedTerms(parts, preparation))
    parts.atCutpoint('terms.asked')
    const terms = await asking
    parts.atCutpoint('terms.told')
    acknowledged = await acknowledge(parts, preparation, terms)
  } catch (error) {
    parts.desk.end(preparation, refusedBy(error, 'preparation'))
    throw preparation.endedBy ?? error
  }
  await serveHeld(parts, preparation, acknowledged.frame)
}

interface Acknowledged {
  readonly frame: Promise<Uint8Array>
}

/** Writes the acknowledgement and waits for the frame in one run, so that no byte of it can come unawaited. */
async function acknowledge(
  parts: BrokerParts,
  preparation: Preparation,
  terms: PreparedTerms,
): Promise<Acknowledged> {
  const { clock, desk, config } = parts
  const { connection } = preparation.candidate
  assertStillThere(preparation)
  const budgetBootNs = preparation.governingBootNs
  if (hasPassed(clock, budgetBootNs)) throw new Refused('preparation_budget')
  preparation.terms = terms
  const body = acknowledgementOf(preparation, unixSeconds(clock))
  // Its bytes may be with the peer long before their writing is reported here, where this process is stopped between:
  // whatever ends the preparation from now on closes the stream, and no refusal follows an acknowledgement.
  preparation.phase = 'waiting'
  desk.govern(preparation, terms.deadline.bootNs)
  await preparation.orEnded(connection.writeFrame(body, earlier(budgetBootNs, terms.deadline.bootNs)))
  preparation.assertHeld()
  const frame = connection.readFrame({
    maximumFrameBytes: terms.binding.frameBytes,
    exactBytes: terms.binding.frameBytes,
    deadlineBootNs: terms.deadline.bootNs,
    // The first byte starts the read budget, capped by what is left: bytes never buy time.
    onFirstByte: () => clock.bootNs() + BigInt(config.readTimeoutMs) * NS_PER_MS,
  })
  frame.catch(() => undefined)
  parts.atCutpoint('acknowledged')
  const leftMs = leftMsUntil(clock, terms.deadline.bootNs)
  parts.log.info(
    { ...namesOf(preparation), deadlineLimit: terms.deadline.limit, leftMs },
    'preparation acknowledged',
  )
  openProvider(parts, preparation, terms)
  return { frame }
}

function assertStillThere(preparation: Preparation): void {
  const { connection, peer } = preparation.candidate
  preparation.assertHeld()
  if (!peer.isAlive()) throw new Refused('connector_gone', 'one that ended')
  if (connection.hungUp()) throw new Refused('stream_closed', 'a closed one')
}

function acknowledgementOf(preparation: Preparation, nowUnixSeconds: number): Uint8Array {
  const { registration } = preparation.candidate
  const response = encode(PrepareDispatchAcknowledgement, {
    attemptId: preparation.attemptId,
    operationId: preparation.operationId,
    preparedAtUnixSeconds: nowUnixSeconds,
    preparedDispatchId: preparedDispatchId(registration),
    schema: PREPARE_ACKNOWLEDGEMENT_SCHEMA,
  })
  return encodeResponse({ accepted: true, errorCode: null, operation: 'prepare_connection', response })
}

/** Opened ahead, so that lookup, TCP and TLS are behind us when the frame comes. */
function openProvider(parts: BrokerParts, preparation: Preparation, terms: PreparedTerms): void {
  const { clock, resolver } = parts
  preparation.provider = new PreparedProvider({
    route: terms.route,
    resolver,
    clock,
    deadlineBootNs: terms.deadline.bootNs,
  })
}
