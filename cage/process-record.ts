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

/** The words of one line of /proc/PID/status. */
function statusWords(status: string, name: string): string[] {
  const start = status.indexOf(`\n${name}:`)
  if (start < 0) throw refusedCheck('census', `${name} in /proc/PID/status`, 'none')
  const line = status.slice(start + name.length + 2, status.indexOf('\n', start + 1))
  return line.split(/\s+/).filter(word => word !== '')
}

export function readStatus(pid: number): ProcessStatus {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1')
  const numbers = (name: string): number[] => statusWords(status, name).map(Number)
  const one = (name: string): number => numbers(name)[0] ?? Number.NaN
  const set = (name: string): bigint => BigInt(`0x${statusWords(status, name)[0]}`)
  return {
    parentPid: one('PPid'),
    namespacePids: numbers('NSpid'),
    uids: numbers('Uid'),
    gids: numbers('Gid'),
    groups: numbers('Groups'),
    capabilities: ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'].map(set),
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
