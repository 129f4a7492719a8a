/**
 * One bwrap process with everything that belongs to it: control socket, status pipe, stdio, pidfds. Ends all of it,
 * once. bwrap is signalled by pidfd and process 1 of the cage beside it: whichever dies takes the cage along.
 * Source: pid_namespaces(7), pidfd_send_signal(2).
 */
import type { ChildProcess } from 'node:child_process'
import { readSync } from 'node:fs'
import { constants } from 'node:os'
import { awaitReadable, closeDescriptor, pidfdOpen, pidfdSignal } from '../native/index.js'
import { OwnedDescriptors } from './owned-descriptors.js'
import { refusedCall, refusedCheck, type CageRefusal } from './refusal.js'
import { escapeForTerminal, type ToolPipes } from './stdio.js'

export interface ProcessDescriptors {
  readonly control: number
  readonly status: number
  /** null when the spawn itself failed. */
  readonly pidfd: number | null
}

/** How the tool ended: one of the two is null. */
export interface ToolEnd {
  readonly exitCode: number | null
  readonly signal: string | null
}

const STATUS_MAXIMUM_BYTES = 32
const LAST_WORDS_CHARACTERS = 200

/** bwrap ends within milliseconds after cage-init; what does not is not waited for. */
const LAST_WORDS_MS = 1_000

/** The first of two names for one number: SIGABRT, not SIGIOT. */
const SIGNAL_NAMES = new Map(
  Object.entries(constants.signals)
    .reverse()
    .map(([name, number]) => [number, name]),
)

function parseEnd(text: string): ToolEnd {
  const match = /^(exit|signal) (\d+)$/.exec(text)
  // Process 1 was killed and could not write: so was everything else.
  if (match === null) return { exitCode: null, signal: 'SIGKILL' }
  const number = Number(match[2])
  if (match[1] === 'exit') return { exitCode: number, signal: null }
  return { exitCode: null, signal: SIGNAL_NAMES.get(number) ?? `signal ${number}` }
}

export class CageProcess {
  readonly pipes: ToolPipes
  readonly control: number
  /** Settles when bwrap is gone, with what it left as its reason; never rejects. */
  readonly exited: Promise<string>
  readonly #status: number
  readonly #owned = new OwnedDescriptors()
  readonly #pidfds: number[] = []
  #spawnErrno: string | null = null
  #wardenPidfd: number | null = null
  #ending: Promise<void> | null = null

  constructor(child: ChildProcess, pipes: ToolPipes, descriptors: ProcessDescriptors) {
    this.pipes = pipes
    this.control = descriptors.control
    this.#status = descriptors.status
    this.#owned.own([descriptors.control, descriptors.status])
    if (descriptors.pidfd !== null) this.#pidfds.push(descriptors.pidfd)
    this.exited = new Promise(resolve => {
      child.once('error', (error: NodeJS.ErrnoException) => {
        this.#spawnErrno = error.code ?? 'an unknown error'
        resolve('bwrap did not start')
      })
      child.once('exit', (code, signal) => resolve(`bwrap ended with ${signal ?? `code ${code ?? 'none'}`}`))
    })
  }

  /** Process 1 of the cage, known once cage-init spoke. */
  watchWarden(pid: number): void {
    this.#wardenPidfd = pidfdOpen(pid)
    this.#pidfds.push(this.#wardenPidfd)
  }

  /** Why nothing came: what bwrap wrote before any tool ran, as one bounded, escaped line. */
  async goneBefore(expected: string): Promise<CageRefusal> {
    const timer = setTimeout(() => this.#giveUp(), LAST_WORDS_MS)
    try {
      const ending = await this.exited
      if (this.#spawnErrno !== null) return refusedCall('spawn', this.#spawnErrno)
      await this.pipes.stderr.ended
      return refusedCheck('cage', `"${expected}" from cage-init`, `${ending}${this.#lastWords()}`)
    } finally {
      clearTimeout(timer)
    }
  }

  #lastWords(): string {
    const text = escapeForTerminal(this.pipes.stderr.bytes()).trim().replaceAll('\n', '; ')
    return text === '' ? '' : `: "${text.slice(0, LAST_WORDS_CHARACTERS)}"`
  }

  #giveUp(): void {
    this.kill()
    this.pipes.destroy()
  }

  /** After every process of the cage is gone. */
  async readEnd(deadlineBootNs: bigint): Promise<ToolEnd> {
    await awaitReadable(this.#status, deadlineBootNs)
    const bytes = Buffer.alloc(STATUS_MAXIMUM_BYTES)
    return parseEnd(bytes.subarray(0, readSync(this.#status, bytes)).toString('latin1'))
  }

  closeControl(): void {
    this.#owned.close(this.control)
  }

  kill(): void {
    for (const pidfd of this.#pidfds) {
      try {
        pidfdSignal(pidfd, 'SIGKILL')
      } catch (error) {
        // Gone already is what was wanted.
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
      }
    }
    this.closeControl()
  }

  /** Kills what is left, waits until it is gone, and gives every descriptor back. May be called again. */
  async end(deadlineBootNs: bigint): Promise<void> {
    this.#ending ??= this.#end(deadlineBootNs)
    return this.#ending
  }

  /** bwrap, outside, dies at once; process 1 is gone when all others of its namespace are. */
  async #end(deadlineBootNs: bigint): Promise<void> {
    this.kill()
    await this.exited
    try {
      if (this.#wardenPidfd !== null) await awaitReadable(this.#wardenPidfd, deadlineBootNs)
    } finally {
      this.#owned.closeAll()
      for (const pidfd of this.#pidfds.splice(0)) closeDescriptor(pidfd)
      this.pipes.destroy()
    }
  }
}
