// Owns what a test says to a broker without a client's manners: any envelope, any bytes, a prepared descriptor used
// in any way. It says back what the peer saw, and nothing it was not shown.
import { systemClock } from '../../native/clock.js'
import { closeDescriptor, connectUnix, readFrame, shutdownWrite, writeFully } from '../../native/index.js'
import { decode } from '../../protocol/codec.js'
import { type AuthenticatedIpcRequest, encodeRequest, IpcResponse } from '../../protocol/envelope.js'
import { encodeFrame } from '../../protocol/frame.js'
import type { BrokerWorld } from './broker-world.js'

/** What a peer sees at the end: an answer, or a close without a byte. */
export type Seen = IpcResponse | 'closed'

const PATIENCE_MS = 8_000
const MAXIMUM_FRAME_BYTES = 32 * 1024 * 1024

export function soonBootNs(milliseconds = PATIENCE_MS): bigint {
  return systemClock.bootNs() + BigInt(milliseconds) * 1_000_000n
}

export function connectRaw(world: BrokerWorld): Promise<number> {
  return connectUnix(world.socketPath, soonBootNs())
}

/** Reads one answer; an end, a reset or a torn frame without one is `closed`. The descriptor is closed. */
export async function seenOn(descriptor: number): Promise<Seen> {
  try {
    const limits = { maximumFrameBytes: MAXIMUM_FRAME_BYTES, deadlineBootNs: soonBootNs() }
    const body = await readFrame(descriptor, limits)
    return body === null ? 'closed' : decode(IpcResponse, body, 'answer')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ECONNRESET' || code === 'EPIPE') return 'closed'
    throw error
  } finally {
    closeDescriptor(descriptor)
  }
}

export async function write(descriptor: number, bytes: Uint8Array): Promise<void> {
  try {
    await writeFully(descriptor, bytes, soonBootNs())
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'EPIPE' && code !== 'ECONNRESET') throw error
  }
}

/** Writes raw bytes on a new connection, ends the writing side, and looks. */
export async function sayBytes(world: BrokerWorld, bytes: Uint8Array): Promise<Seen> {
  const descriptor = await connectRaw(world)
  await write(descriptor, bytes)
  try {
    shutdownWrite(descriptor)
  } catch {
    return seenOn(descriptor)
  }
  return seenOn(descriptor)
}

/** Asks with any envelope on a connection of its own. */
export async function ask(world: BrokerWorld, request: AuthenticatedIpcRequest): Promise<Seen> {
  const descriptor = await connectRaw(world)
  await write(descriptor, encodeFrame(encodeRequest(request)))
  return seenOn(descriptor)
}

/** A code for either kind of answer, to be compared with what the refusal table says. */
export function wordOf(seen: Seen): string {
  if (seen === 'closed') return 'the connection closes without a byte'
  if (seen.accepted) return 'accepted'
  if (seen.errorCode?.startsWith('chio.') === true) return `signed failure \`${seen.errorCode}\``
  return `\`accepted: false\`, \`${seen.errorCode}\``
}
