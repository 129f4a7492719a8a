/**
 * Policy and the launcher's grounds in, exact bwrap arguments and cage-init plan out. Pure: the same input gives
 * the same bytes, compared with golden files. Never reads the machine and never spawns.
 * Source: bwrap(1) 0.8; pid_namespaces(7); setrlimit(2).
 */
import { FRAME_PREFIX_BYTES } from '../protocol/limits.js'
import { encodeInitPlan, type ResourceLimit } from './plan-bytes.js'
import type { CageLimits, CagePolicy, GivenFile, ReadOnlyBind } from './policy.js'
import { toolFilter, wardenFilter } from './seccomp.js'
import type { Architecture } from './system-calls.js'

/** Option descriptors start at 10: bwrap consumes a data descriptor once, and 8 is the tool's stream. */
export const ARGUMENTS_FD = 10
export const PLAN_FD = 11
export const CONTROL_FD = 12
export const STATUS_FD = 13
export const FIRST_DATA_FD = 14

export const HELPER_AT = '/run/chio-cage/init'
export const TOOL_FOLDER = '/run/chio-cage/tool'
export const REQUEST_FOLDER = '/run/chio'

/** What of the host's root belongs to /usr: folders, or links into it on a merged system. */
export interface HostView {
  readonly links: readonly { readonly at: string; readonly target: string }[]
  readonly folders: readonly string[]
}

/** A file at its place: bound by path where the cage's uid reaches it, else copied from a descriptor. */
export interface Placement {
  readonly at: string
  readonly from: { readonly path: string } | { readonly descriptor: number }
}

export interface LaunchGrounds {
  readonly architecture: Architecture
  readonly view: HostView
  readonly placements: readonly Placement[]
}

export interface CagePlan {
  /** For `--args`, a NUL after each. */
  readonly options: readonly string[]
  /** After the `--` of the real argument vector. */
  readonly command: readonly string[]
  readonly initPlan: Uint8Array
}

const PAGE_BYTES = 4096
const STACK_BYTES = 8 * 1024 * 1024
const PENDING_SIGNALS = 1024

const WALLS = [
  '--unshare-all',
  '--unshare-user',
  '--unshare-cgroup',
  '--disable-userns',
  '--die-with-parent',
  '--new-session',
  // cage-init is process 1 itself: bwrap's own would run unfiltered under the tool's uid.
  '--as-pid-1',
  '--cap-drop',
  'ALL',
  '--clearenv',
  '--hostname',
  'cage',
]

const DEVICES = ['null', 'full', 'random', 'urandom']

/** One option with its values, which stay together. */
const option = (...words: string[]): string[] => words

/** The system's programs and libraries. The loader's cache and the alternatives hold no secret and may be absent. */
function systemView(view: HostView): string[] {
  return [
    ...option('--ro-bind', '/usr', '/usr'),
    ...view.links.flatMap(link => ['--symlink', link.target, link.at]),
    ...view.folders.flatMap(folder => ['--ro-bind', folder, folder]),
    ...option('--ro-bind-try', '/etc/ld.so.cache', '/etc/ld.so.cache'),
    ...option('--ro-bind-try', '/etc/alternatives', '/etc/alternatives'),
  ]
}

/** A new procfs of the cage's own pid namespace, never the host's. No tty, no pty, no disk among the devices. */
function kernelView(): string[] {
  return [
    ...option('--proc', '/proc'),
    ...DEVICES.flatMap(name => ['--dev-bind', `/dev/${name}`, `/dev/${name}`]),
    // Reads zeros like it; a shared mapping of the real one is memory that no limit counts.
    ...option('--symlink', '/dev/full', '/dev/zero'),
    ...option('--symlink', '/proc/self/fd', '/dev/fd'),
    ...['stdin', 'stdout', 'stderr'].flatMap((name, fd) => [
      '--symlink',
      `/proc/self/fd/${fd}`,
      `/dev/${name}`,
    ]),
  ]
}

function tmpfs(at: string, permissions: string, sizeBytes: number): string[] {
  return ['--perms', permissions, '--size', String(sizeBytes), '--tmpfs', at]
}

/** request.frame and request.json of the largest request, each rounded up to pages, and some room for inodes. */
export function requestFolderBytes(requestBytes: number): number {
  const pages = Math.ceil((requestBytes + FRAME_PREFIX_BYTES) / PAGE_BYTES)
  return 2 * pages * PAGE_BYTES + 16 * PAGE_BYTES
}

function scratch(policy: CagePolicy): string[] {
  return [
    ...tmpfs('/tmp', '1777', policy.scratchBytes),
    ...tmpfs('/dev/shm', '1777', policy.scratchBytes),
    ...tmpfs(REQUEST_FOLDER, '0700', requestFolderBytes(policy.requestBytes)),
  ]
}

function place(placement: Placement): string[] {
  if ('path' in placement.from) return ['--ro-bind', placement.from.path, placement.at]
  return ['--perms', '0555', '--ro-bind-data', String(placement.from.descriptor), placement.at]
}

const bind = (entry: ReadOnlyBind): string[] => ['--ro-bind', entry.source, entry.at]

/**
 * Linux numbers of <asm-generic/resource.h>. A core limit of 1 also stops a core_pattern pipe; 0 does not. An endless
 * stack moves every mapping to a known place; a launcher may be allowed real-time priorities, a tool is not.
 */
function resourceLimits(limits: CageLimits): ResourceLimit[] {
  const [CPU, FSIZE, DATA, STACK, CORE, NPROC, NOFILE, MEMLOCK] = [0, 1, 2, 3, 4, 6, 7, 8]
  const [SIGPENDING, MSGQUEUE, NICE, RTPRIO] = [11, 12, 13, 14]
  return [
    { resource: CPU, value: limits.cpuSeconds },
    { resource: FSIZE, value: limits.fileBytes },
    { resource: DATA, value: limits.dataBytes },
    { resource: STACK, value: STACK_BYTES },
    { resource: CORE, value: 1 },
    { resource: NPROC, value: limits.processes },
    { resource: MEMLOCK, value: 65_536 },
    { resource: SIGPENDING, value: PENDING_SIGNALS },
    { resource: MSGQUEUE, value: 0 },
    { resource: NICE, value: 0 },
    { resource: RTPRIO, value: 0 },
    { resource: NOFILE, value: limits.openFiles },
  ]
}

/** Whether the tool's own path is inside what the cage sees anyway. */
export function isInView(path: string, policy: Pick<CagePolicy, 'readOnly'>, view: HostView): boolean {
  const roots = [
    '/usr',
    ...view.links.map(link => link.at),
    ...view.folders,
    ...policy.readOnly.map(r => r.at),
  ]
  return roots.some(root => path === root || path.startsWith(`${root}/`))
}

/** Where a tool from outside the view is given: its name stays, so that argv and errors read as written. */
export function givenTool(path: string): GivenFile {
  return { source: path, at: `${TOOL_FOLDER}/${path.slice(path.lastIndexOf('/') + 1)}` }
}

function initPlan(policy: CagePolicy, grounds: LaunchGrounds): Uint8Array {
  const { path } = policy.tool
  const { architecture } = grounds
  return encodeInitPlan({
    exec: policy.exec,
    requestMaximumBytes: policy.requestBytes + FRAME_PREFIX_BYTES,
    directory: policy.directory,
    executable: isInView(path, policy, grounds.view) ? path : givenTool(path).at,
    argv: policy.tool.argv,
    environment: Object.entries(policy.environment).map(([name, value]) => `${name}=${value}`),
    limits: resourceLimits(policy.limits),
    wardenFilter: wardenFilter(architecture, STATUS_FD),
    toolFilter: toolFilter(architecture, { profile: policy.profile, exec: policy.exec }),
  })
}

/** The order of options is the order of mounts; the root is made read-only last, when all places exist. */
export function planCage(policy: CagePolicy, grounds: LaunchGrounds): CagePlan {
  const options = [
    ...WALLS,
    ...systemView(grounds.view),
    ...kernelView(),
    ...scratch(policy),
    ...policy.readOnly.flatMap(bind),
    ...grounds.placements.flatMap(place),
    ...option('--remount-ro', '/', '--chdir', '/'),
  ]
  const command = [HELPER_AT, String(PLAN_FD), String(CONTROL_FD), String(STATUS_FD)]
  return { options, command, initPlan: initPlan(policy, grounds) }
}
