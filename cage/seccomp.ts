/**
 * What the tool, and process 1 beside it, may ask of the kernel. Pure: profile and exec rule in, program out.
 * The tool's filter lets through what is not named, and names every way to a new connection, to another process's
 * memory, to more privilege, past the limits, and back out of this filter. Of ioctl, and of what a socket can be
 * asked, only what is listed passes. Whatever a later kernel adds is ENOSYS.
 * Source: seccomp(2), execveat(2), ioctl_tty(2), netdevice(7), socket(7), mmap(2), clone(2), user_namespaces(7).
 */
import { compileFilter, type ArgumentTest, type Decision, type Instruction, type Verdict } from './bpf.js'
import { ABSENT, DENIED, ON_STREAM_ONLY, type StreamCall } from './denied-calls.js'
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

const ALL_BITS = 0xffff_ffff
const AT_EMPTY_PATH = 0x1000
const AF_UNIX = 1
const SOCK_STREAM = 1
const SOCK_FLAGS = 0o2004000
const SOL_SOCKET = 1
const SO_RCVTIMEO = 20
const SO_SNDTIMEO = 21
const MSG_OOB = 1
const PR_SET_SECCOMP = 22
const PERSONALITY_QUERY = ALL_BITS
const F_SETLEASE = 1024
const F_NOTIFY = 1026

/**
 * What a program asks of its own stream: TYPE ERROR SNDBUF RCVBUF PEERCRED RCVTIMEO SNDTIMEO ACCEPTCONN PROTOCOL
 * DOMAIN. Not among them: PEERPIDFD, a handle on a process outside, and PEERGROUPS.
 */
const SOCKET_OPTIONS = [3, 4, 7, 8, 17, SO_RCVTIMEO, SO_SNDTIMEO, 30, 38, 39]

/**
 * Whether there is a terminal, how wide it is, how many bytes wait, blocking and close-on-exec, cloning a file, its
 * extents and attributes. Descriptor 8 belongs to the host's network namespace: any request of the 0x89 family
 * would be answered with the host's interfaces.
 */
const IOCTLS = [
  0x5401, 0x5411, 0x5413, 0x541b, 0x5421, 0x5450, 0x5451, 0x802c_542a, 0x4004_9409, 0x4020_940d, 0xc020_660b,
  0x8008_6601,
]

/** SECCOMP_IOCTL_NOTIF_RECV and _SEND: cage-init's own answer to the one exec, after its filter stands. */
const LISTENER_IOCTLS = [0xc050_2100, 0xc018_2101]

/** MAP_SHARED, MAP_ANONYMOUS, MAP_GROWSDOWN: memory of several, and stacks, count against no data limit. */
const UNCOUNTED_MAPPING_BITS = 0x121
const COUNTED_MAPPINGS = [0, 0x01, 0x20]

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

/** Urgent bytes stand outside of the stream's order, and their code was a way out of other sandboxes before. */
function onStreamOnly({ name, flags }: StreamCall): Rule {
  const noUrgent: ArgumentTest[] = flags === null ? [] : [{ argument: flags, mask: MSG_OOB, anyOf: [0] }]
  return [name, allowIf(is(0, STREAM_FD), ...noUrgent)]
}

function toolRules(profile: FilterProfile, exec: ExecPolicy): Rule[] {
  return [
    ...DENIED.map((name): Rule => [name, always('eperm')]),
    ...ABSENT.map((name): Rule => [name, always('enosys')]),
    ...ON_STREAM_ONLY.map(onStreamOnly),
    ['getsockopt', allowIf(is(1, SOL_SOCKET), is(2, ...SOCKET_OPTIONS))],
    ['setsockopt', allowIf(is(0, STREAM_FD), is(1, SOL_SOCKET), is(2, SO_RCVTIMEO, SO_SNDTIMEO))],
    socketPairRule(profile),
    ...execRules(exec),
    [
      'clone',
      { tests: [{ argument: 0, mask: CLONE_NEW_MASK, anyOf: [0] }], matched: 'allow', otherwise: 'eperm' },
    ],
    ['ioctl', allowIf(is(1, ...IOCTLS, ...(exec === 'once' ? LISTENER_IOCTLS : [])))],
    // A lease delays whoever writes the file outside; a notification tells what others do.
    ['fcntl', refuseIf(is(1, F_SETLEASE, F_NOTIFY))],
    ['mmap', allowIf({ argument: 3, mask: UNCOUNTED_MAPPING_BITS, anyOf: COUNTED_MAPPINGS })],
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
