/**
 * What a socket is, and descriptors that travel over it. Nothing here waits: what is not there yet is EAGAIN.
 * Every descriptor of a refused message is closed before the error is thrown.
 * Source: unix(7), cmsg(3), recvmsg(2), sendmsg(2).
 */
import { addon } from './addon.js'
import type { ReceivedDescriptors } from './addon.js'
import {
  requireAbstractName,
  requireBytes,
  requireDescriptor,
  requireDescriptors,
  requireInteger,
} from './arguments.js'

export type { ReceivedDescriptors, ReceivedMessage } from './addon.js'

/** SCM_MAX_FD of the kernel. */
export const DESCRIPTORS_PER_MESSAGE_MAXIMUM = 253

/** One message of our control sockets is far smaller; a larger payload belongs into a memfd. */
export const MESSAGE_MAXIMUM_BYTES = 1024 * 1024

/** A notification is a few lines; the kernel's own limit is the socket buffer. */
const DATAGRAM_MAXIMUM_BYTES = 64 * 1024

const DOMAINS: Record<number, string> = { 1: 'unix', 2: 'inet', 10: 'inet6', 16: 'netlink', 40: 'vsock' }
const TYPES: Record<number, string> = { 1: 'stream', 2: 'dgram', 3: 'raw', 5: 'seqpacket' }

export interface SocketInfo {
  /** 'unix', 'inet', 'inet6', 'netlink', 'vsock', otherwise 'family N' */
  readonly domain: string
  /** 'stream', 'dgram', 'raw', 'seqpacket', otherwise 'type N' */
  readonly type: string
  readonly listening: boolean
  readonly connected: boolean
  /** The socket's own name, else its peer's; null without one. An abstract name begins with a NUL. */
  readonly path: string | null
}

/** Throws code ENOTSOCK for what is no socket. */
export function socketInfo(fd: number): SocketInfo {
  requireDescriptor(fd)
  const raw = addon.socketInfo(fd)
  const domain = DOMAINS[raw.domain] ?? `family ${raw.domain}`
  return { ...raw, domain, type: TYPES[raw.type] ?? `type ${raw.type}` }
}

/** The peer closed both ways. A half-close is not it. */
export function hungUp(fd: number): boolean {
  requireDescriptor(fd)
  return addon.hungUp(fd)
}

export function setPassCredentials(fd: number, on: boolean): void {
  requireDescriptor(fd)
  if (typeof on !== 'boolean') throw new TypeError(`"on" expected a boolean, got ${String(on)}`)
  addon.setPassCredentials(fd, on)
}

/** Our copy can write no more; the peer sees end of stream, and can still answer. */
export function shutdownWrite(fd: number): void {
  requireDescriptor(fd)
  addon.shutdownSocket(fd, 1)
}

/** Ends both directions for every holder of this stream, and wakes every operation that waits on it. */
export function shutdownBoth(fd: number): void {
  requireDescriptor(fd)
  addon.shutdownSocket(fd, 2)
}

/**
 * Sends the whole payload with exactly these descriptors in one message, or throws: nothing was sent, except for
 * code EMSGSIZE on a stream (a part went out and the descriptors with it: the stream is spent).
 */
export function sendDescriptors(fd: number, payload: Uint8Array, descriptors: readonly number[]): void {
  requireDescriptor(fd)
  requireBytes(payload, 'payload')
  requireInteger(payload.length, 'payload.length', 1, MESSAGE_MAXIMUM_BYTES)
  requireDescriptors(descriptors, 'descriptors', DESCRIPTORS_PER_MESSAGE_MAXIMUM)
  addon.sendDescriptors(fd, payload, [...descriptors])
}

/**
 * Sends one datagram to an abstract Unix name (given without its NUL), at once or not at all. Codes: ECONNREFUSED
 * nobody there, EAGAIN its queue is full, EMSGSIZE.
 */
export function sendDatagram(abstractName: string, payload: Uint8Array): void {
  requireAbstractName(abstractName)
  requireBytes(payload, 'payload')
  requireInteger(payload.length, 'payload.length', 1, DATAGRAM_MAXIMUM_BYTES)
  addon.sendDatagram(abstractName, payload)
}

export interface ExpectedDescriptors {
  readonly maximumPayloadBytes: number
  /** Exactly this many. */
  readonly descriptors: number
}

/**
 * Receives one message that carries exactly the expected descriptors (close-on-exec). Codes: EAGAIN nothing there,
 * ECTRUNC a descriptor was not delivered, EMSGSIZE payload too long, EFEWFD missing, EMANYFD surplus, EFOREIGNCMSG
 * another control message.
 */
export function receiveDescriptors(fd: number, expected: ExpectedDescriptors): ReceivedDescriptors {
  requireDescriptor(fd)
  const { maximumPayloadBytes, descriptors } = expected
  requireInteger(maximumPayloadBytes, 'maximumPayloadBytes', 1, MESSAGE_MAXIMUM_BYTES)
  requireInteger(descriptors, 'descriptors', 0, DESCRIPTORS_PER_MESSAGE_MAXIMUM)
  return addon.receiveDescriptors(fd, maximumPayloadBytes, descriptors)
}
