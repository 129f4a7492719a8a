// Owns commands of ours as processes of their own, with an environment of the test's choice, as any user: what they
// printed, how they ended. Ends only what it started.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { packageRoot } from '../../native/paths.js'

export interface CommandOptions {
  /** Written to standard input, which is then closed. */
  readonly input?: string | Uint8Array
  readonly environment?: Readonly<Record<string, string>>
  /** Another user, as only root can choose; nobody's groups but its own. */
  readonly uid?: number
  /** The package to run; this one unless said. */
  readonly root?: string
  readonly program?: 'chio' | 'chio-brokerd' | 'chio-kerneld' | 'demo'
  readonly directory?: string
  /** The longest file that it may write: what a full disk is to a test that may mount nothing. */
  readonly fileBytes?: number
}

export interface Ended {
  readonly status: number | null
  readonly signal: string | null
  readonly stdout: string
  readonly stderr: string
}

export class Command {
  readonly process: ChildProcess
  readonly ended: Promise<Ended>
  #stdout = ''
  #stderr = ''

  constructor(args: readonly string[], options: CommandOptions) {
    const { uid, program = 'chio', root = packageRoot() } = options
    const user =
      uid === undefined ? [] : ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', '--']
    const { fileBytes } = options
    const limit = fileBytes === undefined ? [] : ['prlimit', `--fsize=${fileBytes}`, '--']
    const [command = '', ...rest] = [
      ...limit,
      ...user,
      process.execPath,
      join(root, 'dist', 'bin', `${program}.js`),
      ...args,
    ]
    const path = process.env['PATH'] ?? '/usr/bin:/bin'
    this.process = spawn(command, rest, {
      cwd: options.directory ?? '/',
      env: { PATH: path, HOME: '/nonexistent', ...options.environment },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    this.process.stdout?.on('data', (chunk: Buffer) => (this.#stdout += chunk.toString()))
    this.process.stderr?.on('data', (chunk: Buffer) => (this.#stderr += chunk.toString()))
    this.process.stdin?.on('error', () => undefined)
    this.process.stdin?.end(options.input ?? '')
    this.ended = once(this.process, 'close').then(([status, signal]) => ({
      status: status as number | null,
      signal: signal as string | null,
      stdout: this.#stdout,
      stderr: this.#stderr,
    }))
  }

  get pid(): number {
    return this.process.pid ?? 0
  }

  get stderr(): string {
    return this.#stderr
  }

  /** Waits until it has said something on standard error; fails when it ends first. */
  async says(text: string): Promise<void> {
    while (!this.#stderr.includes(text)) {
      const more = once(this.process.stderr as NodeJS.ReadableStream, 'data').then(() => 'more')
      if ((await Promise.race([more, this.ended.then(() => 'ended')])) === 'more') continue
      if (this.#stderr.includes(text)) return
      throw new Error(`the command ended before it said "${text}": ${this.#stderr}`)
    }
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<Ended> {
    this.process.kill(signal)
    return this.ended
  }
}

/** Starts a command and leaves it running. */
export function startCommand(args: readonly string[], options: CommandOptions = {}): Command {
  return new Command(args, options)
}

/** Runs a command to its end. */
export function chio(args: readonly string[], options: CommandOptions = {}): Promise<Ended> {
  return new Command(args, options).ended
}

/** The one JSON document of a `--json` command; more or less than one line of it fails. */
export function documentOf(text: string): Record<string, unknown> & { schema: string } {
  const document: unknown = JSON.parse(text)
  if (text.trimEnd().includes('\n')) throw new Error('expected one line')
  return document as Record<string, unknown> & { schema: string }
}
