// Owns the broker's configuration: one strict JSON file whose every member is bounded and named when refused.
// Must never: fill in a default, follow a link, or admit a key that is weak. What is not written is not on.
// Source: the broker protocol's daemon configuration, section 16, as `chio.brokerd-config.v1`.
import { BrokerError } from '../protocol/errors.js'
import { parseConfigurationJson } from '../protocol/json.js'
import { admitPublicKey, type PublicKey } from '../protocol/keys.js'
import {
  MAXIMUM_ADMINISTRATOR_TOKEN_LIFETIME_SECONDS,
  MAXIMUM_APPROVALS,
  MAXIMUM_AUTHORITY_TIMEOUT_MS,
  MAXIMUM_CLOCK_SKEW_SECONDS,
  MAXIMUM_CONFIGURATION_BYTES,
  MAXIMUM_IDENTIFIER_BYTES,
  MAXIMUM_IPC_DEADLINE_MS,
  MAXIMUM_REQUEST_FRAME_BYTES,
  MAXIMUM_RESPONSE_FRAME_BYTES,
  MAXIMUM_SNAPSHOT_AGE_SECONDS,
  MAXIMUM_SOCKET_PATH_BYTES,
  MAXIMUM_TIMEOUT_MS,
} from '../protocol/limits.js'
import {
  exactly,
  type Fault,
  list,
  nullable,
  readShape,
  type Shape,
  type Shaped,
  text,
  whole,
  word,
} from '../protocol/shape.js'
import { assertOwnStore } from '../system/own-state.js'
import { overflowUid } from '../system/peer.js'
import { readRetainedFile } from '../system/retained-file.js'
import { LocalProviders } from './provider/local-providers.js'

/** The store in the state directory. */
export const BROKER_STORE_FILE = 'broker.db'
export const CONFIG_SCHEMA = 'chio.brokerd-config.v1'
const MAXIMUM_ID = 0xffff_fffe
const MAXIMUM_CLIENTS = 256
/** Below this not even a request without a body fits. */
const MINIMUM_FRAME_BYTES = 16_384

const words = (maximumBytes: number) =>
  text(
    value => isName(value, maximumBytes),
    `1 to ${maximumBytes} bytes of text without controls or outer spaces`,
  )
const path = (maximumBytes: number) =>
  text(
    value => isPath(value, maximumBytes),
    `an absolute path of at most ${maximumBytes} bytes without . and ..`,
  )
// The brand holds once admitKeys has gone over every key by its name.
const key = () => text(() => true, 'an ed25519 public key') as Shape<PublicKey>
const id = () => whole(0, MAXIMUM_ID)
const some = (what: string, max: number) => ({ min: 1, max, expected: `one or more ${what}, at most ${max}` })

const Client = exactly({
  uid: id(),
  gids: list(id(), some('groups', 64)),
  callerPublicKey: nullable(key()),
})

const Config = exactly({
  schema: word(CONFIG_SCHEMA),
  tenantScope: words(MAXIMUM_IDENTIFIER_BYTES),
  audience: words(MAXIMUM_IDENTIFIER_BYTES),
  brokerIdentity: key(),
  stateDirectory: path(1_024),
  socketPath: path(MAXIMUM_SOCKET_PATH_BYTES),
  /** Null: both ends are one uid, and directory and socket are private to it. */
  socketGid: nullable(id()),
  clients: list(Client, some('clients', MAXIMUM_CLIENTS)),
  authority: exactly({
    socketPath: path(MAXIMUM_SOCKET_PATH_BYTES),
    publicKey: key(),
    uid: id(),
    gid: nullable(id()),
    timeoutMs: whole(1, MAXIMUM_AUTHORITY_TIMEOUT_MS),
  }),
  capabilityIssuer: key(),
  administrators: exactly({
    subject: words(MAXIMUM_IDENTIFIER_BYTES),
    threshold: whole(1, MAXIMUM_APPROVALS),
    keys: list(key(), some('keys', MAXIMUM_APPROVALS)),
    maximumTokenLifetimeSeconds: whole(1, MAXIMUM_ADMINISTRATOR_TOKEN_LIFETIME_SECONDS),
  }),
  adapter: exactly({ id: words(MAXIMUM_IDENTIFIER_BYTES), version: whole(1, 0xffff_ffff) }),
  clockSkewSeconds: whole(1, MAXIMUM_CLOCK_SKEW_SECONDS),
  livenessAgeSeconds: whole(1, MAXIMUM_SNAPSHOT_AGE_SECONDS),
  revocationAgeSeconds: whole(1, MAXIMUM_SNAPSHOT_AGE_SECONDS),
  readTimeoutMs: whole(1, MAXIMUM_IPC_DEADLINE_MS),
  writeTimeoutMs: whole(1, MAXIMUM_IPC_DEADLINE_MS),
  providerTimeoutCeilingMs: whole(1, MAXIMUM_TIMEOUT_MS),
  requestFrameBytes: whole(MINIMUM_FRAME_BYTES, MAXIMUM_REQUEST_FRAME_BYTES),
  responseFrameBytes: whole(MINIMUM_FRAME_BYTES, MAXIMUM_RESPONSE_FRAME_BYTES),
  localProviders: list(
    exactly({
      host: words(253),
      port: whole(1, 65_535),
      address: words(45),
      caPem: text(() => true, 'PEM certificates'),
    }),
    { max: 16, expected: 'at most 16 entries' },
  ),
})

export type BrokerdConfig = Shaped<typeof Config>
export type BrokerdClient = BrokerdConfig['clients'][number]

/**
 * Reads the file under its custody: ours, one link, not writable by group or others.
 * @throws BrokerError `custody`, `invalid_configuration` or `state_elsewhere`.
 */
export function readConfig(file: string): BrokerdConfig {
  const ownerUid = process.geteuid?.() ?? 0
  const rules = { maximumBytes: MAXIMUM_CONFIGURATION_BYTES, ownerUid, forbiddenMode: 0o022 }
  return ownConfig(file, parseConfig(readFile(file, rules)))
}

/** The configuration itself. @throws BrokerError `state_elsewhere` when it is that of another installation. */
export function ownConfig(file: string, config: BrokerdConfig): BrokerdConfig {
  const { authority, socketPath, stateDirectory } = config
  const socketPaths = [socketPath, authority.socketPath]
  assertOwnStore(file, BROKER_STORE_FILE, { stateDirectory, socketPaths })
  return config
}

function readFile(file: string, rules: Parameters<typeof readRetainedFile>[1]): Uint8Array {
  try {
    return readRetainedFile(file, rules)
  } catch (cause) {
    if (cause instanceof BrokerError) throw cause
    const got = (cause as NodeJS.ErrnoException).code ?? 'a fault'
    throw new BrokerError(
      'invalid_configuration',
      `configuration file ${file} refused: expected a readable file, got ${got}`,
      {
        cause,
      },
    )
  }
}

/** @throws BrokerError `invalid_configuration` naming the first member that is refused. */
export function parseConfig(bytes: Uint8Array): BrokerdConfig {
  const read = readShape(Config, parseConfigurationJson(bytes, 'configuration'))
  if ('faults' in read) return refuseFirst(read.faults)
  const config = read.value
  admitKeys(config)
  checkTogether(config)
  return config
}

function refuseFirst([fault]: readonly Fault[]): never {
  const { expected, place } = fault ?? { expected: 'the documented shape', place: '' }
  return refuse(place === '' ? 'file' : place, expected)
}

function admitKeys(config: BrokerdConfig): void {
  const keys: [name: string, hex: string][] = [
    ['brokerIdentity', config.brokerIdentity],
    ['authority.publicKey', config.authority.publicKey],
    ['capabilityIssuer', config.capabilityIssuer],
    ...config.administrators.keys.map((hex, at): [string, string] => [`administrators.keys.${at}`, hex]),
  ]
  config.clients.forEach((client, at) => {
    if (client.callerPublicKey !== null) keys.push([`clients.${at}.callerPublicKey`, client.callerPublicKey])
  })
  for (const [name, hex] of keys) admitKey(name, hex)
}

function admitKey(name: string, hex: string): void {
  try {
    admitPublicKey(hex, `configuration ${name}`)
  } catch (cause) {
    const sentence = cause instanceof Error ? cause.message : `configuration ${name} refused`
    throw new BrokerError('invalid_configuration', sentence, { cause })
  }
}

/** What no member can say alone. */
function checkTogether(config: BrokerdConfig): void {
  const { administrators, authority, clients } = config
  if (administrators.threshold > administrators.keys.length) {
    refuse(
      'administrators.threshold',
      `at most the ${administrators.keys.length} keys given, got ${administrators.threshold}`,
    )
  }
  if (new Set(administrators.keys).size !== administrators.keys.length) {
    refuse('administrators.keys', 'each key once, got one twice')
  }
  if (authority.socketPath === config.socketPath)
    refuse('authority.socketPath', 'another path than socketPath, got the same')
  const unmapped = clients.findIndex(client => client.uid === overflowUid())
  if (unmapped !== -1) refuse(`clients.${unmapped}.uid`, 'a uid of its own, got the overflow uid')
  if (authority.uid === overflowUid()) refuse('authority.uid', 'a uid of its own, got the overflow uid')
  new LocalProviders(config.localProviders)
}

function refuse(member: string, expected: string): never {
  throw new BrokerError('invalid_configuration', `configuration ${member} refused: expected ${expected}`)
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is refused
const UNFIT_NAME = /^\s|\s$|[\u0000-\u001f\u007f]/u

function isName(value: string, maximumBytes: number): boolean {
  return value.length > 0 && Buffer.byteLength(value) <= maximumBytes && !UNFIT_NAME.test(value)
}

function isPath(value: string, maximumBytes: number): boolean {
  const isNormal = value.split('/').every(part => part !== '.' && part !== '..')
  return value.startsWith('/') && isNormal && isName(value, maximumBytes)
}
