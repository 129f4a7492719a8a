/**
 * Loads the compiled addon and types its raw functions. Only the files of native/ import this.
 * Raw functions take what the door has checked already; calling them with anything else is a fault of ours.
 */
import { createRequire } from 'node:module'
import { addonPath } from './paths.js'

export interface PeerCredentials {
  readonly pid: number
  readonly uid: number
  readonly gid: number
}

export interface PeerPidfd {
  readonly pidfd: number
  readonly source: 'so_peerpidfd' | 'pidfd_open'
}

export interface ReceivedMessage {
  readonly payload: Uint8Array
  readonly credentials: PeerCredentials | null
}

export interface ReceivedDescriptors extends ReceivedMessage {
  readonly descriptors: number[]
}

export interface RawSocketInfo {
  readonly domain: number
  readonly type: number
  readonly listening: boolean
  readonly connected: boolean
  readonly path: string | null
}

export interface Addon {
  bootTimeNs(): bigint
  forbidDumps(): void
  ignoreDebuggerSignal(): void
  markCloseOnExecFrom(first: number, except: number[]): void

  closeDescriptor(fd: number): void
  duplicateDescriptor(fd: number, minimum: number): number
  openDirectory(path: string): number
  socketPair(type: number): [number, number]
  pipe(): [number, number]
  shutdownSocket(fd: number, how: number): void

  peerCredentials(fd: number): PeerCredentials
  peerGroups(fd: number): number[]
  peerPidfd(fd: number): PeerPidfd
  pidfdOpen(pid: number): number
  pidfdAlive(pidfd: number): boolean
  pidfdSignal(pidfd: number, signal: number): void

  hungUp(fd: number): boolean
  socketInfo(fd: number): RawSocketInfo
  setPassCredentials(fd: number, on: boolean): void
  sendDatagram(abstractName: string, payload: Uint8Array): void
  sendDescriptors(fd: number, payload: Uint8Array, descriptors: number[]): void
  receiveDescriptors(fd: number, maximumPayloadBytes: number, descriptors: number): ReceivedDescriptors

  sealedMemfd(name: string, bytes: Uint8Array): number
  memfdSeals(fd: number): number
  readSealed(fd: number, minimumBytes: number, maximumBytes: number): Uint8Array
  openLockFile(path: string): number
  lockDescriptor(fd: number): void
  lockPath(path: string): number

  connectUnix(path: string, deadlineBootNs: bigint): Promise<number>
  writeFully(fd: number, bytes: Uint8Array, deadlineBootNs: bigint): Promise<void>
  readFrame(fd: number, maximumFrameBytes: number, deadlineBootNs: bigint): Promise<Uint8Array | null>
  readExact(fd: number, bytes: number, deadlineBootNs: bigint): Promise<Uint8Array>
  readToEnd(fd: number, maximumBytes: number, deadlineBootNs: bigint): Promise<Uint8Array>
  receiveMessage(fd: number, maximumBytes: number, deadlineBootNs: bigint): Promise<ReceivedMessage | null>
  awaitReadable(fd: number, deadlineBootNs: bigint): Promise<void>
}

function load(): Addon {
  const path = addonPath()
  try {
    return createRequire(import.meta.url)(path) as Addon
  } catch (cause) {
    throw new Error('native addon not loaded: expected the compiled parts of native/; run `npm run setup`', {
      cause,
    })
  }
}

export const addon = load()
