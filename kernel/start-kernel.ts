// Owns: a serving kernel: its store as the one owner, its two sockets, its settling; and the end of all of them.
// Must never: begin to serve half: what is missing is one refusal that lists it all, before anything is opened.
// Source: "one serving process a store"; the kernel's two socket services.
import { join } from 'node:path'
import type { CallerExecutor } from '../protocol/caller-authorization.js'
import type { Clock } from '../protocol/clock.js'
import { BrokerError } from '../protocol/errors.js'
import type { ActivatedSockets } from '../system/activation.js'
import { type Cutpoint, cutpointsOf } from '../system/cutpoints.js'
import { CallPlaces } from '../system/call-places.js'
import { FrameAdmission } from '../system/frame-admission.js'
import { listen, type ListenOptions } from '../system/listener.js'
import { judgePeer } from '../system/peer.js'
import type { SupervisedDaemon } from '../system/supervision.js'
import { exists } from '../store/file-custody.js'
import { provisionStore } from '../store/provision.js'
import { EmbeddedAdmissionStore } from './admission-moves.js'
import { serveAuthority } from './serving/authority-service.js'
import { pinnedExecutor } from './delivery/caller-pin.js'
import { callPolicyOf, type ToolCallSettings } from './calls/call-policy.js'
import { KERNEL_STORE_FILE, type KernelConfig } from './config.js'
import { faultFields } from './fault-fields.js'
import type { LogSettings } from './log/decision-receipt.js'
import { serveHost } from './serving/host-service.js'
import { Kernel } from './kernel.js'
import {
  assertComplete,
  type KernelContext,
  type KernelEvent,
  type KernelLog,
  type KernelParts,
  type KernelPublicKeys,
} from './kernel-context.js'
import { limitedLog } from './serving/limited-log.js'
import { KernelEnd } from './serving/kernel-end.js'
import { Outstanding } from './serving/outstanding.js'
import { configuredGuards, type OutputGuard } from './output/output-guards.js'
import { Settlement } from './settling/settlement.js'
import { KERNEL_STORE_SCHEMA } from './sqlite/schema.js'
import { headPathOf } from './sqlite/signed-head.js'
import { openTables } from './sqlite/tables.js'
import { SupervisedKernel } from './serving/supervised-kernel.js'

export interface StartOptions extends Omit<KernelParts, 'log'> {
  readonly log?: KernelLog
  /** Called at every durable boundary and message; a crash test ends the process there. */
  readonly atCutpoint?: Cutpoint
  /** How long to wait for a process that serves the store; 0 unless said. */
  readonly ownerWaitMs?: number
  /** The boot in which elapsed time counts; this machine's unless said. */
  readonly bootId?: string
  /** What an embedding admits tool calls for; none unless said. */
  readonly toolCalls?: ToolCallSettings
  /** To whom tool calls are delivered; of the configuration unless said. It is fixed before anything is recovered. */
  readonly callerExecutor?: CallerExecutor | null
  /** Guards of an embedding, after those of the configuration. */
  readonly outputGuards?: readonly OutputGuard[]
  /** Sockets that a service manager bound already. */
  readonly activated?: ActivatedSockets
  /** Told once when another owner took the store over: this process has to end, and may not write. */
  readonly onFenced?: (error: BrokerError) => void
}

export interface RunningKernel {
  readonly kernel: Kernel
  readonly publicKeys: KernelPublicKeys
  readonly ownerEpoch: number
  /** To whom tool calls are delivered, and whether what was committed for it stays. */
  readonly callerDelivery: { readonly executor: CallerExecutor | null; readonly isDurable: boolean }
  /** What a service manager is told while it serves. */
  supervised(): SupervisedDaemon
  /** Takes nothing new up, answers what is asked, gives everything back. Safe to repeat. */
  close(): Promise<void>
  /** Closes without waiting for anybody. Safe to repeat. */
  hurry(): void
}

export function kernelStorePath(config: Pick<KernelConfig, 'stateDirectory'>): string {
  return join(config.stateDirectory, KERNEL_STORE_FILE)
}

/** Makes the kernel's store, once. @throws BrokerError `storage` when it stands already. */
export async function provisionKernel(
  config: Pick<KernelConfig, 'stateDirectory'>,
  clock: Clock,
): Promise<void> {
  const path = kernelStorePath(config)
  refuseLeftHead(headPathOf(path))
  await provisionStore(path, KERNEL_STORE_SCHEMA, { clock })
}

/** A head that outlived its store says that something was decided here. */
function refuseLeftHead(path: string): void {
  if (!exists(path)) return
  throw new BrokerError(
    'storage',
    `provisioning refused: expected no store head ${path}, got that of a former store; put its store back, or move the head away by hand`,
    { outcome: 'not_started' },
  )
}

/** Opens store and sockets and serves until it is closed. The keys stay the caller's to wipe. */
export function startKernel(options: StartOptions): Promise<RunningKernel> {
  return started(options, (context, kernel) => [authoritySocket(context), hostSocket(context, kernel)])
}

/** The same kernel without its sockets: nobody but the process that embeds it asks anything of it. */
export function embedKernel(options: Omit<StartOptions, 'activated'>): Promise<RunningKernel> {
  return started(options, () => [])
}

type SocketsOf = (context: KernelContext, kernel: Kernel) => readonly ListenOptions[]

async function started(options: StartOptions, socketsOf: SocketsOf): Promise<RunningKernel> {
  assertComplete(options)
  const { clock, config, keys, records } = options
  const atCutpoint = cutpointsOf('kernel', options.atCutpoint)
  const executor = pinnedExecutor(config, options.callerExecutor)
  const store = await openOwned(options, atCutpoint)
  const log = limitedLog(options.log ?? (() => {}), clock)
  if (config.durableMode === 'off') log({ level: 'warn', event: 'durable_mode_off' })
  const context: KernelContext = {
    atCutpoint,
    callPolicy: callPolicyOf(options, options.toolCalls, executor),
    clock,
    config,
    guards: [...configuredGuards(config.outputGuards), ...(options.outputGuards ?? [])],
    keys,
    log,
    outstanding: new Outstanding(),
    records,
    store,
  }
  const settlement = new Settlement(context)
  const kernel = new Kernel(context, settlement)
  const end = new KernelEnd(context, settlement)
  const sockets = socketsOf(context, kernel)
  try {
    log({ level: 'info', event: 'recovered', ...(await store.recover(executor)) })
    for (const socket of sockets) {
      const activatedDescriptor = options.activated?.get(socket.path)
      end.listeners.push(await listen({ ...socket, activatedDescriptor }))
    }
    await settlement.start()
  } catch (error) {
    await end.run()
    throw error
  }
  return running({ context, end, kernel, settlement })
}

/** The store, as its one owner. */
async function openOwned(options: StartOptions, atCutpoint: Cutpoint): Promise<EmbeddedAdmissionStore> {
  const { bootId, clock, config, ownerWaitMs } = options
  const tables = await openTables(kernelStorePath(config), {
    clock,
    ...(ownerWaitMs === undefined ? {} : { ownerWaitMs }),
    ...(bootId === undefined ? {} : { bootId }),
    clockSkewMs: config.clockSkewSeconds * 1_000,
    durability: config.durableMode === 'off' ? 'none' : 'full',
    log: logSettings(options),
    atCutpoint,
  })
  return new EmbeddedAdmissionStore(tables, options.onFenced)
}

/** Under whose key decisions are signed. */
function logSettings({ config, keys }: Pick<KernelParts, 'config' | 'keys'>): LogSettings {
  const { checkpointReceipts, durableMode, tenantScope } = config
  const { issuer, kernel } = keys
  return { checkpointReceipts, durableMode, issuerKey: issuer.publicKey, key: kernel, tenantScope }
}

function running(parts: {
  readonly context: KernelContext
  readonly end: KernelEnd
  readonly kernel: Kernel
  readonly settlement: Settlement
}): RunningKernel {
  const { context, end, kernel, settlement } = parts
  const { executor, isDurable } = context.callPolicy
  return {
    callerDelivery: { executor, isDurable },
    close: () => end.run(),
    hurry: () => end.hurry(),
    supervised: () => new SupervisedKernel(context, settlement, end.listeners),
    kernel,
    ownerEpoch: context.store.ownerEpoch,
    publicKeys: publicKeysOf(context.keys),
  }
}

function publicKeysOf({ authority, issuer, kernel }: KernelContext['keys']): KernelPublicKeys {
  return { authority: authority.publicKey, issuer: issuer.publicKey, kernel: kernel.publicKey }
}

function hostSocket(context: KernelContext, kernel: Kernel): ListenOptions {
  const { atCutpoint, clock, config, log, outstanding } = context
  const { tenantScope } = config
  const calls = new CallPlaces()
  return {
    ...sharedOptions(context),
    path: config.hostSocketPath,
    admission: new FrameAdmission(),
    admit: peer => judgePeer(peer, config.clients) !== undefined,
    async onConnection(connection, peer) {
      const caller = judgePeer(peer, config.clients)
      if (caller === undefined) return
      await serveHost({
        atCutpoint,
        caller,
        calls,
        clock,
        connection,
        kernel,
        log,
        peer,
        tenantScope,
        outstanding,
      })
    },
  }
}

function authoritySocket(context: KernelContext): ListenOptions {
  const { broker, authoritySocketPath } = context.config
  const allowed = [{ uid: broker.uid, gids: [broker.gid] }]
  return {
    ...sharedOptions(context),
    path: authoritySocketPath,
    admission: new FrameAdmission(),
    admit: peer => judgePeer(peer, allowed) !== undefined,
    onConnection: (connection, peer) => serveAuthority(context, connection, peer),
  }
}

function sharedOptions({ clock, config, log }: KernelContext) {
  return {
    clock,
    mode: 'stream',
    socketGid: config.socketGid,
    onFault(error: unknown) {
      log({ level: 'error', event: 'listener_fault', ...faultFields(error) })
    },
    onRefused({ pid, reason, uid }: { reason: string; uid: number | null; pid: number | null }) {
      const refused: KernelEvent = { level: 'warn', event: 'connection_refused', reason, uid, pid }
      log(refused)
    },
  } as const
}
