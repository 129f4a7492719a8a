// Owns one connection from its first byte to its close: read, decode, admit, hand to its row, answer, log.
// Must never: let an error of one connection reach the daemon, or tell a peer more than a code.
// Source: the broker protocol, sections 2 and 11.
import { decodeSliced } from '../protocol/codec.js'
import { AuthenticatedIpcRequest } from '../protocol/envelope.js'
import { isBrokerError } from '../protocol/errors.js'
import type { LeaveCall } from '../system/call-places.js'
import { ConnectionEnded, endedBetweenFrames } from '../system/connection-ended.js'
import type { FramedConnection } from '../system/framed-connection.js'
import type { PeerIdentity } from '../system/peer.js'
import { acceptedFrame, declinedFrame } from './answers.js'
import { NS_PER_MS } from '../protocol/clock.js'
import { bootNsAfter } from './deadline.js'
import { type OperationRow, operationRow } from './dispatch-table.js'
import { faultFields } from './log.js'
import type { BrokerExchange, BrokerParts } from './parts.js'
import { Refused } from './refused.js'
import { refusalRow } from './refusals.js'
import { nextSlice } from './turn-of-loop.js'

/** Serves one connection. Settles when it is over; rejects for nothing that a peer can do. */
export async function serveConnection(
  parts: BrokerParts,
  connection: FramedConnection,
  peer: PeerIdentity,
): Promise<void> {
  const request = await readRequest(parts, connection, peer)
  if (request === undefined) return
  const exchange = { connection, peer, request }
  try {
    await serveRequest(parts, exchange)
  } catch (error) {
    await decline(parts, exchange, error)
  }
}

async function readRequest(
  parts: BrokerParts,
  connection: FramedConnection,
  peer: PeerIdentity,
): Promise<AuthenticatedIpcRequest | undefined> {
  const { config, log } = parts
  const deadlineBootNs = connection.acceptedBootNs + BigInt(config.readTimeoutMs) * NS_PER_MS
  try {
    const maximumFrameBytes = config.requestFrameBytes
    const body = await connection.readFrame({ maximumFrameBytes, deadlineBootNs })
    try {
      return await decodeEnvelope(body)
    } finally {
      // An administrator's request may hold a secret to be provisioned.
      body.fill(0)
    }
  } catch (error) {
    if (endedBetweenFrames(error) && connection.ending === 'eof') return undefined
    const refused =
      error instanceof ConnectionEnded ? new Refused('frame_refused', error.ending, error) : error
    log.warn({ connectorPid: peer.pid, connectorUid: peer.uid, ...faultFields(refused) }, 'request refused')
    return undefined
  }
}

async function decodeEnvelope(body: Uint8Array): Promise<AuthenticatedIpcRequest> {
  try {
    return await decodeSliced(AuthenticatedIpcRequest, body, 'request envelope', nextSlice)
  } catch (cause) {
    if (isBrokerError(cause)) throw new Refused('envelope_malformed', `${body.length} bytes`, cause)
    throw cause
  }
}

async function serveRequest(parts: BrokerParts, exchange: BrokerExchange): Promise<void> {
  const row = admitRequest(parts, exchange)
  const leave = row.heard === 'always' ? undefined : enterCall(parts, exchange)
  try {
    await serveRow(parts, exchange, row)
  } finally {
    leave?.()
  }
}

/** Calls that wait must not take every connection of their uid: what administers needs one. */
function enterCall({ calls }: BrokerParts, { peer }: BrokerExchange): LeaveCall {
  const leave = calls.enter(peer)
  if (leave === undefined) throw new Refused('call_capacity', 'as many as it may have')
  return leave
}

async function serveRow(parts: BrokerParts, exchange: BrokerExchange, row: OperationRow): Promise<void> {
  const { request } = exchange
  parts.atCutpoint(`${request.operation}.received`)
  if (row.answers === 'stream') return row.handle(parts, exchange)
  const answer = await row.handle(parts, exchange)
  request.payload.fill(0)
  await write(parts, exchange, row.answers === 'frame' ? answer : acceptedFrame(request.operation, answer))
  parts.atCutpoint(`${request.operation}.answered`)
}

function admitRequest(parts: BrokerParts, { request }: BrokerExchange): OperationRow {
  if (request.tenantScope !== parts.config.tenantScope) throw new Refused('tenant_mismatch', 'another')
  const row = operationRow(request.operation)
  if (row === undefined)
    throw new Refused('operation_unknown', `a name of ${request.operation.length} characters`)
  if (row.authorization === 'required' && request.authorization.length === 0) {
    throw new Refused('authorization_missing', 'none')
  }
  if (row.permitted === 'serving' && parts.isStopping()) throw new Refused('broker_closing', 'one that stops')
  return row
}

async function write(parts: BrokerParts, exchange: BrokerExchange, frame: Uint8Array): Promise<void> {
  await exchange.connection.writeFrame(frame, bootNsAfter(parts.clock, parts.config.writeTimeoutMs))
}

/** Tells the peer the code of the row, where the row lets it hear one. */
async function decline(parts: BrokerParts, exchange: BrokerExchange, error: unknown): Promise<void> {
  const { connection, peer, request } = exchange
  request.payload.fill(0)
  const operation = operationRow(request.operation) === undefined ? 'unknown' : request.operation
  const who = { operation, connectorPid: peer.pid, connectorUid: peer.uid }
  if (error instanceof ConnectionEnded) return parts.log.warn({ ...who, ...faultFields(error) }, 'peer left')
  const refused = asRefused(error)
  const fields = { ...who, ...faultFields(error), ...faultFields(refused) }
  if (refused.reason === 'internal_fault') parts.log.error(fields, 'request failed')
  else parts.log.warn(fields, 'request refused')
  if (!mayHear(request.operation, refused) || connection.ending !== undefined) return
  try {
    await write(parts, exchange, declinedFrame(request.operation, refused.code))
  } catch (cause) {
    parts.log.warn({ ...who, ...faultFields(cause) }, 'refusal not delivered')
  }
}

/** A replay hears what the attempt is, or a signed failure; every other refusal of it closes without a byte. */
function mayHear(operation: string, { reason }: Refused): boolean {
  if (refusalRow(reason).silent === true) return false
  return operation !== 'execute' || reason === 'attempt_pending' || reason === 'attempt_unknown'
}

function asRefused(error: unknown): Refused {
  if (error instanceof Refused) return error
  if (isBrokerError(error) && error.code === 'storage') return new Refused('store_fault', error.code, error)
  if (isBrokerError(error) && error.code === 'conflict')
    return new Refused('attempt_differs', 'a used id', error)
  return new Refused('internal_fault', undefined, error)
}
