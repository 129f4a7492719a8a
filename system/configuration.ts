// The three documents that `init` writes: both daemons' configurations and the hosts' pins. Each daemon
// reads its own with its own strict schema; here only the values are chosen.
import {
  DEFAULT_CHECKPOINT_RECEIPT_COUNT,
  DEFAULT_IPC_DEADLINE_MS,
  MAXIMUM_REQUEST_FRAME_BYTES,
  MAXIMUM_RESPONSE_FRAME_BYTES,
} from '../protocol/limits.js'
import { areSeparate } from './identities.js'
import type { InstallationKeys, InstallationPlan } from './installation-plan.js'

const ADAPTER = { id: 'https', version: 1 }
const AUDIENCE = 'chio-broker'
const ADMINISTRATOR = 'administrator'
const CLOCK_SKEW_SECONDS = 5
const SNAPSHOT_AGE_SECONDS = 10
const AUTHORITY_TIMEOUT_MS = 2_000
const PROVIDER_TIMEOUT_CEILING_MS = 30_000
const TOKEN_LIFETIME_SECONDS = 300
const NONCE = { ttlSeconds: 30, capacity: 16_384 }

/** Subject that an administrator's approvals name. */
export const ADMINISTRATOR_SUBJECT = ADMINISTRATOR

function bytesOf(document: object): Uint8Array {
  return Buffer.from(`${JSON.stringify(document, null, 2)}\n`, 'utf8')
}

function administrators(keys: InstallationKeys) {
  return {
    subject: ADMINISTRATOR,
    threshold: 1,
    keys: [keys.administrator],
    maximumTokenLifetimeSeconds: TOKEN_LIFETIME_SECONDS,
  }
}

/** Clients with their caller keys; the administrator's uid is listed without one unless it is a client too. */
function clientEntries(plan: InstallationPlan, keys: InstallationKeys) {
  const entries = plan.clients.map(client => ({
    uid: client.uid,
    gids: client.gids,
    callerPublicKey: keys.callers.get(client.uid) ?? null,
  }))
  const { administrator } = plan
  if (entries.some(entry => entry.uid === administrator.uid)) return entries
  return [...entries, { uid: administrator.uid, gids: [administrator.gid], callerPublicKey: null }]
}

/** `chio.brokerd-config.v1`. The kernel is one of the broker's clients: it replays and releases. */
export function brokerConfiguration(plan: InstallationPlan, keys: InstallationKeys): Uint8Array {
  const { layout, identities } = plan
  const separate = areSeparate(identities)
  const clients = clientEntries(plan, keys)
  const kernel = { uid: identities.kernel.uid, gids: [identities.kernel.gid], callerPublicKey: null }
  return bytesOf({
    schema: 'chio.brokerd-config.v1',
    tenantScope: plan.tenantScope,
    audience: AUDIENCE,
    brokerIdentity: keys.receipt,
    stateDirectory: layout.broker.directory,
    socketPath: layout.broker.socket,
    socketGid: separate ? identities.broker.gid : null,
    clients: separate ? [...clients, kernel] : clients,
    authority: {
      socketPath: layout.kernel.authoritySocket,
      publicKey: keys.authority,
      uid: identities.kernel.uid,
      gid: separate ? identities.kernel.gid : null,
      timeoutMs: AUTHORITY_TIMEOUT_MS,
    },
    capabilityIssuer: keys.issuer,
    administrators: administrators(keys),
    adapter: ADAPTER,
    clockSkewSeconds: CLOCK_SKEW_SECONDS,
    livenessAgeSeconds: SNAPSHOT_AGE_SECONDS,
    revocationAgeSeconds: SNAPSHOT_AGE_SECONDS,
    readTimeoutMs: DEFAULT_IPC_DEADLINE_MS,
    writeTimeoutMs: DEFAULT_IPC_DEADLINE_MS,
    providerTimeoutCeilingMs: PROVIDER_TIMEOUT_CEILING_MS,
    requestFrameBytes: MAXIMUM_REQUEST_FRAME_BYTES,
    responseFrameBytes: MAXIMUM_RESPONSE_FRAME_BYTES,
    localProviders: plan.localProviders,
  })
}

/** `chio.kerneld-config.v1`. */
export function kernelConfiguration(plan: InstallationPlan, keys: InstallationKeys): Uint8Array {
  const { layout, identities } = plan
  return bytesOf({
    schema: 'chio.kerneld-config.v1',
    tenantScope: plan.tenantScope,
    audience: AUDIENCE,
    authorityId: 'chio-kernel',
    stateDirectory: layout.kernel.directory,
    hostSocketPath: layout.kernel.hostSocket,
    authoritySocketPath: layout.kernel.authoritySocket,
    socketGid: areSeparate(identities) ? identities.kernel.gid : null,
    clients: clientEntries(plan, keys),
    broker: {
      socketPath: layout.broker.socket,
      uid: identities.broker.uid,
      gid: identities.broker.gid,
      receiptKey: keys.receipt,
      adapter: ADAPTER,
    },
    administrators: administrators(keys),
    approvers: plan.approvers ?? [],
    nonce: NONCE,
    durableMode: 'side_effecting',
    unsafeDevelopment: false,
    outputGuards: null,
    checkpointReceipts: DEFAULT_CHECKPOINT_RECEIPT_COUNT,
    clockSkewSeconds: CLOCK_SKEW_SECONDS,
    onSharedArguments: 'warn',
    toolCalls: null,
    callerDelivery: null,
  })
}

/** `chio.host-pins.v1`. */
export function hostPins(plan: InstallationPlan, keys: InstallationKeys): Uint8Array {
  const { layout, identities } = plan
  const separate = areSeparate(identities)
  return bytesOf({
    schema: 'chio.host-pins.v1',
    brokerReceiptKey: keys.receipt,
    kernelKey: keys.kernel,
    tenantScope: plan.tenantScope,
    audience: AUDIENCE,
    adapter: ADAPTER,
    broker: {
      socketPath: layout.broker.socket,
      uid: identities.broker.uid,
      socketGid: separate ? identities.broker.gid : null,
    },
    kernel: {
      socketPath: layout.kernel.hostSocket,
      uid: identities.kernel.uid,
      socketGid: separate ? identities.kernel.gid : null,
    },
    requestFrameBytes: MAXIMUM_REQUEST_FRAME_BYTES,
    responseFrameBytes: MAXIMUM_RESPONSE_FRAME_BYTES,
  })
}
