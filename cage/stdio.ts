/**
 * The tool's 0, 1 and 2: plain pipes made by the addon (a socket would be one more socket in the cage), read here
 * up to a bound. What a tool says is its own words: kept apart from the verified outcome, escaped before a terminal.
 */
import { once } from 'node:events'
import { Socket } from 'node:net'
import { pipe } from '../native/index.js'
import { CollectedBytes } from '../protocol/collected-bytes.js'
import type { OwnedDescriptors } from './owned-descriptors.js'
import type { ToolInput } from './policy.js'

/** More is read and dropped, so that the tool neither blocks nor fills our memory. */
export const OUTPUT_MAXIMUM_BYTES = 1024 * 1024

/** One output of the tool. */
export class ToolOutput {
  readonly #kept = new CollectedBytes()
  readonly #source: Socket
  readonly ended: Promise<void>
  #truncated = false
  #listener: ((chunk: Uint8Array) => void) | null = null

  constructor(readEnd: number) {
    this.#source = new Socket({ fd: readEnd, readable: true, writable: false })
    this.#source.on('data', (chunk: Buffer) => this.#keep(chunk))
    this.#source.on('error', () => this.#source.destroy())
    this.ended = once(this.#source, 'close').then(() => undefined)
  }

  #keep(chunk: Buffer): void {
    this.#listener?.(chunk)
    const room = OUTPUT_MAXIMUM_BYTES - this.#kept.length
    if (chunk.length > room) this.#truncated = true
    this.#kept.add(chunk.subarray(0, room))
  }

  get truncated(): boolean {
    return this.#truncated
  }

  bytes(): Uint8Array {
    return this.#kept.bytes()
  }

  /** Sees every chunk as it comes, also beyond what is kept; for a host that speaks with the tool. */
  onChunk(listener: (chunk: Uint8Array) => void): void {
    this.#listener = listener
  }

  destroy(): void {
    this.#source.destroy()
  }
}

export interface ToolPipes {
  readonly input: Socket | null
  readonly stdout: ToolOutput
  readonly stderr: ToolOutput
  destroy(): void
}

export interface ToolStdio {
  /** For the child's 0, 1, 2: 'ignore' is /dev/null. */
  readonly child: readonly ['ignore' | number, number, number]
  /** Takes over our ends; they are closed with what it returns. */
  open(): ToolPipes
}

/** The child's end of 0, and ours where there is one. */
function inputEnds(input: ToolInput, made: OwnedDescriptors): ['ignore' | number, number | null] {
  if (input === 'null') return ['ignore', null]
  return made.own(pipe())
}

function openPipes(input: number | null, outRead: number, errRead: number): ToolPipes {
  const driven = input === null ? null : new Socket({ fd: input, readable: false, writable: true })
  // A tool that ends without reading its input is no fault of ours.
  driven?.on('error', () => driven.destroy())
  const stdout = new ToolOutput(outRead)
  const stderr = new ToolOutput(errRead)
  const destroy = (): void => [driven, stdout, stderr].forEach(end => end?.destroy())
  return { input: driven, stdout, stderr, destroy }
}

/** All ends belong to `made` until they are opened; the child's stay with it. */
export function makeToolStdio(choice: ToolInput, made: OwnedDescriptors): ToolStdio {
  const [childIn, input] = inputEnds(choice, made)
  const [outRead, outWrite] = made.own(pipe())
  const [errRead, errWrite] = made.own(pipe())
  return {
    child: [childIn, outWrite, errWrite],
    open() {
      for (const fd of [input, outRead, errRead]) if (fd !== null) made.release(fd)
      return openPipes(input, outRead, errRead)
    },
  }
}

/** Controls and format characters move a cursor, set a title, hide or reorder text. Line feed and tab stay. */
const UNPRINTABLE = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

function escapeCharacter(character: string): string {
  const code = character.codePointAt(0)!
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`
}

/** A tool's bytes as text that is safe to show on a terminal; what is no UTF-8 becomes U+FFFD. */
export function escapeForTerminal(bytes: Uint8Array): string {
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)
  return text.replace(UNPRINTABLE, escapeCharacter)
}
