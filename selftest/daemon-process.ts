// One daemon of ours as a process of its own: started under its own uid and groups with an allow-listed
// environment, known to serve when its log says so, ended by pid. Its log is kept, never parsed for decisions.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { BrokerError } from '../protocol/errors.js'
import { allowedEnvironment } from '../system/environment.js'
import type { Identity } from '../system/identities.js'

/** Which daemon, with which arguments, under whom. `groups` are all its groups, its own first. */
export interface DaemonCommand {
  readonly name: 'chio-brokerd' | 'chio-kerneld'
  readonly programRoot: string
  readonly args: readonly string[]
  readonly identity: Identity
  readonly groups: readonly number[]
  readonly onLogLine?: (line: string) => void
}

const KEPT_LOG_LINES = 200
const READY_EVENT = '"event":"ready"'

/** A running daemon. */
export class DaemonProcess {
  readonly name: string
  readonly pid: number
  /** Last lines of its log. */
  readonly log: readonly string[]
  readonly exited: Promise<number>
  readonly #child: ChildProcess

  constructor(name: string, child: ChildProcess, log: readonly string[], exited: Promise<number>) {
    this.name = name
    this.pid = child.pid ?? 0
    this.log = log
    this.exited = exited
    this.#child = child
  }

  /** Sends a signal to exactly this process. */
  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** Asks it to end and waits. @returns its exit code (128 + n after signal n). */
  async stop(): Promise<number> {
    this.signal('SIGTERM')
    return this.exited
  }
}

/**
 * Starts a daemon and waits until it serves.
 * @throws BrokerError when it ends first; the sentence holds its last log line.
 */
export async function startDaemon(command: DaemonCommand): Promise<DaemonProcess> {
  const { child, log, exited, ready } = launch(command)
  const code = await Promise.race([ready, exited])
  if (typeof code !== 'number') return new DaemonProcess(command.name, child, log, exited)
  const last = log.at(-1) ?? 'it said nothing'
  const alreadyServed = code === 73
  throw new BrokerError(
    alreadyServed ? 'another_instance' : 'broker_unavailable',
    `${command.name} ended with ${code}: ${last}`,
  )
}

/** Runs a daemon's binary to its end, for one-time work such as provisioning its store. */
export async function runDaemonOnce(command: DaemonCommand): Promise<void> {
  const { log, exited } = launch(command)
  const code = await exited
  if (code === 0) return
  throw new BrokerError(
    'broker_unavailable',
    `${command.name} ended with ${code}: ${log.at(-1) ?? 'it said nothing'}`,
  )
}

function launch(command: DaemonCommand) {
  const log: string[] = []
  const [program, ...args] = commandLine(command)
  const child = spawn(program as string, args, {
    cwd: '/',
    env: allowedEnvironment({}),
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const exited = exitOf(child, log)
  const ready = new Promise<void>(resolve => {
    createInterface({ input: child.stderr as NodeJS.ReadableStream }).on('line', line => {
      log.push(line)
      if (log.length > KEPT_LOG_LINES) log.shift()
      command.onLogLine?.(line)
      if (line.includes(READY_EVENT)) resolve()
    })
  })
  return { child, log, exited, ready }
}

async function exitOf(child: ChildProcess, log: string[]): Promise<number> {
  const ended = Promise.race([
    once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>,
    once(child, 'error').then(([error]) => {
      log.push((error as Error).message)
      return [127, null] as [number | null, NodeJS.Signals | null]
    }),
  ])
  const [code, signal] = await ended
  return code ?? 128 + (signal === 'SIGKILL' ? 9 : 15)
}

/** setpriv keeps the groups that Node's own uid option would drop, and ends the daemon with its starter. */
function commandLine({ name, programRoot, args, identity, groups }: DaemonCommand): string[] {
  const node = [process.execPath, join(programRoot, 'dist', 'cli', `${name}.js`), ...args]
  const apart = process.geteuid?.() === 0 && identity.uid !== 0
  const ids = apart
    ? [`--reuid=${identity.uid}`, `--regid=${identity.gid}`, `--groups=${groups.join(',')}`, '--no-new-privs']
    : []
  return ['setpriv', ...ids, '--pdeathsig=TERM', '--', ...node]
}
