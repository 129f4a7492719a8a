// Owns: connecting to one of our daemons: the socket's custody before, the peer and the same inode after.
// Must never: send a byte to a process that is not the pinned owner. Not for the prepared stream, whose description
// is shared with a tool: a net.Socket would make it non-blocking.
// Source: the broker protocol's client checks; unix(7) SO_PEERCRED (credentials of the listener).
import { Socket } from 'node:net'
import { closeDescriptor, connectUnix, peerCredentials } from '../native/index.js'
import type { Clock } from '../protocol/clock.js'
import { BrokerError, type ErrorCode, isBrokerError } from '../protocol/errors.js'
import { type ConnectionMode, FramedConnection } from './framed-connection.js'
import { deadlineAfter, whenPassed } from './deadline.js'
import { assertSameSocket, assertSocketCustody, type SocketOwner } from './socket-custody.js'

export interface ServerPins extends SocketOwner {
  readonly path: string
}

export interface ConnectOptions extends ServerPins {
  readonly clock: Clock
  readonly deadlineBootNs: bigint
  readonly mode?: ConnectionMode
  /** What nobody listening is called: `broker_unavailable`, `kernel_unavailable`; `authority_unavailable` unless said. */
  readonly unavailable?: ErrorCode
}

/**
 * Connects to the pinned owner of a socket.
 * @throws BrokerError `custody`, `peer_mismatch`, or the `unavailable` code when nobody serves there.
 */
export async function connectFramed(options: ConnectOptions): Promise<FramedConnection> {
  const descriptor = await connectPinned(options)
  const socket = new Socket({ fd: descriptor, allowHalfOpen: true, readable: true, writable: true })
  return new FramedConnection(socket, { clock: options.clock, mode: options.mode ?? 'exchange' })
}

/** As `connectFramed`, but gives the blocking descriptor itself. The caller closes it. */
export async function connectPinned(options: ConnectOptions): Promise<number> {
  const { clock, deadlineBootNs } = options
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    try {
      return await connectOnce(options)
    } catch (error) {
      const nextBootNs = deadlineAfter(clock, pauseMs)
      if (!(error instanceof ActivatorMet) || nextBootNs >= deadlineBootNs) throw error
      await new Promise<void>(resolve => {
        whenPassed(clock, nextBootNs, resolve)
      })
    }
  }
}

/** Who connected before an activated daemon listened sees the service manager, and connects again without a byte. */
class ActivatorMet extends BrokerError {}
const FIRST_PAUSE_MS = 25
const LONGEST_PAUSE_MS = 400
const MANAGER_UID = 0

async function connectOnce(options: ConnectOptions): Promise<number> {
  const { path, deadlineBootNs } = options
  const before = judgedOrUnavailable(options, () => assertSocketCustody(path, options))
  const descriptor = await connectUnix(path, deadlineBootNs).catch((error: unknown) => {
    throw unavailable(options, error)
  })
  try {
    assertServerPeer(descriptor, options)
    judgedOrUnavailable(options, () => assertSameSocket(path, before))
    return descriptor
  } catch (error) {
    closeDescriptor(descriptor)
    throw error
  }
}

/** One request and its response on a connection of its own. */
export async function exchangeFrame(
  options: ConnectOptions & { readonly maximumFrameBytes: number },
  requestBody: Uint8Array,
): Promise<Uint8Array> {
  const { deadlineBootNs, maximumFrameBytes } = options
  const connection = await connectFramed({ ...options, mode: 'exchange' })
  try {
    const response = connection.readFrame({ maximumFrameBytes, deadlineBootNs })
    const written = connection.writeFrame(requestBody, deadlineBootNs)
    // A write that fails ends the connection and thereby the read, whose error says how far the answer came.
    const [answer] = await Promise.allSettled([response, written])
    if (answer.status === 'rejected') throw answer.reason as Error
    return answer.value
  } finally {
    connection.closeNow()
  }
}

/** Refuses a listener that is not the pinned owner. */
export function assertServerPeer(descriptor: number, pins: ServerPins): void {
  const { uid, gid } = peerCredentials(descriptor)
  if (uid !== pins.ownerUid) throw mismatch(pins.path, `uid ${pins.ownerUid}`, `${uid}`, uid)
  if (pins.socketGid !== null && gid !== pins.socketGid)
    throw mismatch(pins.path, `gid ${pins.socketGid}`, `${gid}`)
}

function mismatch(path: string, expected: string, got: string, uid?: number): BrokerError {
  const Refusal = uid === MANAGER_UID ? ActivatorMet : BrokerError
  return new Refusal('peer_mismatch', `peer at ${path} refused: expected ${expected}, got ${got}`, {
    outcome: 'not_started',
  })
}

function judgedOrUnavailable<T>(options: ConnectOptions, judge: () => T): T {
  try {
    return judge()
  } catch (error) {
    throw unavailable(options, error)
  }
}

/** Errors of the system mean that nobody serves there, or that we may not reach them; refusals stay refusals. */
function unavailable(options: ConnectOptions, error: unknown): unknown {
  if (isBrokerError(error) || !(error instanceof Error) || !('code' in error)) return error
  const sentence = `connection to ${options.path} refused: expected a daemon that serves there, got ${String(error.code)}`
  return new BrokerError(options.unavailable ?? 'authority_unavailable', sentence, {
    outcome: 'not_started',
    cause: error,
  })
}
