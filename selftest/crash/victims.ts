// Owns who is killed in a random round, and how: daemons by their trial, a host by its process, what stands in a cage
// by its place below the host.
// Must never: signal anything but the processes of its own world.
import { setTimeout as sleep } from 'node:timers/promises'
import { isBrokerError } from '../../protocol/errors.js'
import type { DaemonRole } from '../daemon-commands.js'
import type { Random } from '../fuzz/random.js'
import type { CrashWorld } from './crash-world.js'
import type { HostProcess } from './host-process.js'
import { descendantsOf } from './process-tree.js'

export const VICTIMS = ['broker', 'kernel', 'host', 'cage', 'tool', 'both daemons'] as const
export type Victim = (typeof VICTIMS)[number]

/** How often each is drawn, of the sum. */
const WEIGHTS: Readonly<Record<Victim, number>> = {
  broker: 3,
  kernel: 3,
  host: 3,
  cage: 4,
  tool: 4,
  'both daemons': 1,
}

/** Who is killed this time. */
export function drawVictim(random: Random): Victim {
  return random.pick(VICTIMS.flatMap(victim => Array.from({ length: WEIGHTS[victim] }, () => victim)))
}

/** Longest time that a daemon stays away. */
const LONGEST_ABSENCE_MS = 150
/** A start that is killed is killed within this: later it serves. */
const STARTING_MS = 600
/** One start of so many is killed as well. */
const STARTS_KILLED = 10

/** @returns whether the host is dead by it. */
export async function kill(
  victim: Victim,
  { world, host, random }: { world: CrashWorld; host: HostProcess; random: Random },
): Promise<boolean> {
  switch (victim) {
    case 'broker':
    case 'kernel':
      await restart(world, [victim], random)
      return false
    case 'both daemons':
      await restart(world, ['broker', 'kernel'], random)
      return false
    case 'cage':
    case 'tool':
      if (killBelow(host.pid, victim, random)) return false
      break
    case 'host':
  }
  await host.kill()
  return true
}

async function restart(world: CrashWorld, roles: readonly DaemonRole[], random: Random): Promise<void> {
  await Promise.all(roles.map(role => world.trial.kill(role)))
  await sleep(random.below(LONGEST_ABSENCE_MS))
  for (const role of [...roles].reverse()) {
    if (random.once(STARTS_KILLED)) await startAndKill(world, role, random)
    await world.trial.start(role)
  }
}

/** A start that is itself killed at any moment; one that was quicker is killed while it serves. */
async function startAndKill(world: CrashWorld, role: DaemonRole, random: Random): Promise<void> {
  const before = new Set(descendantsOf(process.pid).map(({ pid }) => pid))
  const starting = world.trial.start(role).catch((error: unknown) => {
    if (!isBrokerError(error)) throw error
  })
  const started = descendantsOf(process.pid).filter(
    ({ pid, parentPid }) => parentPid === process.pid && !before.has(pid),
  )
  await sleep(random.below(STARTING_MS))
  for (const { pid } of started) killPid(pid)
  await starting
}

/** bwrap is the first of its tree, the tool the last. @returns false when no cage stands at this moment. */
export function killBelow(hostPid: number, victim: 'cage' | 'tool', random: Random): boolean {
  const tree = descendantsOf(hostPid)
  const last = tree.at(-1)
  if (last === undefined) return false
  const one = victim === 'tool' ? last : tree[random.below(tree.length)]
  return killPid((one ?? last).pid)
}

function killPid(pid: number): boolean {
  try {
    process.kill(pid, 'SIGKILL')
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
    throw error
  }
}
