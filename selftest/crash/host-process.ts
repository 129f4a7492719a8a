// Owns hosts in processes of their own: one at a time takes an order, and any moment may be its last.
// Must never: signal another process than its own host.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { join } from 'node:path'
import { packageRoot } from '../../native/index.js'
import { allowedEnvironment } from '../../system/environment.js'
import type { Measured } from '../soak/measured.js'
import type { PlainWay } from '../soak/plain-run.js'
import type { Told } from './told.js'

/** One run. */
export interface HostOrder {
  readonly grantId: string
  readonly body: string
  readonly tool: readonly string[]
  readonly timeoutMs: number
  /** How far the clocks of its world are ahead. */
  readonly aheadMs?: number
  readonly waitForSlotMs?: number
  /** Stands still there until it is killed. */
  readonly standsAt?: string
  /** Without a cage, in one of the ways of a tool that the host plays itself. */
  readonly way?: PlainWay
}

/** What it says, a line each. */
export type HostWord =
  | { readonly ready: true }
  | { readonly stands: string }
  | { readonly told: Told }
  | { readonly measured: Measured }

const ENTRY = join(packageRoot(), 'dist', 'bin', 'host-entry.js')

export class HostProcess {
  readonly pid: number
  readonly ended: Promise<unknown>
  readonly #child: ChildProcess
  readonly #words: HostWord[] = []
  #wake: () => void = () => undefined
  #isOver = false

  constructor(state: string, aheadMs = 0) {
    this.#child = spawn(process.execPath, [ENTRY, state, String(aheadMs)], {
      cwd: '/',
      env: allowedEnvironment({}),
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    this.pid = this.#child.pid ?? 0
    this.#child.stdin?.on('error', () => undefined)
    const lines = createInterface({ input: this.#child.stdout as NodeJS.ReadableStream })
    lines.on('line', line => this.#heard(JSON.parse(line) as HostWord))
    this.ended = once(this.#child, 'close').then(() => {
      this.#isOver = true
      this.#wake()
    })
  }

  /** Resolves once it takes orders. */
  async ready(): Promise<this> {
    await this.#next()
    return this
  }

  /** @returns what it was told, or undefined when it died first. */
  async run(order: HostOrder): Promise<Told | undefined> {
    this.#send(order)
    return this.#told()
  }

  /** Runs to where it stands. @returns whether it came so far; else what it was told, as `run` does. */
  async runTo(order: HostOrder & { readonly standsAt: string }): Promise<true | Told | undefined> {
    this.#send(order)
    const word = await this.#next()
    if (word !== undefined && 'stands' in word) return true
    return word !== undefined && 'told' in word ? word.told : undefined
  }

  /** Steps the hand of its wall clock. */
  stepWall(milliseconds: number): void {
    this.#send({ stepWallMs: milliseconds })
  }

  /** What it holds, between two runs; undefined when it died first. */
  async measure(): Promise<Measured | undefined> {
    this.#send({ measure: true })
    const word = await this.#next()
    return word !== undefined && 'measured' in word ? word.measured : undefined
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** Ends it as a crash does: nothing of it runs any more when this resolves. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.ended
  }

  /** Ends it in order. */
  async stop(): Promise<void> {
    this.#child.stdin?.end()
    await this.ended
  }

  async #told(): Promise<Told | undefined> {
    const word = await this.#next()
    return word !== undefined && 'told' in word ? word.told : undefined
  }

  #send(line: object): void {
    this.#child.stdin?.write(`${JSON.stringify(line)}\n`)
  }

  #heard(word: HostWord): void {
    this.#words.push(word)
    this.#wake()
  }

  async #next(): Promise<HostWord | undefined> {
    while (this.#words.length === 0 && !this.#isOver) {
      await new Promise<void>(resolve => {
        this.#wake = resolve
      })
    }
    return this.#words.shift()
  }
}
