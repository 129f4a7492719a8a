// Owns second processes that run the compiled parts (dist/) from a script of the test's own, which prints one
// JSON value a line. Ends only what it started.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface, type Interface } from 'node:readline'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { packageRoot } from '../../native/paths.js'

export interface ChildOptions {
  /** Put before node: strace with its options, setpriv with its own. */
  readonly wrapper?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  /** Descriptors of this process that become 3, 4, … there. */
  readonly inherited?: readonly number[]
}

export class CompiledChild {
  readonly process: ChildProcess
  readonly #lines: Interface
  readonly #arrived: unknown[] = []
  readonly #exit: Promise<unknown>

  constructor(script: string, args: readonly string[], options: ChildOptions) {
    const [program, ...rest] = [
      ...(options.wrapper ?? []),
      process.execPath,
      '--input-type=module',
      '-e',
      SAY + script,
      ...args,
    ]
    this.process = spawn(program ?? '', rest, {
      stdio: ['pipe', 'pipe', 'inherit', ...(options.inherited ?? [])],
      env: { PATH: process.env['PATH'], ...options.environment },
    })
    this.#exit = once(this.process, 'exit')
    this.#lines = createInterface({ input: this.process.stdout! })
    this.#lines.on('line', line => this.#arrived.push(JSON.parse(line)))
  }

  /** Waits for the next line that the script said. */
  async next(): Promise<Record<string, unknown>> {
    while (this.#arrived.length === 0) {
      if (this.process.exitCode !== null || this.process.signalCode !== null)
        throw new Error('the child has ended')
      await Promise.race([once(this.#lines, 'line'), this.#exit])
    }
    return this.#arrived.shift() as Record<string, unknown>
  }

  /** Waits for its own end. @returns every line that was not taken, and how it ended. */
  async ended(): Promise<{ lines: unknown[]; status: number | null; signal: string | null }> {
    if (this.process.exitCode === null && this.process.signalCode === null) await this.#exit
    return { lines: this.#arrived.splice(0), status: this.process.exitCode, signal: this.process.signalCode }
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    this.process.kill(signal)
    await this.ended()
  }
}

/** The script imports compiled modules by `compiled('store/open')`, reads `args` and prints with `say(value)`. */
export function startChild(
  script: string,
  args: readonly string[] = [],
  options: ChildOptions = {},
): CompiledChild {
  return new CompiledChild(script, args, options)
}

const DIST = pathToFileURL(join(packageRoot(), 'dist')).href
const SAY = `
import { writeSync } from 'node:fs'
const args = process.argv.slice(1)
const say = value => writeSync(1, JSON.stringify(value) + '\\n')
const compiled = name => import('${DIST}/' + name + '.js')
`
