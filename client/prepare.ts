// Prepares the one stream of an attempt. Authenticates the socket's custody and the peer before and
// after, accepts an acknowledgement only of this registration and request, and closes the stream on
// every other answer. Opens exactly one connection and never a second one.
import { checkPrepareAcknowledgement, PrepareDispatchAcknowledgement } from '../protocol/acknowledgement.js'
import { executeFrameBody } from '../protocol/attempt-request.js'
import type { Clock } from '../protocol/clock.js'
import { decode } from '../protocol/codec.js'
import { decodeResponse, encodeRequest } from '../protocol/envelope.js'
import { BrokerError } from '../protocol/errors.js'
import { encodeFrame } from '../protocol/frame.js'
import { DEFAULT_IPC_DEADLINE_MS } from '../protocol/limits.js'
import { closeDescriptor, connectUnix, peerCredentials, readFrame, writeFully } from '../native/index.js'
import { assertSocketCustody } from '../system/socket-custody.js'
import { type AuthorizedAttempt, attemptEnvelope, declined } from './broker-client.js'
import type { BrokerPins } from './broker-pins.js'
import { deadlineAfter } from './deadline.js'
import { PreparedStream } from './prepared-stream.js'

/** A prepared stream with the acknowledgement that it was accepted under. */
export interface Preparation {
  readonly stream: PreparedStream
  readonly acknowledgement: PrepareDispatchAcknowledgement
}

/**
 * Prepares the stream of one registered attempt.
 * @throws BrokerError `conflict` when another preparation holds the slot, `authorization_denied` when the
 * broker declined or another process answered, `authority_unavailable` for a lost or malformed answer.
 */
export async function prepareDispatchConnection(
  pins: BrokerPins,
  attempt: AuthorizedAttempt,
  clock: Clock,
): Promise<Preparation> {
  const deadlineBootNs = deadlineAfter(clock, DEFAULT_IPC_DEADLINE_MS)
  const custody = { ownerUid: pins.uid, socketGid: pins.socketGid }
  const before = assertSocketCustody(pins.socketPath, custody)
  const descriptor = await connect(pins.socketPath, deadlineBootNs)
  try {
    checkPeer(descriptor, pins)
    const acknowledgement = await exchangePreparation(descriptor, pins, attempt, deadlineBootNs)
    checkPeer(descriptor, pins)
    const after = assertSocketCustody(pins.socketPath, custody)
    if (before.device !== after.device || before.inode !== after.inode) {
      throw new BrokerError(
        'peer_mismatch',
        'broker socket refused: expected the same socket before and after',
      )
    }
    const frame = encodeFrame(executeFrameBody(attempt.request, pins.tenantScope))
    return { acknowledgement, stream: new PreparedStream(descriptor, frame, pins.responseFrameBytes) }
  } catch (error) {
    closeDescriptor(descriptor)
    throw error
  }
}

async function connect(path: string, deadlineBootNs: bigint): Promise<number> {
  try {
    return await connectUnix(path, deadlineBootNs)
  } catch (cause) {
    throw new BrokerError('broker_unavailable', 'broker refused: no process serves its socket', { cause })
  }
}

function checkPeer(descriptor: number, pins: BrokerPins): void {
  const peer = peerCredentials(descriptor)
  if (peer.uid === pins.uid && (pins.socketGid === null || peer.gid === pins.socketGid)) return
  throw new BrokerError(
    'authorization_denied',
    `broker peer refused: expected uid ${pins.uid} and gid ${pins.socketGid ?? 'any'}, got ${peer.uid} and ${peer.gid}`,
  )
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
