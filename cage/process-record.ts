/**
 * What /proc says of one process, parsed strictly: a line that is missing is a refusal, never a default.
 * Reads only; which values are right is decided by the census.
 * Source: proc_pid_status(5), proc_pid_fd(5), proc_pid_fdinfo(5), namespaces(7).
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { refusedCheck } from './refusal.js'

export interface ProcessStatus {
  readonly parentPid: number
  /** The process's number in each nested pid namespace, ours first. */
  readonly namespacePids: readonly number[]
  /** real, effective, saved, file system */
  readonly uids: readonly number[]
  readonly gids: readonly number[]
  readonly groups: readonly number[]
  /** inheritable, permitted, effective, bounding, ambient */
  readonly capabilities: readonly bigint[]
  readonly noNewPrivileges: number
  /** 2 = filter */
  readonly seccompMode: number
}

export interface DescriptorRecord {
  readonly fd: number
  /** As `pipe:[12]`, `socket:[34]`, `/dev/null`. */
  readonly target: string
  readonly closeOnExec: boolean
  readonly nonBlocking: boolean
}

const CLOSE_ON_EXEC = 0o2000000
const NON_BLOCKING = 0o4000

/** All kinds that a cage must not share with its launcher. */
export const NAMESPACES = ['user', 'mnt', 'pid', 'net', 'ipc', 'uts', 'cgroup'] as const
export type NamespaceName = (typeof NAMESPACES)[number]

export function readStatus(pid: number): ProcessStatus {
  const fields = new Map<string, string[]>()
  for (const line of readFileSync(`/proc/${pid}/status`, 'latin1').split('\n')) {
    const colon = line.indexOf(':')
    if (colon > 0)
      fields.set(
        line.slice(0, colon),
        line
          .slice(colon + 1)
          .trim()
          .split(/\s+/),
      )
  }
  const words = (name: string): string[] => {
    const found = fields.get(name)
    if (found === undefined) throw refusedCheck('census', `${name} in /proc/PID/status`, 'none')
    return found.filter(word => word !== '')
  }
  const numbers = (name: string): number[] => words(name).map(word => Number.parseInt(word, 10))
  const one = (name: string): number => numbers(name)[0] ?? Number.NaN
  return {
    parentPid: one('PPid'),
    namespacePids: numbers('NSpid'),
    uids: numbers('Uid'),
    gids: numbers('Gid'),
    groups: numbers('Groups'),
    capabilities: ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'].map(name =>
      BigInt(`0x${words(name)[0]}`),
    ),
    noNewPrivileges: one('NoNewPrivs'),
    seccompMode: one('Seccomp'),
  }
}

/** Each as the kernel names it, `net:[4026531840]`. */
export function readNamespaces(pid: number | 'self'): Record<NamespaceName, string> {
  return Object.fromEntries(
    NAMESPACES.map(name => [name, readlinkSync(`/proc/${pid}/ns/${name}`)]),
  ) as Record<NamespaceName, string>
}

/** The initial environment, one `NAME=value` each. */
export function readEnvironment(pid: number): string[] {
  return readFileSync(`/proc/${pid}/environ`, 'latin1')
    .split('\0')
    .filter(entry => entry !== '')
}

function readFlags(pid: number, fd: number): number {
  const match = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'latin1'))
  if (match === null) throw refusedCheck('census', `flags of descriptor ${fd}`, 'none')
  return Number.parseInt(match[1]!, 8)
}

export function readDescriptors(pid: number): DescriptorRecord[] {
  const numbers = readdirSync(`/proc/${pid}/fd`).map(Number)
  return numbers
    .sort((a, b) => a - b)
    .map(fd => {
      const flags = readFlags(pid, fd)
      const closeOnExec = (flags & CLOSE_ON_EXEC) !== 0
      const nonBlocking = (flags & NON_BLOCKING) !== 0
      return { fd, target: readlinkSync(`/proc/${pid}/fd/${fd}`), closeOnExec, nonBlocking }
    })
}
