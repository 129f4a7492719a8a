/**
 * The one door to the addon. Arguments are checked here, so that C sees clean values; errors look like Node's
 * (code, errno, syscall). No policy: who may be a peer and what may be unlinked is decided by the callers.
 */
export { SOCKET_PATH_MAXIMUM_BYTES } from './arguments.js'
export { bootTimeNs } from './clock.js'
export {
  closeDescriptor,
  duplicateDescriptor,
  FULL_SEALS,
  lockFile,
  markCloseOnExecFrom,
  memfdSeals,
  openDirectory,
  openLockFile,
  pipe,
  readSealed,
  sealedMemfd,
  socketPair,
} from './descriptors.js'
export { nativePath, packageRoot } from './paths.js'
export type { NativeProgram } from './paths.js'
export { peerCredentials, peerGroups, peerPidfd, pidfdAlive, pidfdOpen, pidfdSignal } from './peer.js'
export type { PeerCredentials, PeerPidfd } from './peer.js'
export { forbidDebugger, forbidDumps } from './process.js'
export {
  DESCRIPTORS_PER_MESSAGE_MAXIMUM,
  hungUp,
  MESSAGE_MAXIMUM_BYTES,
  receiveDescriptors,
  sendDatagram,
  sendDescriptors,
  setPassCredentials,
  shutdownBoth,
  shutdownWrite,
  socketInfo,
} from './sockets.js'
export type { ExpectedDescriptors, ReceivedDescriptors, ReceivedMessage, SocketInfo } from './sockets.js'
export {
  awaitReadable,
  connectUnix,
  readExact,
  readFrame,
  readToEnd,
  receiveMessage,
  STREAM_MAXIMUM_BYTES,
  writeFully,
} from './stream.js'
export type { FrameLimits } from './stream.js'
