// Owns: the kernel's configuration file: strict JSON, unknown members refused, every public key admitted.
// Must never: fill in a member that is missing, or repeat a value in a refusal.
// Source: the members of `chio.kerneld-config.v1`.
import { isAbsolute, resolve } from 'node:path'
import { BrokerError, isBrokerError } from '../protocol/errors.js'
import { parseConfigurationJson } from '../protocol/json.js'
import {
  MAXIMUM_ADMINISTRATOR_TOKEN_LIFETIME_SECONDS,
  MAXIMUM_APPROVAL_IDENTIFIER_BYTES,
  MAXIMUM_APPROVALS,
  MAXIMUM_CHECKPOINT_RECEIPT_COUNT,
  MAXIMUM_CLOCK_SKEW_SECONDS,
  MAXIMUM_CONFIGURATION_BYTES,
  MAXIMUM_INTEGER,
  MAXIMUM_REQUEST_FRAME_BYTES,
  MAXIMUM_RESPONSE_BYTES,
  MAXIMUM_RESPONSE_FRAME_BYTES,
  MAXIMUM_SOCKET_PATH_BYTES,
} from '../protocol/limits.js'
import {
  also,
  either,
  exactly,
  list,
  nullable,
  readShape,
  type Shaped,
  text,
  whole,
  word,
} from '../protocol/shape.js'
import { toolCalls } from './calls/call-config.js'
import { atMost, id, jsonSchema, publicKey, yesOrNo } from './config-values.js'
import { assertOwnStore } from '../system/own-state.js'
import { overflowUid } from '../system/peer.js'
import { readRetainedFile } from '../system/retained-file.js'

/** The store in the state directory. */
export const KERNEL_STORE_FILE = 'kernel.db'
export const KERNELD_CONFIG_SCHEMA = 'chio.kerneld-config.v1'

/** Longest life of an execution nonce; the default of the wire is 30 s. */
const MAXIMUM_NONCE_TTL_SECONDS = 300
/** Most reservations at a time; the wire's default is 16,384. */
const MAXIMUM_NONCE_CAPACITY = 65_536
const MAXIMUM_CLIENTS = 1_024
const MAXIMUM_PORT = 65_535
const GROUP_OR_OTHERS_WRITE = 0o022

const uid = whole(0, 0xffff_fffe)
/** The overflow uid is what every unmapped uid reads as: nobody in particular. */
const peerUid = also(uid, value => value !== overflowUid(), {
  expected: 'a uid of its own, not the overflow uid',
})
const gids = list(uid, { min: 1, max: 64, expected: '1 to 64 groups' })
const absolutePath = text(
  path => isAbsolute(path) && resolve(path) === path,
  'an absolute path in normal form',
)
const socketPath = also(absolutePath, path => Buffer.byteLength(path) <= MAXIMUM_SOCKET_PATH_BYTES, {
  expected: `at most ${MAXIMUM_SOCKET_PATH_BYTES} bytes`,
})
const client = exactly({
  uid: peerUid,
  gids,
  /** Null: may inspect everything and administer under a signature, but reserves nothing. */
  callerPublicKey: nullable(publicKey),
})
const clients = also(
  list(client, atMost('clients', MAXIMUM_CLIENTS)),
  given => new Set(given.map(({ uid: number }) => number)).size === given.length,
  { expected: 'each uid once' },
)

const broker = exactly({
  socketPath,
  uid: peerUid,
  gid: uid,
  receiptKey: publicKey,
  adapter: exactly({ id, version: whole(1, 0xffff_ffff) }),
})

const policy = exactly({
  subject: id,
  threshold: whole(1, MAXIMUM_APPROVALS),
  keys: list(publicKey, atMost('keys', MAXIMUM_APPROVALS)),
  maximumTokenLifetimeSeconds: whole(1, MAXIMUM_ADMINISTRATOR_TOKEN_LIFETIME_SECONDS),
})
const administrators = also(
  also(policy, ({ keys }) => new Set(keys).size === keys.length, { expected: 'each key once' }),
  ({ keys, threshold }) => threshold <= keys.length,
  { expected: 'a threshold of at most its keys' },
)

/** Whose word counts for grants that need approvals; the ids are for people. */
const approverId = also(id, given => given.length <= MAXIMUM_APPROVAL_IDENTIFIER_BYTES, {
  expected: `at most ${MAXIMUM_APPROVAL_IDENTIFIER_BYTES} characters`,
})
const approver = exactly({ approverId, publicKey })
const approvers = also(
  also(
    list(approver, { max: MAXIMUM_APPROVALS, expected: `approvers, at most ${MAXIMUM_APPROVALS}` }),
    given => new Set(given.map(({ publicKey: key }) => key)).size === given.length,
    { expected: 'each approver key once' },
  ),
  given => new Set(given.map(each => each.approverId)).size === given.length,
  { expected: 'each approver id once' },
)

const outputGuards = exactly({
  maximumBodyBytes: nullable(whole(1, MAXIMUM_RESPONSE_BYTES)),
  secretScan: yesOrNo,
  jsonSchema,
})

const loopback = exactly({ host: word('127.0.0.1', '::1'), port: whole(1, MAXIMUM_PORT) })
/** A socket of this user alone, or a port of the loopback interface. */
const sidecarAddress = either('path', exactly({ path: socketPath }), loopback)

/** To whom tool calls are delivered; null delivers nothing. */
const callerDelivery = exactly({
  /** Read by whoever serves the caller routes; null: nobody starts or reports over them. */
  controlTokenFile: nullable(absolutePath),
  executor: exactly({ executorId: id, publicKey, keyEpoch: whole(1, MAXIMUM_INTEGER) }),
  /** Where the caller routes are served; null: nowhere, the kernel's own socket has the same calls. */
  listen: nullable(sidecarAddress),
})

const members = exactly({
  schema: word(KERNELD_CONFIG_SCHEMA),
  tenantScope: id,
  audience: id,
  authorityId: id,
  stateDirectory: absolutePath,
  hostSocketPath: socketPath,
  authoritySocketPath: socketPath,
  socketGid: nullable(uid),
  clients,
  broker,
  administrators,
  approvers,
  nonce: exactly({
    ttlSeconds: whole(1, MAXIMUM_NONCE_TTL_SECONDS),
    capacity: whole(1, MAXIMUM_NONCE_CAPACITY),
  }),
  /** From which effect on admission has to be durable. Every commit is on disk before its answer, but where it is `off`. */
  durableMode: word('side_effecting', 'all', 'monetary', 'off'),
  /** Gives up, in so many words, what nobody may give up elsewhere. */
  unsafeDevelopment: yesOrNo,
  clockSkewSeconds: whole(1, MAXIMUM_CLOCK_SKEW_SECONDS),
  /** What is looked for in what providers deliver; null judges nothing. */
  outputGuards: nullable(outputGuards),
  /** After so many receipts their log gets a checkpoint. */
  checkpointReceipts: whole(1, MAXIMUM_CHECKPOINT_RECEIPT_COUNT),
  /** Starting what has the same arguments as an operation whose effect is not known yet. */
  onSharedArguments: word('warn', 'refuse'),
  /** Which tools agents may call; null knows none. */
  toolCalls: nullable(toolCalls),
  callerDelivery: nullable(callerDelivery),
})
type Members = Shaped<typeof members>

const socketsOf = ({ authoritySocketPath, broker: pinned, hostSocketPath }: Members): string[] => [
  authoritySocketPath,
  hostSocketPath,
  pinned.socketPath,
]
const listenPathOf = ({ callerDelivery: given }: Members): string | null =>
  given?.listen != null && 'path' in given.listen ? given.listen.path : null

const isMonetary = ({ toolCalls: given }: Members): boolean =>
  given?.tools.some(({ effectClass }) => effectClass === 'monetary') === true

/** What costs money is durable, or is not served. */
const durable = also(
  also(members, given => given.durableMode !== 'off' || !isMonetary(given), {
    at: 'durableMode',
    expected: 'another than `off`, which cannot keep the monetary tools of `toolCalls`',
  }),
  given => given.durableMode !== 'monetary' || isMonetary(given),
  {
    at: 'durableMode',
    expected: '`monetary` only beside a monetary tool in `toolCalls`: it would promise nothing',
  },
)
/** A call of such a tool could never be answered. */
const approvable = also(
  durable,
  given => given.toolCalls?.tools.every(tool => tool.requiredApprovals <= given.approvers.length) ?? true,
  { at: 'toolCalls.tools', expected: 'each `requiredApprovals` to be at most the number of `approvers`' },
)
/** Two listeners would take the path from each other. */
const apart = also(approvable, given => !socketsOf(given).includes(listenPathOf(given) ?? ''), {
  at: 'callerDelivery.listen.path',
  expected: 'a socket apart from those of the kernel and the broker',
})
const KernelConfigShape = also(
  also(apart, ({ durableMode, unsafeDevelopment }) => durableMode !== 'off' || unsafeDevelopment, {
    at: 'durableMode',
    expected: '`off` only beside `"unsafeDevelopment": true`',
  }),
  ({ authoritySocketPath, hostSocketPath }) => hostSocketPath !== authoritySocketPath,
  { at: 'authoritySocketPath', expected: 'a socket apart from the hosts' },
)

export type KernelConfig = Shaped<typeof KernelConfigShape>
export type KernelClientEntry = KernelConfig['clients'][number]

/** @throws BrokerError `invalid_configuration` naming every member that is wrong. */
export function parseKernelConfig(bytes: Uint8Array): KernelConfig {
  const read = readShape(KernelConfigShape, parseConfigurationJson(bytes, 'kernel configuration'))
  if ('value' in read) return read.value
  const faults = read.faults.map(({ expected, place }) => `${place || 'document'}: expected ${expected}`)
  throw new BrokerError('invalid_configuration', `kernel configuration refused: ${faults.join('; ')}`)
}

/** Reads the file of the process's own uid, which nobody else may write. @throws BrokerError also `state_elsewhere`. */
export function readKernelConfig(path: string): KernelConfig {
  return ownKernelConfig(path, parseKernelConfig(readFile(path)))
}

function readFile(path: string): Uint8Array {
  try {
    return readRetainedFile(path, {
      maximumBytes: MAXIMUM_CONFIGURATION_BYTES,
      ownerUid: process.geteuid?.() ?? 0,
      forbiddenMode: GROUP_OR_OTHERS_WRITE,
    })
  } catch (cause) {
    if (isBrokerError(cause)) throw cause
    const got = (cause as NodeJS.ErrnoException).code ?? 'a fault'
    const sentence = `configuration file ${path} refused: expected a readable file, got ${got}`
    throw new BrokerError('invalid_configuration', sentence, { cause })
  }
}

/** The configuration itself. @throws BrokerError `state_elsewhere` when it is that of another installation. */
export function ownKernelConfig(path: string, config: KernelConfig): KernelConfig {
  const { stateDirectory } = config
  const socketPaths = [...socketsOf(config), listenPathOf(config) ?? []].flat()
  assertOwnStore(path, KERNEL_STORE_FILE, { stateDirectory, socketPaths })
  return config
}

/** The broker as its client pins it: the kernel's own sockets say whether both are one uid. */
export function brokerPins({ broker, socketGid, tenantScope }: KernelConfig) {
  return {
    socketPath: broker.socketPath,
    uid: broker.uid,
    socketGid: socketGid === null ? null : broker.gid,
    receiptKey: broker.receiptKey,
    tenantScope,
    requestFrameBytes: MAXIMUM_REQUEST_FRAME_BYTES,
    responseFrameBytes: MAXIMUM_RESPONSE_FRAME_BYTES,
  }
}
