/**
 * Starts bwrap with cage-init inside, and holds what belongs to that one process until it is gone.
 * bwrap runs from / with an empty environment and its options in a sealed memfd; no shell, no PATH, no fallback.
 * Between bwrap's clone and its waking of the child a killed bwrap leaves that child asleep: SECURITY.md says why nothing
 * of ours can end it. Later the death signal or the end of the control channel does.
 * Only on the main thread: --die-with-parent follows the thread that spawned.
 * Source: bwrap(1) --args; prctl(2) PR_SET_PDEATHSIG; pidfd_send_signal(2).
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { isMainThread } from 'node:worker_threads'
import type { Clock } from '../protocol/clock.js'
import { pidfdOpen, pipe, sealedMemfd, setPassCredentials, socketPair } from '../native/index.js'
import { findBubblewrap, type Bubblewrap } from './bubblewrap.js'
import { CageProcess } from './cage-process.js'
import { cageIdentity } from './identity.js'
import { OwnedDescriptors } from './owned-descriptors.js'
import { placeFiles, readHostView } from './placement.js'
import { ARGUMENTS_FD, planCage, type CagePlan } from './plan.js'
import { checkPolicy, type CageIdentity, type CagePolicy } from './policy.js'
import { refusedBy, refusedCheck } from './refusal.js'
import { makeToolStdio } from './stdio.js'

export interface LaunchOptions {
  readonly clock: Clock
  /** From the start of bwrap until cage-init waits, and again from the handoff until the exec. */
  readonly launchTimeoutMs?: number
  readonly bubblewrapPath?: string
}

export interface Launched {
  readonly process: CageProcess
  readonly identity: CageIdentity
  readonly bubblewrap: Bubblewrap
}

function architecture(): 'x64' | 'arm64' {
  if (process.platform === 'linux' && (process.arch === 'x64' || process.arch === 'arm64'))
    return process.arch
  throw refusedCheck('machine', 'Linux on x86_64 or aarch64', `${process.platform} on ${process.arch}`)
}

const optionBytes = (options: readonly string[]): Uint8Array =>
  Buffer.from(options.map(option => `${option}\0`).join(''), 'utf8')

/** Everything that is decided before anything is spawned. */
interface Prepared {
  readonly policy: CagePolicy
  readonly identity: CageIdentity
  readonly bubblewrap: Bubblewrap
  readonly plan: CagePlan
  /** Files that bwrap copies in, from FIRST_DATA_FD on. */
  readonly given: readonly number[]
}

function prepare(policy: CagePolicy, bubblewrapPath: string | undefined, made: OwnedDescriptors): Prepared {
  checkPolicy(policy)
  const identity = cageIdentity(policy.identity)
  const bubblewrap = findBubblewrap(bubblewrapPath)
  const view = readHostView()
  const { placements, given } = placeFiles(policy, view, identity, made)
  const plan = planCage(policy, { architecture: architecture(), view, placements })
  return { policy, identity, bubblewrap, plan, given }
}

/** 'ignore' from 3 on opens nothing in the child: those numbers stay free, 8 among them. */
function spawnBubblewrap(prepared: Prepared, stdio: readonly ('ignore' | number)[]): ChildProcess {
  const { bubblewrap, plan, identity } = prepared
  const asOther = process.geteuid!() === 0 ? { uid: identity.uid, gid: identity.gid } : {}
  return spawn(bubblewrap.path, ['--args', String(ARGUMENTS_FD), '--', ...plan.command], {
    stdio: [...stdio],
    cwd: '/',
    env: {},
    argv0: 'bwrap',
    ...asOther,
  })
}

/** null when there is no process: its error comes as an event. A child is not reaped before we return to the loop. */
function pidfdOf(child: ChildProcess): number | null {
  if (child.pid === undefined) return null
  try {
    return pidfdOpen(child.pid)
  } catch (error) {
    child.kill('SIGKILL')
    throw error
  }
}

const FREE_NUMBERS = Array.from({ length: ARGUMENTS_FD - 3 }, () => 'ignore' as const)

/** All are close-on-exec here; spawn puts each at its number in the child. */
function start(prepared: Prepared, made: OwnedDescriptors): CageProcess {
  const { plan, given, policy } = prepared
  const stdio = makeToolStdio(policy.input, made)
  const options = made.own(sealedMemfd('chio-bwrap-args', optionBytes(plan.options)))
  const initPlan = made.own(sealedMemfd('chio-cage-plan', plan.initPlan))
  const [control, childControl] = made.own(socketPair('seqpacket'))
  const [status, childStatus] = made.own(pipe())
  setPassCredentials(control, true)
  const inherited = [options, initPlan, childControl, childStatus, ...given]
  const child = spawnBubblewrap(prepared, [...stdio.child, ...FREE_NUMBERS, ...inherited])
  const pidfd = pidfdOf(child)
  made.release(control)
  made.release(status)
  return new CageProcess(child, stdio.open(), { control, status, pidfd })
}

/** @throws CageRefusal naming the layer; nothing of the launch is left then. */
export function launchCage(policy: CagePolicy, options: LaunchOptions): Launched {
  if (!isMainThread) {
    throw refusedCheck('thread', 'the main thread', 'a worker, whose end would kill the cage')
  }
  const made = new OwnedDescriptors()
  try {
    const prepared = prepare(policy, options.bubblewrapPath, made)
    const { identity, bubblewrap } = prepared
    return { process: start(prepared, made), identity, bubblewrap }
  } catch (error) {
    // A policy out of its bounds is the caller's fault, and says so itself.
    throw error instanceof RangeError ? error : refusedBy(error, 'launch')
  } finally {
    made.closeAll()
  }
}
