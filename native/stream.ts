/**
 * Framed input and output on a blocking descriptor, each operation in a thread of the addon, under one absolute
 * deadline on CLOCK_BOOTTIME. Leaves O_NONBLOCK and timeouts of the shared description alone, reads no byte beyond
 * what was asked, and holds the descriptor only while the operation runs.
 * Codes: ETIMEDOUT deadline, ECANCELED our descriptor was closed, ETRUNC the stream ended inside, EMSGSIZE too long.
 */
import { addon } from './addon.js'
import type { ReceivedMessage } from './addon.js'
import {
  requireBytes,
  requireDeadline,
  requireDescriptor,
  requireInteger,
  requireSocketPath,
} from './arguments.js'
import { MESSAGE_MAXIMUM_BYTES } from './sockets.js'

/** Twice the largest frame of the wire: a slip in a caller's limit cannot ask for gigabytes. */
export const STREAM_MAXIMUM_BYTES = 64 * 1024 * 1024

export interface FrameLimits {
  /** Longest body, the four length bytes not counted. */
  readonly maximumFrameBytes: number
  readonly deadlineBootNs: bigint
}

/** A connected, blocking, close-on-exec stream without timeout options. A full backlog is waited for. */
export async function connectUnix(path: string, deadlineBootNs: bigint): Promise<number> {
  requireSocketPath(path)
  requireDeadline(deadlineBootNs)
  return addon.connectUnix(path, deadlineBootNs)
}

export async function writeFully(fd: number, bytes: Uint8Array, deadlineBootNs: bigint): Promise<void> {
  requireDescriptor(fd)
  requireBytes(bytes, 'bytes')
  requireInteger(bytes.length, 'bytes.length', 0, STREAM_MAXIMUM_BYTES)
  requireDeadline(deadlineBootNs)
  return addon.writeFully(fd, bytes, deadlineBootNs)
}

/** One body behind its four-byte big-endian length; null when the stream ended before the first byte. */
export async function readFrame(fd: number, limits: FrameLimits): Promise<Uint8Array | null> {
  requireDescriptor(fd)
  requireInteger(limits.maximumFrameBytes, 'maximumFrameBytes', 1, STREAM_MAXIMUM_BYTES)
  requireDeadline(limits.deadlineBootNs)
  return addon.readFrame(fd, limits.maximumFrameBytes, limits.deadlineBootNs)
}

export async function readExact(fd: number, byteCount: number, deadlineBootNs: bigint): Promise<Uint8Array> {
  requireDescriptor(fd)
  requireInteger(byteCount, 'byteCount', 1, STREAM_MAXIMUM_BYTES)
  requireDeadline(deadlineBootNs)
  return addon.readExact(fd, byteCount, deadlineBootNs)
}

/** Everything up to the end of the stream; one byte more than the maximum is EMSGSIZE. */
export async function readToEnd(
  fd: number,
  maximumBytes: number,
  deadlineBootNs: bigint,
): Promise<Uint8Array> {
  requireDescriptor(fd)
  requireInteger(maximumBytes, 'maximumBytes', 1, STREAM_MAXIMUM_BYTES)
  requireDeadline(deadlineBootNs)
  return addon.readToEnd(fd, maximumBytes, deadlineBootNs)
}

/** One message of a seqpacket socket, with its sender's credentials when SO_PASSCRED is on; null at its end. */
export async function receiveMessage(
  fd: number,
  deadlineBootNs: bigint,
  maximumBytes: number,
): Promise<ReceivedMessage | null> {
  requireDescriptor(fd)
  requireDeadline(deadlineBootNs)
  requireInteger(maximumBytes, 'maximumBytes', 1, MESSAGE_MAXIMUM_BYTES)
  return addon.receiveMessage(fd, maximumBytes, deadlineBootNs)
}

/** Settles when a read would not wait: data, end of stream, or for a pidfd the end of its process. */
export async function awaitReadable(fd: number, deadlineBootNs: bigint): Promise<void> {
  requireDescriptor(fd)
  requireDeadline(deadlineBootNs)
  return addon.awaitReadable(fd, deadlineBootNs)
}
