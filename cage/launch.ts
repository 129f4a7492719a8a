/**
 * Starts bwrap with cage-init inside, and holds what belongs to that one process until it is gone.
 * bwrap runs from / with an empty environment and its options in a sealed memfd; no shell, no PATH, no fallback.
 * Only on the main thread: --die-with-parent follows the thread that spawned.
 * Source: bwrap(1) --args; prctl(2) PR_SET_PDEATHSIG; pidfd_send_signal(2).
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { isMainThread } from 'node:worker_threads'
import type { Clock } from '../protocol/clock.js'
import {
  closeDescriptor,
  pidfdOpen,
  pipe,
  sealedMemfd,
  setPassCredentials,
  socketPair,
} from '../native/index.js'
import { findBubblewrap, type Bubblewrap } from './bubblewrap.js'
import { CageProcess } from './cage-process.js'
import { cageIdentity } from './identity.js'
import { placeFiles, readHostView, type Placed } from './placement.js'
import { ARGUMENTS_FD, planCage, type CagePlan } from './plan.js'
import { checkPolicy, type CageIdentity, type CagePolicy } from './policy.js'
import { refusedBy, refusedCheck } from './refusal.js'
import { openToolPipes } from './stdio.js'

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

interface ChildDescriptors {
  /** In the order of the child's numbers from ARGUMENTS_FD on. */
  readonly options: readonly number[]
  readonly control: number
  readonly status: number
}

/** All close-on-exec here; spawn puts each at its number in the child. */
function openDescriptors(plan: CagePlan, given: readonly number[]): ChildDescriptors {
  const opened: number[] = []
  const own = <T extends number | readonly number[]>(made: T): T => {
    opened.push(...[made].flat())
    return made
  }
  try {
    const args = own(sealedMemfd('chio-bwrap-args', optionBytes(plan.options)))
    const init = own(sealedMemfd('chio-cage-plan', plan.initPlan))
    const [control, childControl] = own(socketPair('seqpacket'))
    const [status, childStatus] = own(pipe())
    setPassCredentials(control, true)
    return { options: [args, init, childControl, childStatus, ...given], control, status }
  } catch (error) {
    for (const fd of [...opened, ...given]) closeDescriptor(fd)
    throw error
  }
}

/** 'ignore' from 3 on opens nothing in the child: those numbers stay free, 8 among them. */
function spawnBubblewrap(
  bubblewrap: Bubblewrap,
  plan: CagePlan,
  stdio: readonly ('ignore' | number)[],
  identity: CageIdentity,
): ChildProcess {
  const asOther = process.geteuid!() === 0 ? { uid: identity.uid, gid: identity.gid } : {}
  return spawn(bubblewrap.path, ['--args', String(ARGUMENTS_FD), '--', ...plan.command], {
    stdio: [...stdio],
    cwd: '/',
    env: {},
    argv0: 'bwrap',
    ...asOther,
  })
}

function start(placed: Placed, policy: CagePolicy, target: Omit<Launched, 'process'>): CageProcess {
  const plan = planCage(policy, {
    architecture: architecture(),
    view: readHostView(),
    placements: placed.placements,
  })
  const pipes = openToolPipes(policy.input)
  const { options, control, status } = openDescriptors(plan, placed.opened)
  try {
    const unused = Array.from({ length: ARGUMENTS_FD - 3 }, () => 'ignore' as const)
    const child = spawnBubblewrap(
      target.bubblewrap,
      plan,
      [...pipes.child, ...unused, ...options],
      target.identity,
    )
    return new CageProcess(child, pipes, {
      control,
      status,
      pidfd: child.pid === undefined ? null : pidfdOpen(child.pid),
    })
  } finally {
    pipes.closeChildEnds()
    for (const fd of options) closeDescriptor(fd)
  }
}

/** @throws CageRefusal naming the layer; nothing of the launch is left then. */
export function launchCage(policy: CagePolicy, options: LaunchOptions): Launched {
  if (!isMainThread)
    throw refusedCheck('thread', 'the main thread', 'a worker, whose end would kill the cage')
  checkPolicy(policy)
  const identity = cageIdentity(policy.identity)
  const bubblewrap = findBubblewrap(options.bubblewrapPath)
  const placed = placeFiles(policy, readHostView(), identity)
  try {
    return { process: start(placed, policy, { identity, bubblewrap }), identity, bubblewrap }
  } catch (error) {
    throw refusedBy(error, 'launch')
  }
}
