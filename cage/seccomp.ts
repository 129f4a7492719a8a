/**
 * What the tool, and process 1 beside it, may ask of the kernel. Pure: profile and exec rule in, program out.
 * The tool's filter lets through what is not named, and names every way to a new connection, to another process's
 * memory, to more privilege, and back out of this filter. Whatever a later kernel adds is ENOSYS.
 * Source: seccomp(2), execveat(2), ioctl_tty(2), clone(2), user_namespaces(7).
 */
import { compileFilter, type ArgumentTest, type Decision, type Instruction, type Verdict } from './bpf.js'
import { HIGHEST_KNOWN_CALL, callNumber, type Architecture, type CallName } from './system-calls.js'

export type FilterProfile = 'native' | 'node' | 'python'
export type ExecPolicy = 'once' | 'allowed'

/** The tool's stream and the slot of its executable, fixed for every cage. */
export const STREAM_FD = 8
export const TARGET_FD = 255

const ABIS: Record<Architecture, { readonly audit: number; readonly foreignAbiBit: number | null }> = {
  x64: { audit: 0xc000_003e, foreignAbiBit: 0x4000_0000 },
  arm64: { audit: 0xc000_00b7, foreignAbiBit: null },
}

// biome-ignore format: one line a family
const DENIED: readonly CallName[] = [
  // New connections, and sockets that could become one; io_uring opens and connects past a filter.
  'socket', 'connect', 'bind', 'listen', 'accept', 'accept4',
  'io_uring_setup', 'io_uring_enter', 'io_uring_register',
  // Another process's memory and descriptors.
  'ptrace', 'process_vm_readv', 'process_vm_writev', 'pidfd_getfd', 'kcmp', 'process_madvise', 'process_mrelease',
  // Keys of the session that launched us; programs and counters in the kernel.
  'keyctl', 'add_key', 'request_key', 'bpf', 'perf_event_open', 'userfaultfd', 'fanotify_init',
  // The view, and namespaces in which it could be changed.
  'mount', 'umount2', 'pivot_root', 'chroot', 'open_tree', 'move_mount', 'fsopen', 'fsconfig', 'fsmount', 'fspick',
  'mount_setattr', 'statmount', 'listmount', 'setns', 'unshare', 'open_by_handle_at', 'name_to_handle_at',
  // A second filter with a listener of its own would overrule the one exec.
  'seccomp', 'lsm_set_self_attr',
  // The machine. All need capabilities that are gone; their code need not be reachable at all.
  'kexec_load', 'kexec_file_load', 'init_module', 'finit_module', 'delete_module', 'create_module',
  'get_kernel_syms', 'query_module', 'reboot', 'swapon', 'swapoff', 'sethostname', 'setdomainname', 'syslog',
  'vhangup', 'acct', 'adjtimex', 'clock_adjtime', 'clock_settime', 'settimeofday', 'quotactl', 'quotactl_fd',
  'lookup_dcookie', 'nfsservctl', 'mbind', 'set_mempolicy', 'set_mempolicy_home_node', 'migrate_pages',
  'move_pages', 'iopl', 'ioperm', 'modify_ldt', 'uselib', '_sysctl', 'sysfs', 'ustat', 'vserver',
]

const ON_STREAM_ONLY: readonly CallName[] = [
  'sendto',
  'sendmsg',
  'sendmmsg',
  'recvfrom',
  'recvmsg',
  'recvmmsg',
  'shutdown',
]

const ALL_BITS = 0xffff_ffff
const AT_EMPTY_PATH = 0x1000
const AF_UNIX = 1
const SOCK_STREAM = 1
const SOCK_FLAGS = 0o2004000
const SOL_SOCKET = 1
const SO_RCVTIMEO = 20
const SO_SNDTIMEO = 21
const PR_SET_SECCOMP = 22
const PERSONALITY_QUERY = ALL_BITS
const TIOCSTI = 0x5412
const TIOCLINUX = 0x541c
const TIOCSETD = 0x5423

/** NEWNS NEWCGROUP NEWUTS NEWIPC NEWUSER NEWPID NEWNET; NEWTIME only exists for clone3 and unshare. */
const CLONE_NEW_MASK = 0x7e02_0000

const is = (argument: ArgumentTest['argument'], ...anyOf: number[]): ArgumentTest => ({
  argument,
  mask: ALL_BITS,
  anyOf,
})
const always = (verdict: Verdict): Decision => ({ tests: [], matched: verdict, otherwise: verdict })
const allowIf = (...tests: ArgumentTest[]): Decision => ({ tests, matched: 'allow', otherwise: 'eperm' })
const refuseIf = (...tests: ArgumentTest[]): Decision => ({ tests, matched: 'eperm', otherwise: 'allow' })

type Rule = readonly [CallName, Decision]

/** SOCK_DGRAM pairs can be connected to another address later; stream pairs cannot. */
function socketPairRule(profile: FilterProfile): Rule {
  if (profile === 'native') return ['socketpair', always('eperm')]
  const type: ArgumentTest = { argument: 1, mask: ALL_BITS & ~SOCK_FLAGS, anyOf: [SOCK_STREAM] }
  return ['socketpair', allowIf(is(0, AF_UNIX), type)]
}

/** Once: the listener answers the first and is gone with it; a path in the other arguments cannot be seen here. */
function execRules(policy: ExecPolicy): Rule[] {
  if (policy === 'allowed') return []
  const once: Decision = {
    tests: [is(0, TARGET_FD), is(4, AT_EMPTY_PATH)],
    matched: 'notify',
    otherwise: 'eperm',
  }
  return [
    ['execve', always('eperm')],
    ['execveat', once],
  ]
}

function toolRules(profile: FilterProfile, exec: ExecPolicy): Rule[] {
  return [
    ...DENIED.map((name): Rule => [name, always('eperm')]),
    ...ON_STREAM_ONLY.map((name): Rule => [name, allowIf(is(0, STREAM_FD))]),
    ['setsockopt', allowIf(is(0, STREAM_FD), is(1, SOL_SOCKET), is(2, SO_RCVTIMEO, SO_SNDTIMEO))],
    socketPairRule(profile),
    ...execRules(exec),
    [
      'clone',
      { tests: [{ argument: 0, mask: CLONE_NEW_MASK, anyOf: [0] }], matched: 'allow', otherwise: 'eperm' },
    ],
    // Its flags lie in memory, where a filter cannot look; every libc falls back to clone.
    ['clone3', always('enosys')],
    ['ioctl', refuseIf(is(1, TIOCSTI, TIOCLINUX, TIOCSETD))],
    ['prctl', refuseIf(is(0, PR_SET_SECCOMP))],
    ['personality', allowIf(is(0, 0, PERSONALITY_QUERY))],
  ]
}

/** Process 1: waits, writes how the tool ended, ends. Anything else is not it any more. */
function wardenRules(statusFd: number): Rule[] {
  const plain: CallName[] = ['close', 'wait4', 'exit', 'exit_group', 'rt_sigreturn', 'restart_syscall']
  return [
    ...plain.map((name): Rule => [name, always('allow')]),
    ['write', { tests: [is(0, statusFd)], matched: 'allow', otherwise: 'kill' }],
  ]
}

function compile(architecture: Architecture, rules: readonly Rule[], unlisted: Verdict): Instruction[] {
  const decisions = new Map<number, Decision>()
  for (const [name, decision] of rules) {
    const number = callNumber(architecture, name)
    if (number !== undefined) decisions.set(number, decision)
  }
  const { audit, foreignAbiBit } = ABIS[architecture]
  return compileFilter({
    auditArchitecture: audit,
    foreignAbiBit,
    highestKnownCall: HIGHEST_KNOWN_CALL,
    decisions,
    unlisted,
  })
}

const compiled = new Map<string, readonly Instruction[]>()

/** There are few different programs; each is compiled once, so that a launch does not wait for it. */
function once(key: string, compileIt: () => readonly Instruction[]): readonly Instruction[] {
  const known = compiled.get(key)
  if (known !== undefined) return known
  const program = compileIt()
  compiled.set(key, program)
  return program
}

export function toolFilter(
  architecture: Architecture,
  rules: { readonly profile: FilterProfile; readonly exec: ExecPolicy },
): readonly Instruction[] {
  const { profile, exec } = rules
  return once(`tool ${architecture} ${profile} ${exec}`, () =>
    compile(architecture, toolRules(profile, exec), 'allow'),
  )
}

export function wardenFilter(architecture: Architecture, statusFd: number): readonly Instruction[] {
  return once(`warden ${architecture} ${statusFd}`, () =>
    compile(architecture, wardenRules(statusFd), 'kill'),
  )
}
