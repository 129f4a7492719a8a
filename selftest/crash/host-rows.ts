// Owns the rows in which a host ends, the process that becomes the tool, or the tool itself.
// Must never: kill anything but what this very run started.
import { descendantsOf } from './process-tree.js'
import type { CrashWorld } from './crash-world.js'
import type { CutpointRow } from './cutpoint.js'
import type { HostPool } from './host-pool.js'
import { runOnce } from './stories.js'
import type { Told } from './told.js'

export interface HostRowSeen {
  /** Undefined: the host died. */
  readonly told: Told | undefined
  readonly isReached: boolean
}

/** `cage-init` names itself so. */
const INIT = 'init'

/** What a tool does until it ends itself; `$$` is the shell's own. */
const TOOLS: Readonly<Record<string, string>> = {
  'tool.started': 'kill -9 $$',
  'tool.half_written': 'head -c 100 /run/chio/request.frame >&8; kill -9 $$',
  'tool.written': 'cat /run/chio/request.frame >&8; kill -9 $$',
  'tool.half_answered': 'cat /run/chio/request.frame >&8; head -c 10 <&8 >/dev/null; kill -9 $$',
  'tool.answered': 'cat /run/chio/request.frame >&8; cat <&8 >/dev/null; kill -9 $$',
}

const MOMENTS: Readonly<Record<string, string>> = {
  'cage-init.waiting': 'start.before',
  'cage-init.armed': 'armed',
}

export async function hostRow(
  world: CrashWorld,
  hosts: HostPool,
  { row, body }: { readonly row: CutpointRow; readonly body: string },
): Promise<HostRowSeen> {
  switch (row.who) {
    case 'host':
      return hostDies(world, hosts, { row, body })
    case 'cage-init':
      return initDies(world, row, body)
    default: {
      const told = await runOnce(world, body, ['/bin/sh', '-c', TOOLS[row.name] ?? 'exit 1'])
      return { told, isReached: row.name in TOOLS }
    }
  }
}

/** The host stands still at its moment, and is killed there. */
async function hostDies(
  world: CrashWorld,
  hosts: HostPool,
  { row, body }: { readonly row: CutpointRow; readonly body: string },
): Promise<HostRowSeen> {
  const standsAt = row.name.slice('host.'.length)
  const host = await hosts.take()
  const came = await host.runTo({ ...world.order(body), standsAt })
  await hosts.replace()
  return { told: came === true ? undefined : came, isReached: came === true }
}

/** The process in the cage is killed from outside, while the host goes on. */
async function initDies(world: CrashWorld, row: CutpointRow, body: string): Promise<HostRowSeen> {
  let killed = 0
  world.atMoment = moment => {
    if (moment !== MOMENTS[row.name]) return
    const last = descendantsOf(process.pid).findLast(({ name }) => name === INIT)
    if (last === undefined) return
    process.kill(last.pid, 'SIGKILL')
    killed += 1
  }
  try {
    return { told: await runOnce(world, body), isReached: killed === 1 }
  } finally {
    world.atMoment = () => undefined
  }
}
