/**
 * Descriptors that are made, duplicated, closed, locked or marked. All that is made here is close-on-exec.
 * Never unlinks and never decides custody: policy stays with the callers.
 * Source: close(2), fcntl(2), flock(2), close_range(2), memfd_create(2).
 */
import { addon } from './addon.js'
import {
  requireBytes,
  requireDescriptor,
  requireDescriptors,
  requireInteger,
  requireMemfdName,
  requirePath,
} from './arguments.js'

/** socket(7) on every Linux architecture that we serve. */
const SOCKET_TYPES = { stream: 1, seqpacket: 5 } as const

/** A memfd that we read or make stays below the largest frame. */
const SEALED_MAXIMUM_BYTES = 64 * 1024 * 1024

/** SEAL | SHRINK | GROW | WRITE: nothing of the content can change any more (fcntl(2)). */
export const FULL_SEALS = 0x0f

export function closeDescriptor(fd: number): void {
  requireDescriptor(fd)
  addon.closeDescriptor(fd)
}

/** The lowest free descriptor at or above `minimum`, close-on-exec. */
export function duplicateDescriptor(fd: number, minimum: number): number {
  requireDescriptor(fd)
  requireDescriptor(minimum, 'minimum')
  return addon.duplicateDescriptor(fd, minimum)
}

export function openDirectory(path: string): number {
  requirePath(path)
  return addon.openDirectory(path)
}

export function socketPair(type: keyof typeof SOCKET_TYPES): [number, number] {
  const number = SOCKET_TYPES[type]
  if (number === undefined)
    throw new RangeError(`"type" expected 'stream' or 'seqpacket', got ${String(type)}`)
  return addon.socketPair(number)
}

/** [read end, write end] */
export function pipe(): [number, number] {
  return addon.pipe()
}

/** Marks every descriptor from `first` on close-on-exec, those in `except` aside. Closes nothing. */
export function markCloseOnExecFrom(first: number, except: readonly number[]): void {
  requireDescriptor(first, 'first')
  requireDescriptors(except, 'except', 1024)
  const sorted = [...new Set(except)].filter(fd => fd >= first).sort((a, b) => a - b)
  addon.markCloseOnExecFrom(first, sorted)
}

/** A memfd with these bytes, sealed against every change. */
export function sealedMemfd(name: string, bytes: Uint8Array): number {
  requireMemfdName(name)
  requireBytes(bytes, 'bytes')
  requireInteger(bytes.length, 'bytes.length', 0, SEALED_MAXIMUM_BYTES)
  return addon.sealedMemfd(name, bytes)
}

export function memfdSeals(fd: number): number {
  requireDescriptor(fd)
  return addon.memfdSeals(fd)
}

/** Reads a memfd from its start, only if it is fully sealed; the shared file offset does not move. */
export function readSealed(fd: number, size: { exactBytes: number } | { maximumBytes: number }): Uint8Array {
  requireDescriptor(fd)
  const [minimum, maximum] =
    'exactBytes' in size ? [size.exactBytes, size.exactBytes] : [0, size.maximumBytes]
  requireInteger(maximum, 'size', 0, SEALED_MAXIMUM_BYTES)
  return addon.readSealed(fd, minimum, maximum)
}

/**
 * Opens a lock file: made 0600 when missing, never through a link; a regular file of ours with one link.
 * It is not locked yet.
 */
export function openLockFile(path: string): number {
  requirePath(path)
  return addon.openLockFile(path)
}

/**
 * Takes the exclusive lock at once or throws code EWOULDBLOCK. A path is opened with openLockFile first and is
 * looked at again under the lock (ESTALE when it was replaced meanwhile); a descriptor may also be a directory.
 * The lock lives as long as the returned descriptor.
 */
export function lockFile(target: string | number): number {
  if (typeof target === 'number') {
    requireDescriptor(target, 'target')
    addon.lockDescriptor(target)
    return target
  }
  requirePath(target, 'target')
  return addon.lockPath(target)
}
