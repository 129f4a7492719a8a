/**
 * The tool at work. Its output and its end are its own words and no evidence: the outcome of the operation is the
 * broker's record. Its end, or ours, ends every process of the cage.
 */
import type { Socket } from 'node:net'
import { sendDescriptors } from '../native/index.js'
import type { CageProcess, ToolEnd } from './cage-process.js'
import { ENDED, receiveWord } from './channel.js'
import { refusedCheck, refusedExec } from './refusal.js'
import type { ToolOutput } from './stdio.js'

export interface FinishedTool extends ToolEnd {
  readonly stdout: Uint8Array
  readonly stderr: Uint8Array
  /** Whether one of the two said more than was kept. */
  readonly truncated: boolean
}

export class RunningCage {
  readonly #process: CageProcess
  readonly #deadline: () => bigint
  readonly #toolPath: string
  /** The exec happened, or cage-init died; rejects with a CageRefusal that names the failing exec. */
  readonly started: Promise<void>
  /** Every process of the cage is gone; rejects when the tool never ran. */
  readonly finished: Promise<FinishedTool>

  constructor(process: CageProcess, deadline: () => bigint, toolPath: string) {
    this.#process = process
    this.#deadline = deadline
    this.#toolPath = toolPath
    this.started = this.#start()
    this.finished = this.#finish()
    // Whoever awaits one of the two sees the refusal; the other must not end the host.
    this.started.catch(() => undefined)
    this.finished.catch(() => undefined)
  }

  async #start(): Promise<void> {
    const { control } = this.#process
    try {
      sendDescriptors(control, Buffer.from('go', 'latin1'), [])
      const word = await receiveWord(control, this.#deadline())
      if (word !== ENDED) throw refusedCheck('cage-init', 'the exec of the tool', 'another word')
    } catch (error) {
      await this.#process.end(this.#deadline()).catch(() => undefined)
      throw refusedExec(error, this.#toolPath)
    }
    this.#process.closeControl()
  }

  async #finish(): Promise<FinishedTool> {
    await this.started
    const { exited, pipes } = this.#process
    await exited
    try {
      await Promise.all([pipes.stdout.ended, pipes.stderr.ended])
      const end = await this.#process.readEnd(this.#deadline())
      const truncated = pipes.stdout.truncated || pipes.stderr.truncated
      return { ...end, stdout: pipes.stdout.bytes(), stderr: pipes.stderr.bytes(), truncated }
    } finally {
      await this.#process.end(this.#deadline())
    }
  }

  /** The tool's end, which comes at the latest when its grace is over: then every process is killed. */
  async finish(graceMs: number): Promise<FinishedTool> {
    const timer = setTimeout(() => this.#process.kill(), graceMs)
    try {
      return await this.finished
    } finally {
      clearTimeout(timer)
    }
  }

  /** The tool's standard input where policy said 'pipe', else null. */
  get input(): Socket | null {
    return this.#process.pipes.input
  }

  get stdout(): ToolOutput {
    return this.#process.pipes.stdout
  }

  get stderr(): ToolOutput {
    return this.#process.pipes.stderr
  }

  /** Kills every process of the cage. `finished` settles with SIGKILL. */
  close(): void {
    this.#process.kill()
  }
}
