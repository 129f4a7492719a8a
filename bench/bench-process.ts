// Owns second processes of a run: a compiled file of bench/, started with a plain environment, spoken to by lines
// and ended by pid.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { packageRoot } from '../native/index.js'
import { allowedEnvironment } from '../system/environment.js'

export interface BenchProcessOptions {
  readonly args?: readonly string[]
  /** Where the compiled program is; the package itself unless another uid has to reach it. */
  readonly programRoot?: string
  readonly identity?: { readonly uid: number; readonly gid: number }
}

export class BenchProcess {
  readonly #child: ChildProcess
  readonly #exited: Promise<unknown>

  private constructor(child: ChildProcess) {
    this.#child = child
    this.#exited = once(child, 'exit')
  }

  /** @param name of the file in bench/, without its ending. */
  static start(name: string, options: BenchProcessOptions = {}): BenchProcess {
    const { args = [], programRoot = packageRoot(), identity } = options
    const apart = process.geteuid?.() === 0 && identity !== undefined ? identity : {}
    const child = spawn(process.execPath, [join(programRoot, 'dist', 'bench', `${name}.js`), ...args], {
      cwd: '/',
      env: allowedEnvironment({}),
      stdio: ['pipe', 'pipe', 'inherit'],
      ...apart,
    })
    return new BenchProcess(child)
  }

  say(line: string): void {
    this.#child.stdin?.write(`${line}\n`)
  }

  /** The next line that it prints, as JSON. @throws Error when it ends instead. */
  async answer<T>(): Promise<T> {
    const lines = createInterface({ input: this.#child.stdout as NodeJS.ReadableStream })
    const first = once(lines, 'line') as Promise<[string]>
    const line = await Promise.race([first, this.#exited.then(() => null)])
    if (line === null) throw new Error(`bench process ended with ${this.#child.exitCode} before it answered`)
    return JSON.parse(line[0]) as T
  }

  /** Waits for its own end. @throws Error unless it was clean. */
  async finished(): Promise<void> {
    await this.#exited
    if (this.#child.exitCode !== 0) throw new Error(`bench process ended with ${this.#child.exitCode}`)
  }

  async stop(): Promise<void> {
    this.#child.kill('SIGTERM')
    await this.#exited
  }
}
