/**
 * What a cage is made of: the tool, what it may see, what it may use. Types, defaults and bounds; no effect.
 * Nothing is inherited from the launcher: what policy does not name is not in the cage.
 * Source: bwrap(1), setrlimit(2), the launch policy of the brokered profile (argv and environment bounds).
 */
import { MAXIMUM_REQUEST_FRAME_BYTES } from '../protocol/limits.js'
import { checkEnvironment } from './environment.js'
import type { ExecPolicy, FilterProfile } from './seccomp.js'

export type { ExecPolicy, FilterProfile } from './seccomp.js'

export interface ToolCommand {
  /** Absolute path of an executable on this machine; outside the view it is given to the cage. */
  readonly path: string
  /** The whole argument vector, the tool's own name first. */
  readonly argv: readonly string[]
}

/** A file or folder of this machine, seen read-only at `at`. */
export interface ReadOnlyBind {
  readonly source: string
  readonly at: string
}

/** One file that the launcher opens and copies in, for what the cage's uid cannot reach itself. */
export interface GivenFile {
  readonly source: string
  readonly at: string
}

export interface CageLimits {
  readonly cpuSeconds: number
  readonly dataBytes: number
  readonly fileBytes: number
  /** Threads count; the tool's own process and process 1 are two of them. */
  readonly processes: number
  /** After the exec. The kernel keeps the stream's slot 8 and the standard three below it. */
  readonly openFiles: number
}

export interface CageIdentity {
  readonly uid: number
  readonly gid: number
}

/**
 * 'null' is /dev/null; 'pipe' is driven by the host. Never an open file: through /proc/self/fd/0 a tool would open it
 * once more, for writing where its uid may, although nothing of it is in the view.
 */
export type ToolInput = 'null' | 'pipe'

export interface CagePolicy {
  readonly tool: ToolCommand
  readonly files: readonly GivenFile[]
  readonly environment: Readonly<Record<string, string>>
  readonly readOnly: readonly ReadOnlyBind[]
  /** Working directory inside the cage. */
  readonly directory: string
  readonly profile: FilterProfile
  readonly exec: ExecPolicy
  readonly limits: CageLimits
  /** Size of /tmp, and of /dev/shm. */
  readonly scratchBytes: number
  /** The largest request frame body that a handoff may bring. */
  readonly requestBytes: number
  readonly input: ToolInput
  /** How long the tool may live on after its outcome stands. */
  readonly graceMs: number
  /** Whom the cage runs as when root launches; null = the launching user itself. */
  readonly identity: CageIdentity | null
}

const MEBIBYTE = 1024 * 1024

/** argv of the launch policy: 1..256 entries, each at most 16 KiB, 128 KiB in all, no NUL. */
const ARGUMENTS_MAXIMUM = 256
const ARGUMENT_MAXIMUM_BYTES = 16 * 1024
const ARGUMENTS_MAXIMUM_BYTES = 128 * 1024

const DEFAULT_ENVIRONMENT = {
  PATH: '/usr/local/bin:/usr/bin:/bin',
  LANG: 'C.UTF-8',
  HOME: '/tmp',
  TMPDIR: '/tmp',
}

/** Node's heap and its threads need more room than a plain program. */
const DEFAULT_LIMITS: Record<FilterProfile, CageLimits> = {
  native: {
    cpuSeconds: 60,
    dataBytes: 1024 * MEBIBYTE,
    fileBytes: 64 * MEBIBYTE,
    processes: 64,
    openFiles: 64,
  },
  python: {
    cpuSeconds: 60,
    dataBytes: 1024 * MEBIBYTE,
    fileBytes: 64 * MEBIBYTE,
    processes: 64,
    openFiles: 64,
  },
  node: {
    cpuSeconds: 60,
    dataBytes: 4096 * MEBIBYTE,
    fileBytes: 64 * MEBIBYTE,
    processes: 96,
    openFiles: 64,
  },
}

export type CagePolicyChoices = Pick<CagePolicy, 'tool'> & Partial<Omit<CagePolicy, 'tool'>>

/** Fills what is not chosen with the closed default, and checks the whole. */
export function cagePolicy(choices: CagePolicyChoices): CagePolicy {
  const profile = choices.profile ?? 'native'
  const policy: CagePolicy = {
    files: [],
    environment: DEFAULT_ENVIRONMENT,
    readOnly: [],
    directory: '/tmp',
    exec: 'once',
    limits: DEFAULT_LIMITS[profile],
    scratchBytes: 16 * MEBIBYTE,
    requestBytes: MAXIMUM_REQUEST_FRAME_BYTES,
    input: 'null',
    graceMs: 5_000,
    identity: null,
    ...choices,
    profile,
  }
  checkPolicy(policy)
  return policy
}

export function checkPolicy(policy: CagePolicy): void {
  checkInsidePath(policy.tool.path, 'tool.path')
  checkArguments(policy.tool.argv)
  checkEnvironment(policy.environment)
  checkInsidePath(policy.directory, 'directory')
  for (const bind of policy.readOnly) checkBind(bind)
  for (const file of policy.files) {
    checkInsidePath(file.source, 'files.source')
    checkInsidePath(file.at, 'files.at')
  }
  checkLimits(policy)
}

function checkArguments(argv: readonly string[]): void {
  if (argv.length < 1 || argv.length > ARGUMENTS_MAXIMUM) {
    throw new RangeError(`"tool.argv" expected 1 to ${ARGUMENTS_MAXIMUM} arguments, got ${argv.length}`)
  }
  const bytes = argv.map(argument => Buffer.byteLength(argument))
  const total = bytes.reduce((sum, length) => sum + length, 0)
  if (bytes.some(length => length > ARGUMENT_MAXIMUM_BYTES) || total > ARGUMENTS_MAXIMUM_BYTES) {
    throw new RangeError(
      `"tool.argv" expected at most ${ARGUMENT_MAXIMUM_BYTES} bytes each and ${ARGUMENTS_MAXIMUM_BYTES} in all, got ${total}`,
    )
  }
  if (argv.some(argument => argument.includes('\0'))) {
    throw new RangeError('"tool.argv" expected no NUL character, got one')
  }
}

function checkInsidePath(path: string, title: string): void {
  const parts = path.split('/').slice(1)
  const plain = parts.every(part => part !== '' && part !== '.' && part !== '..')
  if (path.startsWith('/') && !path.includes('\0') && (path === '/' || plain)) return
  throw new RangeError(`"${title}" expected an absolute path without "..", "." or empty parts`)
}

/** A bound /proc shows the host's processes; /run, /dev and / bring its sockets and devices in. */
const NEVER_BOUND = ['/proc', '/sys', '/dev', '/run', '/var/run']

/** These are the cage's own: nothing may be laid over them. */
const OWN_PLACES = ['/proc', '/dev', '/run', '/tmp', '/usr']

const isBelow = (path: string, folder: string): boolean => path === folder || path.startsWith(`${folder}/`)

function checkBind(bind: ReadOnlyBind): void {
  checkInsidePath(bind.source, 'readOnly.source')
  checkInsidePath(bind.at, 'readOnly.at')
  if (bind.source === '/' || NEVER_BOUND.some(folder => isBelow(bind.source, folder))) {
    throw new RangeError('"readOnly.source" expected no path of /, /proc, /sys, /dev or /run, got one')
  }
  if (bind.at === '/' || OWN_PLACES.some(folder => isBelow(bind.at, folder))) {
    throw new RangeError(
      `"readOnly.at" expected a place outside / and ${OWN_PLACES.join(', ')}, got one inside`,
    )
  }
}

function requireRange(value: number, title: string, minimum: number, maximum: number): void {
  if (Number.isSafeInteger(value) && value >= minimum && value <= maximum) return
  throw new RangeError(`"${title}" expected an integer from ${minimum} to ${maximum}, got ${value}`)
}

function checkLimits(policy: CagePolicy): void {
  const { limits } = policy
  requireRange(limits.cpuSeconds, 'limits.cpuSeconds', 1, 86_400)
  requireRange(limits.dataBytes, 'limits.dataBytes', MEBIBYTE, 2 ** 45)
  requireRange(limits.fileBytes, 'limits.fileBytes', 4096, 2 ** 45)
  requireRange(limits.processes, 'limits.processes', 4, 4096)
  // 255 must stay out of reach of the tool: no descriptor that it opens can take the slot of its executable.
  requireRange(limits.openFiles, 'limits.openFiles', 16, 128)
  requireRange(policy.graceMs, 'graceMs', 0, 600_000)
  requireRange(policy.scratchBytes, 'scratchBytes', 4096, 2 ** 40)
  requireRange(policy.requestBytes, 'requestBytes', 1, MAXIMUM_REQUEST_FRAME_BYTES)
}
