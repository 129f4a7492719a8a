// Where an installation keeps what: the folders of STATE, who owns each, and the three sockets. Paths are
// decided here once and written into configurations and pins; nothing derives them later.
import { basename, dirname, isAbsolute, join, resolve } from 'node:path'

/** Where the installation of the machine is, and where the units look for it. */
export const SYSTEM_STATE = '/var/lib/chio'
const SYSTEM_RUN = '/run/chio'
/** One installation for each tenant, as the unit templates name them. */
const TENANTS_STATE = '/var/lib/chio-tenants'
const TENANTS_RUN = '/run/chio-tenants'

/** Files and sockets of one installation. */
export interface Layout {
  readonly state: string
  readonly run: string
  readonly broker: {
    readonly directory: string
    readonly config: string
    readonly store: string
    readonly masterKey: string
    readonly receiptKey: string
    readonly socket: string
  }
  readonly kernel: {
    readonly directory: string
    readonly config: string
    readonly store: string
    readonly keys: {
      readonly authority: string
      readonly issuer: string
      readonly kernel: string
      readonly storage: string
    }
    readonly hostSocket: string
    readonly authoritySocket: string
  }
  readonly adminKey: string
  readonly identities: string
  readonly pins: string
  /** The kernel key as auditors pin it: 64 hex digits. */
  readonly kernelPublicKey: string
}

/** Files of one client user below STATE/host/UID. */
export interface HostLayout {
  readonly directory: string
  readonly callerKey: string
  readonly journalKey: string
  readonly runs: string
}

/** @param run folder of the socket directories; `/run/chio` for an installation, STATE/run otherwise. */
export function layoutOf(state: string, run = join(state, 'run')): Layout {
  if (!isAbsolute(state) || resolve(state) !== state)
    throw new TypeError('state: expected an absolute normal path')
  const broker = join(state, 'broker')
  const kernel = join(state, 'kernel')
  const kernelKey = (name: string): string => join(kernel, 'keys', `${name}.key`)
  return {
    state,
    run,
    broker: {
      directory: broker,
      config: join(broker, 'config.json'),
      store: join(broker, 'broker.db'),
      masterKey: join(broker, 'keys', 'master.key'),
      receiptKey: join(broker, 'keys', 'receipt.key'),
      socket: join(run, 'broker', 'sock'),
    },
    kernel: {
      directory: kernel,
      config: join(kernel, 'config.json'),
      store: join(kernel, 'kernel.db'),
      keys: {
        authority: kernelKey('authority'),
        issuer: kernelKey('issuer'),
        kernel: kernelKey('kernel'),
        storage: kernelKey('storage'),
      },
      hostSocket: join(run, 'kernel', 'sock'),
      authoritySocket: join(run, 'authority', 'sock'),
    },
    adminKey: join(state, 'admin', 'keys', 'admin.key'),
    identities: join(state, 'identities.json'),
    pins: join(state, 'pins.json'),
    kernelPublicKey: join(state, 'kernel.pub'),
  }
}

/** The layout of a state folder; the system's, and those of its tenants, have their sockets below /run. */
export function layoutOfState(state: string): Layout {
  if (state === SYSTEM_STATE) return layoutOf(state, SYSTEM_RUN)
  return dirname(state) === TENANTS_STATE
    ? layoutOf(state, join(TENANTS_RUN, basename(state)))
    : layoutOf(state)
}

/** The state folder of a socket that lies where `layoutOfState` puts it; null for one that was laid elsewhere. */
export function stateOfSocket(socketPath: string): string | null {
  const run = dirname(dirname(socketPath))
  if (run === SYSTEM_RUN) return SYSTEM_STATE
  if (dirname(run) === TENANTS_RUN) return join(TENANTS_STATE, basename(run))
  return basename(run) === 'run' && basename(socketPath) === 'sock' ? dirname(run) : null
}

export function hostLayout(state: string, uid: number): HostLayout {
  const directory = join(state, 'host', String(uid))
  return {
    directory,
    callerKey: join(directory, 'keys', 'caller.key'),
    journalKey: join(directory, 'keys', 'journal.key'),
    runs: join(directory, 'runs'),
  }
}
