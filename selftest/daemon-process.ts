// One daemon of ours as a process of its own: started under its own uid and groups with an allow-listed
// environment, known to serve when its log says so, ended by pid. Its log is kept, never parsed for decisions.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { ERROR_CODES } from '../protocol/error-codes.js'
import { BrokerError, type ErrorCode } from '../protocol/errors.js'
import { allowedEnvironment } from '../system/environment.js'
import type { Identity } from '../system/identities.js'

/** Which daemon, with which arguments, under whom. `groups` are all its groups, its own first. */
export interface DaemonCommand {
  readonly name: 'chio-brokerd' | 'chio-kerneld'
  readonly programRoot: string
  readonly args: readonly string[]
  readonly identity: Identity
  readonly groups: readonly number[]
  /** Another compiled program than the daemon's own, which takes lines on standard input: `dist/` stands before it. */
  readonly steeredBy?: string
  /** Put before everything else: what leads into a namespace of its own. */
  readonly wrapper?: readonly string[]
  readonly onLogLine?: (line: string) => void
}

const KEPT_LOG_LINES = 200
const READY_EVENT = '"event":"ready"'

/** How long a daemon may take to end. */
export interface StopBounds {
  /** After the first signal: what its longest drain takes. */
  readonly drainMs: number
  /** After the second. */
  readonly hurryMs: number
}

/** As the units have them: 45 s in all. */
const STOP_BOUNDS: StopBounds = { drainMs: 40_000, hurryMs: 5_000 }

/** How a daemon ended: by its own code, or by a signal. */
export interface DaemonEnd {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** A running daemon. */
export class DaemonProcess {
  readonly name: string
  readonly pid: number
  /** Last lines of its log. */
  readonly log: readonly string[]
  readonly exited: Promise<number>
  readonly ended: Promise<DaemonEnd>
  readonly #child: ChildProcess

  constructor(name: string, child: ChildProcess, log: readonly string[], ended: Promise<DaemonEnd>) {
    this.name = name
    this.pid = child.pid ?? 0
    this.log = log
    this.ended = ended
    this.exited = ended.then(exitCodeOf)
    this.#child = child
  }

  /** Sends a signal to exactly this process. */
  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** Writes a line to the standard input of a daemon that is steered. */
  tell(line: string): void {
    this.#child.stdin?.write(`${line}\n`)
  }

  /** Asks it to end and waits: for its drain, then impatiently, then no more. @returns its exit code (128 + n after signal n). */
  async stop(bounds: StopBounds = STOP_BOUNDS): Promise<number> {
    this.signal('SIGTERM')
    if (!(await this.#endsWithin(bounds.drainMs))) this.signal('SIGTERM')
    if (!(await this.#endsWithin(bounds.hurryMs))) this.signal('SIGKILL')
    return this.exited
  }

  async #endsWithin(milliseconds: number): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<boolean>(resolve => {
      timer = setTimeout(() => resolve(false), milliseconds)
    })
    try {
      return await Promise.race([this.ended.then(() => true), late])
    } finally {
      clearTimeout(timer)
    }
  }
}

/**
 * Starts a daemon and waits until it serves.
 * @throws BrokerError when it ends first: its own code and sentence, where its last log line has them.
 */
export async function startDaemon(command: DaemonCommand): Promise<DaemonProcess> {
  const { child, log, ended, ready } = launch(command)
  const end = await Promise.race([ready, ended])
  if (end === undefined) return new DaemonProcess(command.name, child, log, ended)
  throw endedError(command.name, end, log)
}

/** The error of a daemon that ended: what it said of itself, said once. */
function endedError(name: string, end: DaemonEnd, log: readonly string[]): BrokerError {
  const { code, sentence } = lastWords(log)
  return new BrokerError(code, `${name} ${endText(end)}: ${sentence}`, { outcome: 'not_started' })
}

/** How it ended, for a person. */
export function endText({ code, signal }: DaemonEnd): string {
  return signal === null ? `ended with ${code}` : `was ended by ${signal}`
}

/** The refusal in the last log line; a line that is none, as a fault of Node, is quoted. */
export function lastWords(log: readonly string[]): { code: ErrorCode; sentence: string } {
  const last = log.at(-1) ?? 'it said nothing'
  const { code, sentence } = refusalOf(last) ?? {}
  const isKnown = code !== undefined && Object.hasOwn(ERROR_CODES, code)
  return { code: isKnown ? (code as ErrorCode) : 'broker_unavailable', sentence: sentence ?? last }
}

/** Code and sentence of a log line that is a refusal. */
export function refusalOf(line: string): { code?: string; sentence: string } | undefined {
  try {
    const { code, sentence } = JSON.parse(line) as { code?: unknown; sentence?: unknown }
    if (typeof sentence !== 'string') return undefined
    return typeof code === 'string' ? { code, sentence } : { sentence }
  } catch {
    return undefined
  }
}

/** Runs a daemon's binary to its end, for one-time work such as provisioning its store. */
export async function runDaemonOnce(command: DaemonCommand): Promise<void> {
  const { log, ended } = launch(command)
  const end = await ended
  if (end.code !== 0) throw endedError(command.name, end, log)
}

function launch(command: DaemonCommand) {
  const log: string[] = []
  const [program, ...args] = commandLine(command)
  const child = spawn(program as string, args, {
    cwd: '/',
    env: allowedEnvironment({}),
    stdio: [command.steeredBy === undefined ? 'ignore' : 'pipe', 'ignore', 'pipe'],
  })
  // Whoever tells a daemon something that has just ended learns it from the end.
  child.stdin?.on('error', () => undefined)
  const ended = endOf(child, log)
  const ready = new Promise<undefined>(resolve => {
    createInterface({ input: child.stderr as NodeJS.ReadableStream }).on('line', line => {
      log.push(line)
      if (log.length > KEPT_LOG_LINES) log.shift()
      command.onLogLine?.(line)
      if (line.includes(READY_EVENT)) resolve(undefined)
    })
  })
  return { child, log, ended, ready }
}

async function endOf(child: ChildProcess, log: string[]): Promise<DaemonEnd> {
  const ended = Promise.race([
    once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>,
    once(child, 'error').then(([error]) => {
      log.push((error as Error).message)
      return [127, null] as [number | null, NodeJS.Signals | null]
    }),
  ])
  const [code, signal] = await ended
  return { code, signal }
}

/** As a shell has it: 128 + n after signal n. */
function exitCodeOf({ code, signal }: DaemonEnd): number {
  return code ?? 128 + (signal === null ? 0 : constants.signals[signal])
}

function commandLine(command: DaemonCommand): string[] {
  const { name, programRoot, args, steeredBy = join('bin', `${name}.js`) } = command
  return commandLineOf(command, [join(programRoot, 'dist', steeredBy), ...args])
}

/**
 * How a script of ours is run as a daemon is: in its namespace, under its uid and groups. setpriv keeps the groups
 * that Node's own uid option would drop, and ends the daemon with its starter.
 */
export function commandLineOf(
  { identity, groups, wrapper = [] }: Pick<DaemonCommand, 'identity' | 'groups' | 'wrapper'>,
  script: readonly string[],
): string[] {
  const apart = process.geteuid?.() === 0 && identity.uid !== 0
  const ids = apart
    ? [`--reuid=${identity.uid}`, `--regid=${identity.gid}`, `--groups=${groups.join(',')}`, '--no-new-privs']
    : []
  return [...wrapper, 'setpriv', ...ids, '--pdeathsig=TERM', '--', process.execPath, ...script]
}
