// Prepares the one stream of an attempt. Authenticates the socket's custody and the peer before and
// after, accepts an acknowledgement only of this registration and request, and closes the stream on
// every other answer. Opens exactly one connection and never a second one.
import { checkPrepareAcknowledgement, PrepareDispatchAcknowledgement } from '../protocol/acknowledgement.js'
import { executeFrameBody } from '../protocol/attempt-request.js'
import { type Clock, unixSeconds } from '../protocol/clock.js'
import { decode } from '../protocol/codec.js'
import { decodeResponse, encodeRequest } from '../protocol/envelope.js'
import { BrokerError, isBrokerError } from '../protocol/errors.js'
import { encodeFrame } from '../protocol/frame.js'
import { DEFAULT_IPC_DEADLINE_MS, MAXIMUM_CLOCK_SKEW_SECONDS } from '../protocol/limits.js'
import { closeDescriptor, readFrame, writeFully } from '../native/index.js'
import { assertServerPeer, connectPinned, type ServerPins } from '../system/connect.js'
import { assertSameSocket, assertSocketCustody, type SocketIdentity } from '../system/socket-custody.js'
import { type AuthorizedAttempt, attemptEnvelope, declined } from './broker-client.js'
import type { BrokerPins } from './broker-pins.js'
import { deadlineAfter } from '../system/deadline.js'
import { PreparedStream } from './prepared-stream.js'

/** A prepared stream with the acknowledgement that it was accepted under. */
export interface Preparation {
  readonly stream: PreparedStream
  readonly acknowledgement: PrepareDispatchAcknowledgement
}

/**
 * Prepares the stream of one registered attempt.
 * @throws BrokerError `conflict` when another preparation holds the slot; the broker's own code when it
 * declined otherwise; `peer_mismatch` when another process answered; `authority_unavailable` for a lost or
 * malformed answer. The stream is closed then.
 */
export async function prepareDispatchConnection(
  pins: BrokerPins,
  attempt: AuthorizedAttempt,
  clock: Clock,
): Promise<Preparation> {
  const deadlineBootNs = deadlineAfter(clock, DEFAULT_IPC_DEADLINE_MS)
  const server = { path: pins.socketPath, ownerUid: pins.uid, socketGid: pins.socketGid }
  const before = assertServed(server)
  const descriptor = await connectPinned({
    ...server,
    clock,
    deadlineBootNs,
    unavailable: 'broker_unavailable',
  })
  try {
    const acknowledgement = await exchangePreparation(descriptor, pins, attempt, deadlineBootNs)
    checkPreparedNow(acknowledgement, clock)
    assertServerPeer(descriptor, server)
    assertSameSocket(pins.socketPath, before)
    const frame = encodeFrame(executeFrameBody(attempt.request, pins.tenantScope))
    return { acknowledgement, stream: new PreparedStream(descriptor, frame, pins.responseFrameBytes) }
  } catch (error) {
    closeDescriptor(descriptor)
    throw error
  }
}

function assertServed(server: ServerPins): SocketIdentity {
  try {
    return assertSocketCustody(server.path, server)
  } catch (cause) {
    if (isBrokerError(cause)) throw cause
    throw new BrokerError('broker_unavailable', 'broker refused: no process serves its socket', { cause })
  }
}

async function exchangePreparation(
  descriptor: number,
  pins: BrokerPins,
  attempt: AuthorizedAttempt,
  deadlineBootNs: bigint,
): Promise<PrepareDispatchAcknowledgement> {
  const request = encodeRequest(attemptEnvelope('prepare_connection', attempt, pins.tenantScope))
  const answer = await exchange(descriptor, encodeFrame(request), deadlineBootNs, pins.responseFrameBytes)
  const response = asUnavailable(() => decodeResponse(answer, 'prepare_connection'))
  if (!response.accepted) throw declined(response)
  return asUnavailable(() => {
    const acknowledgement = decode(
      PrepareDispatchAcknowledgement,
      response.response,
      'prepare acknowledgement',
    )
    checkPrepareAcknowledgement(acknowledgement, attempt.registration)
    return acknowledgement
  })
}

/** An acknowledgement of another hour is not the answer to this preparation, whatever it names. */
function checkPreparedNow(acknowledgement: PrepareDispatchAcknowledgement, clock: Clock): void {
  const apartSeconds = Math.abs(unixSeconds(clock) - acknowledgement.preparedAtUnixSeconds)
  if (apartSeconds <= MAXIMUM_CLOCK_SKEW_SECONDS) return
  throw new BrokerError(
    'authority_unavailable',
    `prepare acknowledgement preparedAtUnixSeconds refused: expected this moment, got one ${apartSeconds} s away; the stream was closed`,
  )
}

async function exchange(
  descriptor: number,
  frame: Uint8Array,
  deadlineBootNs: bigint,
  maximumFrameBytes: number,
): Promise<Uint8Array> {
  try {
    await writeFully(descriptor, frame, deadlineBootNs)
    const answer = await readFrame(descriptor, { maximumFrameBytes, deadlineBootNs })
    if (answer !== null) return answer
  } catch (cause) {
    throw new BrokerError('authority_unavailable', 'preparation ended without an acknowledgement', { cause })
  }
  throw new BrokerError(
    'authority_unavailable',
    'preparation ended without an acknowledgement: the broker closed',
  )
}

function asUnavailable<T>(read: () => T): T {
  try {
    return read()
  } catch (cause) {
    if (cause instanceof BrokerError && cause.code === 'authority_unavailable') throw cause
    const sentence = cause instanceof Error ? cause.message : 'malformed answer'
    throw new BrokerError('authority_unavailable', `preparation refused: ${sentence}`, { cause })
  }
}
