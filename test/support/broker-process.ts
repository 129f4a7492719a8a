// Owns a broker that is a process of its own, from the compiled bin, with its log as lines. Ends only what it started.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { packageRoot } from '../../native/paths.js'
import type { BrokerWorld } from './broker-world.js'

export interface BrokerProcessOptions {
  /** Put before node: strace with its options. */
  readonly wrapper?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  readonly args?: readonly string[]
}

export class BrokerProcess {
  readonly child: ChildProcess
  readonly lines: Record<string, unknown>[] = []
  readonly text: string[] = []
  readonly #exit: Promise<unknown>

  constructor(world: BrokerWorld, options: BrokerProcessOptions = {}) {
    const { config, masterKey, receiptKey } = world.writeFiles()
    const args = options.args ?? [
      '--config',
      config,
      '--master-key-file',
      masterKey,
      '--receipt-key-file',
      receiptKey,
    ]
    const bin = join(packageRoot(), 'dist', 'bin', 'chio-brokerd.js')
    const [program = '', ...rest] = [...(options.wrapper ?? []), process.execPath, bin, ...args]
    this.child = spawn(program, rest, {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { PATH: process.env['PATH'], ...options.environment },
    })
    this.#exit = once(this.child, 'exit')
    createInterface({ input: this.child.stderr! }).on('line', line => {
      this.text.push(line)
      if (line.startsWith('{')) this.lines.push(JSON.parse(line) as Record<string, unknown>)
    })
  }

  /** Waits until it serves. */
  async ready(): Promise<this> {
    while (!this.lines.some(line => line['event'] === 'ready')) {
      if (this.child.exitCode !== null) throw new Error(`the broker ended: ${this.text.join('\n')}`)
      await delay(10)
    }
    return this
  }

  /** Waits for its end. */
  async ended(): Promise<number | null> {
    if (this.child.exitCode === null && this.child.signalCode === null) await this.#exit
    return this.child.exitCode
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    this.child.kill(signal)
    return this.ended()
  }
}
