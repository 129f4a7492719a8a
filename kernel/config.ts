// Owns: the kernel's configuration file: strict JSON, unknown members refused, every public key admitted.
// Must never: fill in a member that is missing, or repeat a value in a refusal.
// Source: the members of `chio.kerneld-config.v1`.
import { isAbsolute, resolve } from 'node:path'
import { z } from 'zod'
import { BrokerError, isBrokerError } from '../protocol/errors.js'
import { parseStrictJson } from '../protocol/json.js'
import { admitPublicKey, type PublicKey } from '../protocol/keys.js'
import {
  MAXIMUM_ADMINISTRATOR_TOKEN_LIFETIME_SECONDS,
  MAXIMUM_APPROVALS,
  MAXIMUM_CLOCK_SKEW_SECONDS,
  MAXIMUM_CONFIGURATION_BYTES,
  MAXIMUM_IDENTIFIER_BYTES,
  MAXIMUM_SOCKET_PATH_BYTES,
} from '../protocol/limits.js'
import { overflowUid } from '../system/peer.js'
import { readRetainedFile } from '../system/retained-file.js'

export const KERNELD_CONFIG_SCHEMA = 'chio.kerneld-config.v1'

/** Longest life of an execution nonce; the default of the wire is 30 s. */
const MAXIMUM_NONCE_TTL_SECONDS = 300
/** Most reservations at a time; the wire's default is 16,384. */
const MAXIMUM_NONCE_CAPACITY = 65_536
const MAXIMUM_CLIENTS = 1_024
const GROUP_OR_OTHERS_WRITE = 0o022

const id = z
  .string()
  .regex(/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/, 'expected visible text without outer spaces')
  .max(MAXIMUM_IDENTIFIER_BYTES)
const uid = z.int().min(0).max(0xffff_fffe)
/** The overflow uid is what every unmapped uid reads as: nobody in particular. */
const peerUid = uid.refine(
  value => value !== overflowUid(),
  'expected a uid of its own, not the overflow uid',
)
const gids = z.array(uid).min(1).max(64)
const absolutePath = z
  .string()
  .refine(path => isAbsolute(path) && resolve(path) === path, 'expected an absolute path in normal form')
const socketPath = absolutePath.refine(
  path => Buffer.byteLength(path) <= MAXIMUM_SOCKET_PATH_BYTES,
  `expected at most ${MAXIMUM_SOCKET_PATH_BYTES} bytes`,
)
const publicKey = z.string().transform((hex, context): PublicKey => {
  try {
    return admitPublicKey(hex, 'key')
  } catch (error) {
    context.addIssue({ code: 'custom', message: isBrokerError(error) ? error.message : 'expected a key' })
    return z.NEVER
  }
})

const client = z.strictObject({
  uid: peerUid,
  gids,
  /** Null: may inspect everything and administer under a signature, but reserves nothing. */
  callerPublicKey: publicKey.nullable(),
})

const broker = z.strictObject({
  socketPath,
  uid: peerUid,
  gid: uid,
  receiptKey: publicKey,
  adapter: z.strictObject({ id, version: z.int().min(1).max(0xffff_ffff) }),
})

const administrators = z
  .strictObject({
    subject: id,
    threshold: z.int().min(1).max(MAXIMUM_APPROVALS),
    keys: z.array(publicKey).min(1).max(MAXIMUM_APPROVALS),
    maximumTokenLifetimeSeconds: z.int().min(1).max(MAXIMUM_ADMINISTRATOR_TOKEN_LIFETIME_SECONDS),
  })
  .refine(policy => new Set(policy.keys).size === policy.keys.length, 'expected each key once')
  .refine(policy => policy.threshold <= policy.keys.length, 'expected a threshold of at most its keys')

const KernelConfigShape = z
  .strictObject({
    schema: z.literal(KERNELD_CONFIG_SCHEMA),
    tenantScope: id,
    audience: id,
    authorityId: id,
    stateDirectory: absolutePath,
    hostSocketPath: socketPath,
    authoritySocketPath: socketPath,
    socketGid: uid.nullable(),
    clients: z
      .array(client)
      .min(1)
      .max(MAXIMUM_CLIENTS)
      .refine(
        clients => new Set(clients.map(({ uid: id }) => id)).size === clients.length,
        'expected each uid once',
      ),
    broker,
    administrators,
    approvers: z.array(z.never(), 'expected an empty list: this kernel takes no approvals yet'),
    nonce: z.strictObject({
      ttlSeconds: z.int().min(1).max(MAXIMUM_NONCE_TTL_SECONDS),
      capacity: z.int().min(1).max(MAXIMUM_NONCE_CAPACITY),
    }),
    /** Every brokered operation has a side effect, so both modes make every one of them durable. */
    durableMode: z.enum(['side_effecting', 'all']),
    clockSkewSeconds: z.int().min(1).max(MAXIMUM_CLOCK_SKEW_SECONDS),
    callerDelivery: z.null('expected null: this kernel delivers to no executor yet'),
  })
  .refine(config => config.hostSocketPath !== config.authoritySocketPath, {
    path: ['authoritySocketPath'],
    message: 'expected a socket apart from the hosts',
  })

export type KernelConfig = z.infer<typeof KernelConfigShape>
export type KernelClientEntry = KernelConfig['clients'][number]

/** @throws BrokerError `invalid_configuration` naming every member that is wrong. */
export function parseKernelConfig(bytes: Uint8Array): KernelConfig {
  const parsed = KernelConfigShape.safeParse(parseStrictJson(bytes, 'kernel configuration'))
  if (parsed.success) return parsed.data
  const faults = parsed.error.issues.map(issue => `${issue.path.join('.') || 'document'}: ${issue.message}`)
  throw new BrokerError('invalid_configuration', `kernel configuration refused: ${faults.join('; ')}`)
}

/** Reads the file of the process's own uid, which nobody else may write. */
export function readKernelConfig(path: string): KernelConfig {
  const bytes = readRetainedFile(path, {
    maximumBytes: MAXIMUM_CONFIGURATION_BYTES,
    ownerUid: process.geteuid?.() ?? 0,
    forbiddenMode: GROUP_OR_OTHERS_WRITE,
  })
  return parseKernelConfig(bytes)
}
