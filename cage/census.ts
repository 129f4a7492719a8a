/**
 * What the cage is, read from outside. bwrap's exit code and cage-init's word prove nothing; this does.
 * Namespaces, ids, capabilities and environment while the cage waits; the descriptor table, the filter and
 * no_new_privs once it is armed. Anything but the expected is a refusal with both values.
 * Source: proc(5), namespaces(7), capabilities(7), seccomp(2).
 */
import { CONTROL_FD, STATUS_FD } from './plan.js'
import type { CageIdentity, ExecPolicy } from './policy.js'
import {
  NAMESPACES,
  readDescriptors,
  readEnvironment,
  readNamespaces,
  readStatus,
  type DescriptorRecord,
  type NamespaceName,
  type ProcessStatus,
} from './process-record.js'
import { refusedBy, refusedCheck } from './refusal.js'
import { STREAM_FD, TARGET_FD } from './seccomp.js'

/** Read while cage-init waits for its handoff. */
export interface WaitingCensus {
  /** Of cage-init, which becomes the tool; and of process 1 of the cage. In our pid namespace. */
  readonly pid: number
  readonly wardenPid: number
  readonly uid: number
  readonly gid: number
  readonly groups: readonly number[]
  readonly namespaces: Readonly<Record<NamespaceName, string>>
}

/** Read between `armed` and `go`. */
export interface CageCensus extends WaitingCensus {
  readonly descriptors: readonly DescriptorRecord[]
  readonly seccompMode: number
  readonly noNewPrivileges: number
}

const FILTER_MODE = 2

function requireEqual(check: string, expected: unknown, got: unknown): void {
  const [wanted, found] = [JSON.stringify(expected), JSON.stringify(got)]
  if (wanted !== found) throw refusedCheck(`census of ${check}`, wanted, found)
}

function requireNoPrivilege(who: string, status: ProcessStatus): void {
  const held = status.capabilities.map(set => set.toString(16))
  requireEqual(`${who} capabilities`, ['0', '0', '0', '0', '0'], held)
  requireEqual(`${who} no_new_privs`, 1, status.noNewPrivileges)
}

function requireIdentity(status: ProcessStatus, identity: CageIdentity): void {
  requireEqual('uids', Array(4).fill(identity.uid), status.uids)
  requireEqual('gids', Array(4).fill(identity.gid), status.gids)
  // Root's launch drops every supplementary group; another user cannot, and keeps its own.
  if (process.geteuid!() === 0) requireEqual('supplementary groups', [], status.groups)
}

let hostNamespaces: Record<NamespaceName, string> | null = null

/** Ours are read once: no code of ours ever enters another. */
function requireOwnNamespaces(found: Record<NamespaceName, string>): void {
  hostNamespaces ??= readNamespaces('self')
  const host = hostNamespaces
  const shared = NAMESPACES.filter(name => found[name] === host[name])
  requireEqual('shared namespaces', [], shared)
}

/** Process 1 must be our own, filtered: an unfiltered one of the same uid would be the tool's way out. */
function requireWarden(pid: number): void {
  const status = readStatus(pid)
  requireEqual('the warden as process 1', 1, status.namespacePids.at(-1))
  requireNoPrivilege('warden', status)
  requireEqual('warden seccomp mode', FILTER_MODE, status.seccompMode)
}

export function takeWaitingCensus(pid: number, identity: CageIdentity): WaitingCensus {
  try {
    const status = readStatus(pid)
    const namespaces = readNamespaces(pid)
    requireOwnNamespaces(namespaces)
    requireIdentity(status, identity)
    requireNoPrivilege('cage-init', status)
    requireEqual('environment', ['PWD=/'], readEnvironment(pid))
    requireWarden(status.parentPid)
    return { pid, wardenPid: status.parentPid, ...identity, groups: status.groups, namespaces }
  } catch (error) {
    throw refusedBy(error, 'census')
  }
}

/** What /proc names a descriptor: the whole of it, or how it starts. */
interface ExpectedDescriptor {
  readonly fd: number
  readonly kind: (target: string) => boolean
  readonly expected: string
  readonly closeOnExec: boolean
}

const startsWith = (start: string) => ({
  expected: `${start}…`,
  kind: (target: string): boolean => target.startsWith(start),
})

const isExactly = (whole: string) => ({
  expected: whole,
  kind: (target: string): boolean => target === whole,
})

/** Of devices /dev/null alone, so no terminal; no file, which could be opened once more. */
const isInput = {
  expected: '/dev/null or a pipe',
  kind: (target: string): boolean => target === '/dev/null' || target.startsWith('pipe:['),
}

/** After the exec only those without close-on-exec are left: 0, 1, 2 and the stream. */
function expectedDescriptors(streamInode: bigint, exec: ExecPolicy): ExpectedDescriptor[] {
  const common = [
    { fd: 0, ...isInput, closeOnExec: false },
    { fd: 1, ...startsWith('pipe:['), closeOnExec: false },
    { fd: 2, ...startsWith('pipe:['), closeOnExec: false },
    { fd: STREAM_FD, ...isExactly(`socket:[${streamInode}]`), closeOnExec: false },
    { fd: CONTROL_FD, ...startsWith('socket:['), closeOnExec: true },
  ]
  if (exec === 'allowed') return common
  return [
    ...common,
    { fd: STATUS_FD, ...isExactly('anon_inode:seccomp notify'), closeOnExec: true },
    { fd: TARGET_FD, ...startsWith('/'), closeOnExec: true },
  ]
}

function requireDescriptor(expected: ExpectedDescriptor, found: DescriptorRecord): void {
  const { fd } = expected
  if (!expected.kind(found.target)) {
    throw refusedCheck(`census of descriptor ${fd}`, expected.expected, found.target)
  }
  requireEqual(`close-on-exec of descriptor ${fd}`, expected.closeOnExec, found.closeOnExec)
}

export interface ArmedExpectation {
  /** The very socket that was handed over, by its inode. */
  readonly streamInode: bigint
  readonly exec: ExecPolicy
}

export function takeArmedCensus(waiting: WaitingCensus, armed: ArmedExpectation): CageCensus {
  try {
    const descriptors = readDescriptors(waiting.pid)
    const expected = expectedDescriptors(armed.streamInode, armed.exec)
    requireEqual(
      'descriptor numbers',
      expected.map(({ fd }) => fd),
      descriptors.map(({ fd }) => fd),
    )
    expected.forEach((entry, index) => requireDescriptor(entry, descriptors[index]!))
    requireEqual(
      'O_NONBLOCK on the stream',
      false,
      descriptors.find(({ fd }) => fd === STREAM_FD)?.nonBlocking,
    )
    const { seccompMode, noNewPrivileges } = readStatus(waiting.pid)
    requireEqual('seccomp mode', FILTER_MODE, seccompMode)
    requireEqual('no_new_privs', 1, noNewPrivileges)
    return { ...waiting, descriptors, seccompMode, noNewPrivileges }
  } catch (error) {
    throw refusedBy(error, 'census')
  }
}
