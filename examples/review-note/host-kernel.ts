// Owns the kernel that the host embeds for one command: over the example's own store, under its lease, with its own keys,
// its executor pinned before anything is recovered, and no socket.
// Must never: outlive the command, or serve the store of an installation.
// Source: the caller executor pinned before recovery; "a short command waits 5 s for the lease, then exits 73".
import { randomBytes } from 'node:crypto'
import type { Kernel } from '../../kernel/kernel.js'
import type { Caller } from '../../kernel/kernel-context.js'
import { type BrokerRecords, embedKernel, type KernelConfig, parseKernelConfig } from '../../kernel/index.js'
import { readKernelKeys } from '../../kernel/kernel-keys.js'
import { CallerExecutor } from '../../protocol/caller-authorization.js'
import { type PublicKey, type SigningKey, signingKey } from '../../protocol/keys.js'
import { KEY_BYTES } from '../../protocol/limits.js'
import { readKey } from '../../system/key-file.js'
import type { Act } from './act.js'
import { type Place, SERVER_ID, TOOL_NAME } from './place.js'
import { readDocument } from './retained.js'

const OWNER_WAIT_MS = 5_000
const NONCE_TTL_SECONDS = 120
const NONCE_CAPACITY = 16
/** Who coordinates the operations of the example: their ids are derived from both names. */
export const COORDINATOR = { authorityId: 'review-note-host', tenantScope: 'review-note' } as const
/** An embedding is asked in its own process: these are named, and never bound. */
const NO_SOCKET = { authoritySocketPath: '/nonexistent/authority', hostSocketPath: '/nonexistent/host' }

export interface HostKernel {
  readonly caller: Caller
  readonly executor: CallerExecutor
  readonly kernel: Kernel
  readonly kernelKey: PublicKey
}

/** Serves the store for as long as it is asked. @throws BrokerError `another_instance` while another process does. */
export async function withHostKernel<T>(act: Act, ask: (host: HostKernel) => Promise<T>): Promise<T> {
  const { atCutpoint, clock, place } = act
  const callerExecutor = readPin(place)
  const keys = readKernelKeys(keyChoices(place))
  const callerKey = readSigningKey(place.host.callerKey, 'caller key')
  try {
    const running = await embedKernel({
      atCutpoint,
      callerExecutor,
      clock,
      config: kernelConfig(place, callerKey.publicKey),
      keys,
      ownerWaitMs: OWNER_WAIT_MS,
      records: NO_BROKER,
      toolCalls: { targets: [{ serverId: SERVER_ID, toolName: TOOL_NAME }] },
    })
    try {
      const { kernel, publicKeys } = running
      const caller = { callerPublicKey: callerKey.publicKey, uid: process.geteuid?.() ?? 0 }
      return await ask({ caller, executor: callerExecutor, kernel, kernelKey: publicKeys.kernel })
    } finally {
      await running.close()
    }
  } finally {
    keys.wipe()
    callerKey.wipe()
  }
}

/** The executor that both owners pin. */
export function readPin({ executorPin }: Place): CallerExecutor {
  return readDocument(executorPin, CallerExecutor, 'restore it')
}

export function readSigningKey(file: string, what: string): SigningKey {
  const seed = readKey({ file }, what)
  try {
    return signingKey(seed)
  } finally {
    seed.fill(0)
  }
}

function keyChoices({ host: { keyFiles } }: Place) {
  const { authority, issuer, kernel, storage } = keyFiles
  return {
    authority: { file: authority },
    issuer: { file: issuer },
    kernel: { file: kernel },
    storage: { file: storage },
  }
}

/** Nothing of the example goes through a broker. */
const NO_BROKER: BrokerRecords = {
  attemptStatus: async () => 'unreachable',
  isReachable: async () => false,
  output: async () => 'unreachable',
  release: async () => 'unreachable',
  replay: async () => 'unreachable',
}

/** Whoever could administer this kernel, or answer it as its broker, would need a key that nobody has. */
export function kernelConfig({ host }: Place, callerPublicKey: PublicKey): KernelConfig {
  const [uid, gid] = [process.geteuid?.() ?? 0, process.getegid?.() ?? 0]
  const document: KernelConfig = {
    ...COORDINATOR,
    ...NO_SOCKET,
    administrators: {
      keys: [keyOfNobody()],
      maximumTokenLifetimeSeconds: 1,
      subject: 'nobody',
      threshold: 1,
    },
    approvers: [],
    audience: 'review-note',
    broker: {
      adapter: { id: 'none', version: 1 },
      gid,
      receiptKey: keyOfNobody(),
      socketPath: '/nonexistent/broker',
      uid,
    },
    callerDelivery: null,
    checkpointReceipts: 100,
    clients: [{ callerPublicKey, gids: [gid], uid }],
    clockSkewSeconds: 5,
    durableMode: 'all',
    nonce: { capacity: NONCE_CAPACITY, ttlSeconds: NONCE_TTL_SECONDS },
    onSharedArguments: 'warn',
    outputGuards: null,
    schema: 'chio.kerneld-config.v1',
    socketGid: null,
    stateDirectory: host.directory,
    toolCalls: null,
    unsafeDevelopment: false,
  }
  return parseKernelConfig(Buffer.from(JSON.stringify(document)))
}

function keyOfNobody(): PublicKey {
  const key = signingKey(new Uint8Array(randomBytes(KEY_BYTES)))
  key.wipe()
  return key.publicKey
}
