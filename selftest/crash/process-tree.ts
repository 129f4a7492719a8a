// Owns the question which processes stand below one of ours: a host's cage is bwrap, process 1 of the cage, and the
// tool. Read from /proc; one that is dead or goes away meanwhile is left out.
// Must never: signal what does not descend from the given process.
// Source: proc_pid_stat(5), proc_pid_children(5).
import { readdirSync, readFileSync } from 'node:fs'

export interface TreeProcess {
  readonly pid: number
  readonly parentPid: number
  /** As the process names itself, at most 15 characters. */
  readonly name: string
}

/** Every living descendant of a process, parents before children. */
export function descendantsOf(pid: number): TreeProcess[] {
  const children = new Map<number, TreeProcess[]>()
  for (const one of allProcesses()) {
    children.set(one.parentPid, [...(children.get(one.parentPid) ?? []), one])
  }
  const found: TreeProcess[] = []
  const queue = [...(children.get(pid) ?? [])]
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    found.push(next)
    queue.push(...(children.get(next.pid) ?? []))
  }
  return found
}

function allProcesses(): TreeProcess[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .flatMap(name => processOf(Number(name)) ?? [])
}

function processOf(pid: number): TreeProcess | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name stands in parentheses and may hold any byte, a parenthesis too.
    const end = stat.lastIndexOf(')')
    const [state = 'X', parentPid = '0'] = stat.slice(end + 2).split(' ')
    if (state === 'Z' || state === 'X') return undefined
    return { pid, parentPid: Number(parentPid), name: stat.slice(stat.indexOf('(') + 1, end) }
  } catch {
    return undefined
  }
}
