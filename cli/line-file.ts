// Owns the reading of a file of lines that may be of any size: one line at a time, bounded, never the whole file.
// Must never open what is no regular file: a pipe or a device could be read for ever, or change while it is read.
// Source: the bounds of receipt verification.
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { BrokerError, isBrokerError } from '../protocol/errors.js'

const CHUNK_BYTES = 65_536
const NEWLINE = 0x0a

export interface LineBounds {
  /** How refusals name the file. */
  readonly what: string
  readonly maximumLineBytes: number
  readonly maximumBytes: number
  /** Sees every byte that is read, in order, before it is split. */
  readonly onBytes?: (chunk: Uint8Array) => void
}

/** One line without its newline, and its number from 1. */
export interface Line {
  readonly bytes: Uint8Array
  readonly number: number
}

/**
 * Lines that are not blank, in order.
 * @throws BrokerError `invalid_request` past a bound; `usage` for what cannot be read.
 */
export function* readLines(path: string, bounds: LineBounds): Generator<Line> {
  const descriptor = openRegularFile(path, bounds.what)
  try {
    yield* linesOf(descriptor, bounds)
  } finally {
    closeSync(descriptor)
  }
}

/** A whole file of at most so many bytes. @throws BrokerError as above. */
export function readSmallFile(path: string, what: string, maximumBytes: number): Uint8Array {
  const descriptor = openRegularFile(path, what)
  try {
    const buffer = Buffer.alloc(maximumBytes + 1)
    const length = readSync(descriptor, buffer, 0, buffer.length, 0)
    if (length > maximumBytes) refuse(what, `at most ${maximumBytes} bytes`, 'more')
    return new Uint8Array(buffer.subarray(0, length))
  } finally {
    closeSync(descriptor)
  }
}

function openRegularFile(path: string, what: string): number {
  let descriptor: number | undefined
  try {
    // Not blocking: opening a pipe that nobody writes to would wait for ever.
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    if (!fstatSync(descriptor).isFile()) refuse(what, 'a regular file', 'something else')
    return descriptor
  } catch (cause) {
    if (descriptor !== undefined) closeSync(descriptor)
    if (isBrokerError(cause)) throw cause
    const code = (cause as NodeJS.ErrnoException).code ?? 'a fault'
    throw new BrokerError('usage', `${what} refused: expected a readable file, got ${code}`, { cause })
  }
}

function* linesOf(descriptor: number, bounds: LineBounds): Generator<Line> {
  const buffer = Buffer.alloc(CHUNK_BYTES)
  let [number, total] = [1, 0]
  let pieces: Uint8Array[] = []
  for (;;) {
    const count = readSync(descriptor, buffer, 0, CHUNK_BYTES, null)
    if (count === 0) break
    total += count
    if (total > bounds.maximumBytes) refuse(bounds.what, `at most ${bounds.maximumBytes} bytes`, 'more')
    const chunk = new Uint8Array(buffer.subarray(0, count))
    bounds.onBytes?.(chunk)
    const ends = splitAtNewlines(chunk)
    for (const end of ends.slice(0, -1)) {
      yield* lineOf([...pieces, end], number++, bounds)
      pieces = []
    }
    pieces.push(ends.at(-1) as Uint8Array)
    assertShort(pieces, number, bounds)
  }
  yield* lineOf(pieces, number, bounds)
}

function splitAtNewlines(chunk: Uint8Array): Uint8Array[] {
  const parts: Uint8Array[] = []
  let start = 0
  for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
    parts.push(chunk.subarray(start, end))
    start = end + 1
  }
  return [...parts, chunk.subarray(start)]
}

function* lineOf(pieces: readonly Uint8Array[], number: number, bounds: LineBounds): Generator<Line> {
  assertShort(pieces, number, bounds)
  const bytes = Buffer.concat(pieces)
  if (!isBlank(bytes)) yield { bytes, number }
}

/** A loop, since a line of spaces may have millions of them. */
function isBlank(bytes: Uint8Array): boolean {
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0d) return false
  }
  return true
}

function assertShort(
  pieces: readonly Uint8Array[],
  number: number,
  { maximumLineBytes, what }: LineBounds,
): void {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
  if (length > maximumLineBytes) {
    refuse(what, `lines of at most ${maximumLineBytes} bytes`, `a longer one at line ${number}`)
  }
}

function refuse(what: string, expected: string, got: string): never {
  throw new BrokerError('invalid_request', `${what} refused: expected ${expected}, got ${got}`)
}
