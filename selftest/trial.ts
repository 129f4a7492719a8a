// A whole installation of its own for a trial: STATE in a private temporary folder, fresh keys, sockets
// in STATE/run, both daemons as processes, under uids of their own when root. It neither reads nor
// touches a real installation, and leaves nothing behind.
import { chmodSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type HostSession, openHost } from '../host/session.js'
import { parseHostPins } from '../host/pins.js'
import { packageRoot } from '../native/index.js'
import { systemClock } from '../native/clock.js'
import { signingKey } from '../protocol/keys.js'
import type { Identities, Identity } from '../system/identities.js'
import { makeInstallation } from '../system/installation.js'
import type { InstallationKeys, InstallationPlan, LocalProvider } from '../system/installation-plan.js'
import { readKey } from '../system/key-file.js'
import { hostLayout, type Layout, layoutOf } from '../system/layout.js'
import { type DaemonProcess, startDaemon } from './daemon-process.js'
import { brokerCommand, kernelCommand, provisionStores } from './daemon-commands.js'
import { freeIds } from './free-ids.js'
import { reachableProgram } from './program-copy.js'

export interface TrialOptions {
  readonly localProviders?: readonly LocalProvider[]
  readonly onLogLine?: (line: string) => void
}

/** A running trial. Stop it: daemons end, STATE is removed. */
export interface Trial {
  readonly layout: Layout
  readonly identities: Identities
  readonly keys: InstallationKeys
  readonly programRoot: string
  /** Whether the program was copied so that other uids can run it. */
  readonly copied: boolean
  readonly broker: DaemonProcess
  readonly kernel: DaemonProcess
  openHost(): HostSession
  stop(): Promise<void>
}

/** Makes and starts a trial. */
export async function startTrial(options: TrialOptions = {}): Promise<Trial> {
  const state = realpathSync(mkdtempSync(join(tmpdir(), 'chio-trial-')))
  try {
    return await startTrialIn(state, options)
  } catch (error) {
    rmSync(state, { recursive: true, force: true })
    throw error
  }
}

async function startTrialIn(state: string, options: TrialOptions): Promise<Trial> {
  const layout = layoutOf(state)
  const identities = trialIdentities()
  const keys = makeInstallation(trialPlan(layout, identities, options.localProviders ?? []))
  const { root: programRoot, copied } = programFor(identities, state)
  const started = {
    layout,
    identities,
    programRoot,
    ...(options.onLogLine && { onLogLine: options.onLogLine }),
  }
  await provisionStores(started)
  const kernel = await startDaemon(kernelCommand(started))
  const broker = await startBrokerBeside(kernel, () => startDaemon(brokerCommand(started)))
  return {
    layout,
    identities,
    keys,
    programRoot,
    copied,
    broker,
    kernel,
    openHost: () => openTrialHost(layout),
    stop: () => stopTrial(state, [broker, kernel]),
  }
}

async function startBrokerBeside(
  kernel: DaemonProcess,
  start: () => Promise<DaemonProcess>,
): Promise<DaemonProcess> {
  try {
    return await start()
  } catch (error) {
    await kernel.stop()
    throw error
  }
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
  localProviders: readonly LocalProvider[],
): InstallationPlan {
  const administrator = operator()
  const gids = process.getgroups?.() ?? []
  const client = { ...administrator, gids: [...new Set([administrator.gid, ...gids])].slice(0, 64) }
  return { layout, identities, administrator, clients: [client], tenantScope: 'trial', localProviders }
}

function programFor(identities: Identities, state: string): { root: string; copied: boolean } {
  if (identities.cage === null) return { root: packageRoot(), copied: false }
  chmodSync(state, 0o711)
  return reachableProgram(state)
}

/** Opens the operator as a host of an installation. */
export function openTrialHost(layout: Layout): HostSession {
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
  })
}

async function stopTrial(state: string, daemons: readonly DaemonProcess[]): Promise<void> {
  await Promise.all(daemons.map(daemon => daemon.stop()))
  rmSync(state, { recursive: true, force: true })
}
