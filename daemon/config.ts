// Owns the broker's configuration: one strict JSON file whose every member is bounded and named when refused.
// Must never: fill in a default, follow a link, or admit a key that is weak. What is not written is not on.
// Source: the broker protocol's daemon configuration, section 16, as `chio.brokerd-config.v1`.
import { z } from 'zod'
import { BrokerError } from '../protocol/errors.js'
import { parseStrictJson } from '../protocol/json.js'
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
import { overflowUid } from '../system/peer.js'
import { readRetainedFile } from '../system/retained-file.js'
import { LocalProviders } from './provider/local-providers.js'

export const CONFIG_SCHEMA = 'chio.brokerd-config.v1'
const MAXIMUM_ID = 0xffff_fffe
const MAXIMUM_CLIENTS = 256
/** Below this not even a request without a body fits. */
const MINIMUM_FRAME_BYTES = 16_384

const whole = (minimum: number, maximum: number) => {
  const expected = { error: `a whole number from ${minimum} to ${maximum}` }
  return z.number(expected).int(expected).min(minimum, expected).max(maximum, expected)
}
const words = (maximumBytes: number) => {
  const expected = { error: `1 to ${maximumBytes} bytes of text without controls or outer spaces` }
  return z.string(expected).refine(value => isName(value, maximumBytes), expected)
}
const path = (maximumBytes: number) => {
  const expected = { error: `an absolute path of at most ${maximumBytes} bytes without . and ..` }
  return z.string(expected).refine(value => isPath(value, maximumBytes), expected)
}
// The brand holds once admitKeys has gone over every key by its name.
const key = () => z.string({ error: 'an ed25519 public key' }).transform(hex => hex as PublicKey)
const id = () => whole(0, MAXIMUM_ID)

const Client = z.strictObject({
  uid: id(),
  gids: z.array(id()).min(1, { error: 'one or more groups' }).max(64, { error: 'at most 64 groups' }),
  callerPublicKey: key().nullable(),
})

const Config = z.strictObject({
  schema: z.literal(CONFIG_SCHEMA, { error: CONFIG_SCHEMA }),
  tenantScope: words(MAXIMUM_IDENTIFIER_BYTES),
  audience: words(MAXIMUM_IDENTIFIER_BYTES),
  brokerIdentity: key(),
  stateDirectory: path(1_024),
  socketPath: path(MAXIMUM_SOCKET_PATH_BYTES),
  /** Null: both ends are one uid, and directory and socket are private to it. */
  socketGid: id().nullable(),
  clients: z
    .array(Client)
    .min(1, { error: 'one or more clients' })
    .max(MAXIMUM_CLIENTS, { error: `at most ${MAXIMUM_CLIENTS} clients` }),
  authority: z.strictObject({
    socketPath: path(MAXIMUM_SOCKET_PATH_BYTES),
    publicKey: key(),
    uid: id(),
    gid: id().nullable(),
    timeoutMs: whole(1, MAXIMUM_AUTHORITY_TIMEOUT_MS),
  }),
  capabilityIssuer: key(),
  administrators: z.strictObject({
    subject: words(MAXIMUM_IDENTIFIER_BYTES),
    threshold: whole(1, MAXIMUM_APPROVALS),
    keys: z
      .array(key())
      .min(1, { error: 'one or more keys' })
      .max(MAXIMUM_APPROVALS, { error: `at most ${MAXIMUM_APPROVALS} keys` }),
    maximumTokenLifetimeSeconds: whole(1, MAXIMUM_ADMINISTRATOR_TOKEN_LIFETIME_SECONDS),
  }),
  adapter: z.strictObject({ id: words(MAXIMUM_IDENTIFIER_BYTES), version: whole(1, 0xffff_ffff) }),
  clockSkewSeconds: whole(1, MAXIMUM_CLOCK_SKEW_SECONDS),
  livenessAgeSeconds: whole(1, MAXIMUM_SNAPSHOT_AGE_SECONDS),
  revocationAgeSeconds: whole(1, MAXIMUM_SNAPSHOT_AGE_SECONDS),
  readTimeoutMs: whole(1, MAXIMUM_IPC_DEADLINE_MS),
  writeTimeoutMs: whole(1, MAXIMUM_IPC_DEADLINE_MS),
  providerTimeoutCeilingMs: whole(1, MAXIMUM_TIMEOUT_MS),
  requestFrameBytes: whole(MINIMUM_FRAME_BYTES, MAXIMUM_REQUEST_FRAME_BYTES),
  responseFrameBytes: whole(MINIMUM_FRAME_BYTES, MAXIMUM_RESPONSE_FRAME_BYTES),
  localProviders: z
    .array(
      z.strictObject({
        host: words(253),
        port: whole(1, 65_535),
        address: words(45),
        caPem: z.string({ error: 'PEM certificates' }),
      }),
    )
    .max(16, { error: 'at most 16 entries' }),
})

export type BrokerdConfig = z.output<typeof Config>
export type BrokerdClient = BrokerdConfig['clients'][number]

/**
 * Reads the file under its custody: ours, one link, not writable by group or others.
 * @throws BrokerError `custody` or `invalid_configuration`.
 */
export function readConfig(file: string): BrokerdConfig {
  const ownerUid = process.geteuid?.() ?? 0
  const rules = { maximumBytes: MAXIMUM_CONFIGURATION_BYTES, ownerUid, forbiddenMode: 0o022 }
  return parseConfig(readFile(file, rules))
}

function readFile(file: string, rules: Parameters<typeof readRetainedFile>[1]): Uint8Array {
  try {
    return readRetainedFile(file, rules)
  } catch (cause) {
    if (cause instanceof BrokerError) throw cause
    const got = (cause as NodeJS.ErrnoException).code ?? 'a fault'
    throw new BrokerError(
      'invalid_configuration',
      `configuration file refused: expected a readable file, got ${got}`,
      {
        cause,
      },
    )
  }
}

/** @throws BrokerError `invalid_configuration` naming the first member that is refused. */
export function parseConfig(bytes: Uint8Array): BrokerdConfig {
  const result = Config.safeParse(parseDocument(bytes))
  if (!result.success) refuseIssue(result.error)
  const config = result.data
  admitKeys(config)
  checkTogether(config)
  return config
}

function parseDocument(bytes: Uint8Array): unknown {
  try {
    return parseStrictJson(bytes, 'configuration')
  } catch (cause) {
    const sentence =
      cause instanceof BrokerError ? cause.message : 'configuration refused: expected strict JSON'
    throw new BrokerError('invalid_configuration', sentence, { cause })
  }
}

function refuseIssue(error: z.ZodError): never {
  const issue = error.issues[0]
  const where = issue?.path.join('.') ?? ''
  if (issue?.code === 'unrecognized_keys') {
    refuse(
      where === '' ? 'file' : where,
      `no member ${issue.keys.map(name => JSON.stringify(name)).join(', ')}`,
    )
  }
  return refuse(where === '' ? 'file' : where, issue?.message ?? 'the documented shape')
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
    refuse('administrators.threshold', `at most the ${administrators.keys.length} keys given`)
  }
  if (new Set(administrators.keys).size !== administrators.keys.length) {
    refuse('administrators.keys', 'each key once')
  }
  if (authority.socketPath === config.socketPath)
    refuse('authority.socketPath', 'another path than socketPath')
  const unmapped = clients.findIndex(client => client.uid === overflowUid())
  if (unmapped !== -1) refuse(`clients.${unmapped}.uid`, 'a uid of its own, not the overflow uid')
  if (authority.uid === overflowUid()) refuse('authority.uid', 'a uid of its own, not the overflow uid')
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
