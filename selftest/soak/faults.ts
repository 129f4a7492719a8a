// Owns what a soak does to its installation: each fault is made, kept for a while, and taken back by itself.
// Must never: signal, fill or step anything but what is the soak's own.
import { setTimeout as sleep } from 'node:timers/promises'
import { descendantsOf } from '../crash/process-tree.js'
import { killBelow } from '../crash/victims.js'
import type { Random } from '../fuzz/random.js'
import { ROLES, type SoakWorld } from './soak-world.js'

export interface Fault {
  readonly name: string
  /** @returns false when there was nothing to do it to at this moment. */
  act(world: SoakWorld, random: Random): Promise<boolean>
}

const LONGEST_ABSENCE_MS = 400
const LONGEST_STOP_MS = 1_500
/** Rarely a process stands still for longer than any answer is waited for. */
const LONG_STOP_MS = 7_000
const LONG_STOP_ONE_OF = 15
const LONGEST_FULL_MS = 2_000
const LONGEST_STEP_MS = 3_600_000
const LONGEST_STEPPED_MS = 1_500

/** What is done to processes. */
export const PROCESS_FAULTS: readonly Fault[] = [
  ...ROLES.map(role => ({
    name: `kill ${role}`,
    async act(world: SoakWorld, random: Random) {
      await world.restart([role], random.below(LONGEST_ABSENCE_MS))
      return true
    },
  })),
  {
    name: 'kill both daemons',
    async act(world, random) {
      await world.restart(ROLES, random.below(LONGEST_ABSENCE_MS))
      return true
    },
  },
  {
    name: 'kill host',
    async act(world, random) {
      const host = anyHost(world, random)
      await host?.kill()
      return host !== undefined
    },
  },
  ...(['cage', 'tool'] as const).map(victim => ({
    name: `kill ${victim}`,
    act: (world: SoakWorld, random: Random) =>
      whileCaged(world, random, pid => killBelow(pid, victim, random)),
  })),
  ...ROLES.map(role => ({
    name: `stop ${role}`,
    async act({ crash }: SoakWorld, random: Random) {
      const daemon = crash.trial[role]
      daemon.signal('SIGSTOP')
      await sleep(stopMs(random))
      daemon.signal('SIGCONT')
      return true
    },
  })),
  {
    name: 'stop host',
    async act(world, random) {
      const host = anyHost(world, random)
      host?.signal('SIGSTOP')
      await sleep(host === undefined ? 0 : stopMs(random))
      host?.signal('SIGCONT')
      return host !== undefined
    },
  },
  {
    name: 'stop cage',
    act: (world, random) => whileCaged(world, random, pid => stopBelow(pid, random)),
  },
]

/** What is done to disks and clocks. */
export const SURROUNDING_FAULTS: readonly Fault[] = [
  ...ROLES.map(role => ({
    name: `full disk ${role}`,
    async act({ disks }: SoakWorld, random: Random) {
      await disks[role].fill()
      await sleep(random.below(LONGEST_FULL_MS))
      await disks[role].free()
      return true
    },
  })),
  ...ROLES.map(role => ({
    name: `step wall clock ${role}`,
    async act({ crash }: SoakWorld, random: Random) {
      const daemon = crash.steered(role)
      const stepMs = stepOf(random)
      await daemon.stepWall(stepMs)
      await sleep(random.below(LONGEST_STEPPED_MS))
      await daemon.stepWall(-stepMs)
      return true
    },
  })),
  {
    name: 'step wall clock host',
    async act(world, random) {
      const host = anyHost(world, random)
      const stepMs = stepOf(random)
      host?.stepWall(stepMs)
      await sleep(random.below(LONGEST_STEPPED_MS))
      host?.stepWall(-stepMs)
      return host !== undefined
    },
  },
]

function stopMs(random: Random): number {
  return random.once(LONG_STOP_ONE_OF) ? LONG_STOP_MS : random.below(LONGEST_STOP_MS)
}

function stepOf(random: Random): number {
  return random.below(2 * LONGEST_STEP_MS) - LONGEST_STEP_MS
}

function anyHost({ hosts }: SoakWorld, random: Random) {
  return hosts.size === 0 ? undefined : random.pick([...hosts])
}

/** A cage stands for a moment only: looks for one a few times. */
async function whileCaged(
  world: SoakWorld,
  random: Random,
  act: (hostPid: number) => boolean | Promise<boolean>,
): Promise<boolean> {
  for (let look = 0; look < 100; look += 1) {
    for (const { pid } of world.hosts) if (descendantsOf(pid).length > 0 && (await act(pid))) return true
    await sleep(10)
    random.next()
  }
  return false
}

async function stopBelow(hostPid: number, random: Random): Promise<boolean> {
  const tree = descendantsOf(hostPid)
  if (tree.length === 0) return false
  const { pid } = random.pick(tree)
  if (!signal(pid, 'SIGSTOP')) return false
  await sleep(random.below(LONGEST_STOP_MS))
  // The same process still, or none: its host waits for it, so its number is not given away.
  if (descendantsOf(hostPid).some(one => one.pid === pid)) signal(pid, 'SIGCONT')
  return true
}

function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    process.kill(pid, name)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
    throw error
  }
}
