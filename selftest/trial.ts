// A whole installation of its own for a trial: STATE in a private temporary folder, fresh keys, sockets
// in STATE/run, both daemons as processes, under uids of their own when root. It neither reads nor
// touches a real installation, and leaves nothing behind.
import { chmodSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type HostOptions, type HostSession, openHost } from '../host/session.js'
import { parseHostPins } from '../host/pins.js'
import { packageRoot } from '../native/index.js'
import { systemClock } from '../native/clock.js'
import type { Clock } from '../protocol/clock.js'
import { BrokerError } from '../protocol/errors.js'
import { signingKey } from '../protocol/keys.js'
import type { EligibleApprover } from '../protocol/threshold-proposal.js'
import type { Identities, Identity } from '../system/identities.js'
import { makeInstallation } from '../system/installation.js'
import type { InstallationKeys, InstallationPlan, LocalProvider } from '../system/installation-plan.js'
import { readKey } from '../system/key-file.js'
import { hostLayout, type Layout, layoutOf } from '../system/layout.js'
import { type DaemonCommand, type DaemonProcess, startDaemon } from './daemon-process.js'
import {
  brokerCommand,
  type DaemonRole,
  kernelCommand,
  provisionStores,
  type StartableInstallation,
} from './daemon-commands.js'
import { freeIds } from './free-ids.js'
import { reachableProgram } from './program-copy.js'

export interface TrialOptions {
  readonly localProviders?: readonly LocalProvider[]
  readonly onLogLine?: (line: string) => void
  /** Whose word counts for grants that ask for approvals. */
  readonly approvers?: readonly EligibleApprover[]
  /** How long a reservation may wait for its start; the installation's own value unless said. */
  readonly executionNonceSeconds?: number
  /** Called before the stores are made. What it returns is put before the command of each daemon. */
  readonly enclose?: (layout: Layout) => Promise<readonly string[]>
}

/** A running trial. Stop it: daemons end, STATE is removed. */
export class Trial {
  readonly layout: Layout
  readonly identities: Identities
  readonly keys: InstallationKeys
  readonly programRoot: string
  /** Whether the program was copied so that other uids can run it. */
  readonly copied: boolean
  readonly #installation: StartableInstallation
  readonly #daemons = new Map<DaemonRole, DaemonProcess>()

  constructor(installation: StartableInstallation, made: { keys: InstallationKeys; copied: boolean }) {
    this.#installation = installation
    this.layout = installation.layout
    this.identities = installation.identities
    this.programRoot = installation.programRoot
    this.keys = made.keys
    this.copied = made.copied
  }

  get broker(): DaemonProcess {
    return this.#running('broker')
  }

  get kernel(): DaemonProcess {
    return this.#running('kernel')
  }

  /**
   * Starts a daemon on this STATE: the first time, or again after it ended.
   * @param change of its command, for a daemon that is not quite the shipped one.
   */
  async start(
    role: DaemonRole,
    change: (command: DaemonCommand) => DaemonCommand = same => same,
  ): Promise<DaemonProcess> {
    const daemon = await startDaemon(change(this.command(role)))
    this.#daemons.set(role, daemon)
    return daemon
  }

  /** Ends a daemon as a crash does: nothing of it runs any more when this resolves. */
  async kill(role: DaemonRole): Promise<void> {
    const daemon = this.#running(role)
    daemon.signal('SIGKILL')
    await daemon.exited
  }

  /** How a daemon of this trial is started. */
  command(role: DaemonRole): DaemonCommand {
    return role === 'broker' ? brokerCommand(this.#installation) : kernelCommand(this.#installation)
  }

  openHost(choices: Parameters<typeof openTrialHost>[1] = {}): HostSession {
    return openTrialHost(this.layout, choices)
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#daemons.values()].map(daemon => daemon.stop()))
    rmSync(this.layout.state, { recursive: true, force: true })
  }

  #running(role: DaemonRole): DaemonProcess {
    const daemon = this.#daemons.get(role)
    if (daemon !== undefined) return daemon
    throw new BrokerError('invariant', `trial refused: expected its ${role} to have been started`)
  }
}

/** Makes and starts a trial. */
export async function startTrial(options: TrialOptions = {}): Promise<Trial> {
  const state = realpathSync(mkdtempSync(join(tmpdir(), 'chio-trial-')))
  let trial: Trial | undefined
  try {
    trial = await makeTrial(state, options)
    await trial.start('kernel')
    await trial.start('broker')
    return trial
  } catch (error) {
    await trial?.stop()
    rmSync(state, { recursive: true, force: true })
    throw error
  }
}

async function makeTrial(state: string, options: TrialOptions): Promise<Trial> {
  const layout = layoutOf(state)
  const identities = trialIdentities()
  const keys = makeInstallation(trialPlan(layout, identities, options))
  if (options.executionNonceSeconds !== undefined) shortenNonces(layout, options.executionNonceSeconds)
  const { root: programRoot, copied } = programFor(identities, state)
  const { onLogLine } = options
  const wrapper = (await options.enclose?.(layout)) ?? []
  const installation = { layout, identities, programRoot, wrapper, ...(onLogLine && { onLogLine }) }
  await provisionStores(installation)
  return new Trial(installation, { keys, copied })
}

/** As an operator would: a member of the kernel's configuration, in place, so that owner and mode stay. */
function shortenNonces(layout: Layout, ttlSeconds: number): void {
  const config = JSON.parse(readFileSync(layout.kernel.config, 'utf8')) as { nonce: { ttlSeconds: number } }
  config.nonce.ttlSeconds = ttlSeconds
  writeFileSync(layout.kernel.config, JSON.stringify(config))
}

function operator(): Identity {
  return { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 }
}

/** Root takes three free ids; anybody else is all of them. */
function trialIdentities(): Identities {
  if (operator().uid !== 0) return { broker: operator(), kernel: operator(), cage: null }
  const [broker, kernel, cage] = freeIds(3).map(id => ({ uid: id, gid: id })) as [
    Identity,
    Identity,
    Identity,
  ]
  return { broker, kernel, cage }
}

function trialPlan(
  layout: Layout,
  identities: Identities,
  { approvers = [], localProviders = [] }: TrialOptions,
): InstallationPlan {
  const administrator = operator()
  const gids = process.getgroups?.() ?? []
  const client = { ...administrator, gids: [...new Set([administrator.gid, ...gids])].slice(0, 64) }
  const clients = [client]
  return { administrator, approvers, clients, identities, layout, localProviders, tenantScope: 'trial' }
}

function programFor(identities: Identities, state: string): { root: string; copied: boolean } {
  if (identities.cage === null) return { root: packageRoot(), copied: false }
  chmodSync(state, 0o711)
  return reachableProgram(state)
}

/** Opens the operator as a host of an installation. */
export function openTrialHost(
  layout: Layout,
  choices: Pick<HostOptions, 'atMoment'> & { readonly clock?: Clock } = {},
): HostSession {
  const host = hostLayout(layout.state, operator().uid)
  const seed = readKey({ file: host.callerKey }, 'caller key')
  const caller = signingKey(seed)
  seed.fill(0)
  return openHost({
    pins: parseHostPins(readFileSync(layout.pins)),
    caller,
    journalKey: readKey({ file: host.journalKey }, 'journal key'),
    runsDirectory: host.runs,
    clock: systemClock,
    ...choices,
  })
}
