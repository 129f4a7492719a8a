// Owns the kernels that tests make: a private folder with store and sockets, all keys, a caller, an administrator,
// and a broker key that signs records as the broker would. Nothing of it reads or touches an installation.
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { KernelClient } from '../../client/kernel-client.js'
import type { BrokerRecords } from '../../kernel/settling/broker-records.js'
import type { ToolCallSettings } from '../../kernel/calls/call-policy.js'
import { type KernelConfig, parseKernelConfig } from '../../kernel/config.js'
import type { OutputGuardSettings } from '../../kernel/output/output-guards.js'
import type { KernelEvent, KernelKeys } from '../../kernel/kernel-context.js'
import { provisionKernel, type RunningKernel, startKernel } from '../../kernel/start-kernel.js'
import { systemClock } from '../../native/clock.js'
import { signAdminRequest } from '../../protocol/administration.js'
import type { CallerExecutor } from '../../protocol/caller-authorization.js'
import type { Clock } from '../../protocol/clock.js'
import { encode } from '../../protocol/codec.js'
import { Grant } from '../../protocol/grant.js'
import { GrantReference } from '../../protocol/kernel-rpc.js'
import { type SigningKey, signingKey } from '../../protocol/keys.js'
import type { EligibleApprover } from '../../protocol/threshold-proposal.js'
import { temporaryFolder } from './temporary-folder.js'

export const TENANT = 'tenant-of-tests'
export const AUDIENCE = 'broker-of-tests'
const SUBJECT = 'administrator'

/** A broker that nobody reaches: what the kernel meets when it runs alone. */
export const UNREACHABLE: BrokerRecords = {
  isReachable: async () => false,
  replay: async () => 'unreachable',
  output: async () => 'unreachable',
  release: async () => 'unreachable',
  attemptStatus: async () => 'unreachable',
}

export interface TestKernelOptions {
  readonly clock?: Clock
  readonly records?: BrokerRecords
  readonly nonce?: { readonly ttlSeconds: number; readonly capacity: number }
  readonly atCutpoint?: (name: string) => void
  readonly approvers?: readonly EligibleApprover[]
  readonly durableMode?: 'all' | 'monetary' | 'off' | 'side_effecting'
  readonly onSharedArguments?: 'refuse' | 'warn'
  /** Null: this process is listed as an administrator without a caller key. */
  readonly callerPublicKey?: string | null
  /** The tools of its configuration; none unless said. */
  readonly configuredCalls?: KernelConfig['toolCalls']
  /** What it admits tool calls for; none unless said. */
  readonly toolCalls?: ToolCallSettings
  /** To whom tool calls are delivered; nobody unless said. */
  readonly callerExecutor?: CallerExecutor
  /** Uid that may ask the authority; this process unless said. */
  readonly brokerUid?: number
  /** Receipts between two checkpoints of the log; 100 unless said. */
  readonly checkpointReceipts?: number
  /** Guards over delivered outputs; none unless said. */
  readonly outputGuards?: OutputGuardSettings
}

export interface TestKernel {
  readonly folder: string
  readonly config: KernelConfig
  readonly keys: KernelKeys
  readonly caller: SigningKey
  readonly administrator: SigningKey
  readonly broker: SigningKey
  readonly events: KernelEvent[]
  readonly running: RunningKernel
  readonly client: KernelClient
  /** Stops the process's kernel and starts another on the same store. */
  restart(options?: TestKernelOptions): Promise<void>
  remove(): Promise<void>
}

export const seed = (): Uint8Array => new Uint8Array(randomBytes(32))

/** Keys and configuration of a kernel of this process's own uid; nothing is started. */
export function kernelConfig(
  folder: string,
  parts: TestKernelOptions & { broker: SigningKey; caller: SigningKey; administrator: SigningKey },
): KernelConfig {
  const uid = process.geteuid?.() ?? 0
  const gid = process.getegid?.() ?? 0
  const key = parts.callerPublicKey === undefined ? parts.caller.publicKey : parts.callerPublicKey
  const document = {
    schema: 'chio.kerneld-config.v1',
    tenantScope: TENANT,
    audience: AUDIENCE,
    authorityId: 'kernel-of-tests',
    stateDirectory: join(folder, 'state'),
    hostSocketPath: join(folder, 'host', 'sock'),
    authoritySocketPath: join(folder, 'authority', 'sock'),
    socketGid: null,
    clients: [{ uid, gids: [gid], callerPublicKey: key }],
    broker: {
      socketPath: join(folder, 'broker', 'sock'),
      uid: parts.brokerUid ?? uid,
      gid,
      receiptKey: parts.broker.publicKey,
      adapter: { id: 'https', version: 1 },
    },
    administrators: {
      subject: SUBJECT,
      threshold: 1,
      keys: [parts.administrator.publicKey],
      maximumTokenLifetimeSeconds: 600,
    },
    approvers: parts.approvers ?? [],
    nonce: parts.nonce ?? { ttlSeconds: 30, capacity: 16_384 },
    durableMode: parts.durableMode ?? 'side_effecting',
    unsafeDevelopment: parts.durableMode === 'off',
    checkpointReceipts: parts.checkpointReceipts ?? 100,
    outputGuards: parts.outputGuards ?? null,
    clockSkewSeconds: 5,
    onSharedArguments: parts.onSharedArguments ?? 'warn',
    toolCalls: parts.configuredCalls ?? null,
    callerDelivery: null,
  }
  return parseKernelConfig(Buffer.from(JSON.stringify(document)))
}

export function makeKernelFolder(): string {
  const folder = temporaryFolder('chio-kernel-')
  for (const part of ['state', 'host', 'authority', 'broker']) mkdirSync(join(folder, part), { mode: 0o700 })
  return folder
}

export function makeKernelKeys(): KernelKeys {
  return {
    kernel: signingKey(seed()),
    authority: signingKey(seed()),
    issuer: signingKey(seed()),
    storage: seed(),
  }
}

/** A provisioned kernel that serves. Remove it in the end. */
export async function makeTestKernel(options: TestKernelOptions = {}): Promise<TestKernel> {
  const folder = makeKernelFolder()
  const people = { caller: signingKey(seed()), administrator: signingKey(seed()), broker: signingKey(seed()) }
  const keys = makeKernelKeys()
  const events: KernelEvent[] = []
  const config = kernelConfig(folder, { ...people, ...options })
  await provisionKernel(config, systemClock)
  const start = (given: TestKernelOptions): Promise<RunningKernel> =>
    startKernel({
      clock: given.clock ?? systemClock,
      config: kernelConfig(folder, { ...people, ...given }),
      keys,
      log: event => events.push(event),
      records: given.records ?? UNREACHABLE,
      ...(given.atCutpoint && { atCutpoint: given.atCutpoint }),
      ...(given.toolCalls && { toolCalls: given.toolCalls }),
      ...(given.callerExecutor && { callerExecutor: given.callerExecutor }),
    })
  let running = await start(options)
  let client = clientOf(config)
  return {
    ...people,
    get client() {
      return client
    },
    config,
    events,
    folder,
    keys,
    get running() {
      return running
    },
    async restart(given = options) {
      client.close()
      await running.close()
      running = await start(given)
      client = clientOf(config)
    },
    async remove() {
      client.close()
      await running.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export function clientOf(config: KernelConfig): KernelClient {
  const pins = {
    socketPath: config.hostSocketPath,
    uid: process.geteuid?.() ?? 0,
    socketGid: null,
    tenantScope: TENANT,
  }
  return new KernelClient(pins, systemClock)
}

/** Signs as the administrator; the clock says when. */
export function approve(
  kernel: Pick<TestKernel, 'administrator'>,
  operation: string,
  payload: Uint8Array,
  clock: Clock = systemClock,
) {
  const statement = {
    subject: SUBJECT,
    requestId: randomUUID(),
    issuedAtUnixSeconds: Math.floor(clock.unixMs() / 1_000),
    lifetimeSeconds: 60,
  }
  return signAdminRequest({ operation, payload, tenantScope: TENANT }, statement, kernel.administrator)
}

/** A grant of the kernel's caller for one small POST; what differs is given. */
export function grantFor(
  kernel: Pick<TestKernel, 'caller'>,
  given: Partial<Grant> = {},
  clock: Clock = systemClock,
): Grant {
  const now = Math.floor(clock.unixMs() / 1_000)
  return {
    allowedCallerHeaders: ['content-type'],
    callerPublicKey: kernel.caller.publicKey,
    credential: { credentialId: 'issues', provider: 'tracker', version: 1 },
    destination: {
      exactPathAndQuery: '/issues',
      explicitPort: 443,
      method: 'POST',
      normalizedHost: 'provider.test',
      scheme: 'https',
    },
    expiresAtUnixSeconds: now + 3_600,
    grantId: `grant-${randomUUID()}`,
    issuedAtUnixSeconds: now,
    maximumBodyBytes: 65_536,
    maximumExecutions: 10,
    maximumResponseBytes: 65_536,
    maximumTimeoutMs: 10_000,
    placement: { kind: 'bearer_authorization' },
    requiredApprovals: 0,
    schema: 'chio.kernel-grant.v1',
    tenantScope: TENANT,
    ...given,
  }
}

export async function issueGrant(
  kernel: TestKernel,
  given: Partial<Grant> = {},
  clock: Clock = systemClock,
): Promise<Grant> {
  const grant = grantFor(kernel, given, clock)
  await kernel.client.call('issue_grant', grant, approve(kernel, 'issue_grant', encode(Grant, grant), clock))
  return grant
}

export async function revokeGrant(kernel: TestKernel, grantId: string, clock: Clock = systemClock) {
  const payload = encode(GrantReference, { grantId })
  return kernel.client.call('revoke_grant', { grantId }, approve(kernel, 'revoke_grant', payload, clock))
}
