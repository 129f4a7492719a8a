// Owns the look into another process's memory: how often given bytes stand anywhere in what it can write.
// Source: proc(5), /proc/PID/maps and /proc/PID/mem.
import { openSync, readFileSync, readSync, closeSync } from 'node:fs'

const SLICE_BYTES = 8 * 1024 * 1024

/** Counts occurrences of each pattern in the writable mappings of a process. */
export function occurrencesInMemory(pid: number, patterns: Readonly<Record<string, Uint8Array>>) {
  const memory = openSync(`/proc/${pid}/mem`, 'r')
  try {
    const found = Object.fromEntries(Object.keys(patterns).map(name => [name, 0]))
    for (const slice of slicesOfAll(memory, writableMappings(pid))) {
      for (const [name, bytes] of Object.entries(patterns)) found[name]! += countIn(slice, bytes)
    }
    return found
  } finally {
    closeSync(memory)
  }
}

interface Mapping {
  readonly start: number
  readonly end: number
}

function* slicesOfAll(memory: number, mappings: readonly Mapping[]): Generator<Buffer> {
  for (const mapping of mappings) yield* slicesOf(memory, mapping)
}

function writableMappings(pid: number): Mapping[] {
  const lines = readFileSync(`/proc/${pid}/maps`, 'latin1').split('\n')
  return lines
    .filter(line => /^[0-9a-f]+-[0-9a-f]+ rw/.test(line))
    .map(line => {
      const [start, end] = line
        .split(' ')[0]!
        .split('-')
        .map(hex => Number.parseInt(hex, 16))
      return { start: start!, end: end! }
    })
}

/** What cannot be read (guard pages, device memory) holds nothing of ours. */
function* slicesOf(memory: number, { start, end }: Mapping): Generator<Buffer> {
  const buffer = Buffer.allocUnsafeSlow(Math.min(SLICE_BYTES, end - start))
  for (let at = start; at < end; at += buffer.length) {
    try {
      yield buffer.subarray(0, readSync(memory, buffer, 0, Math.min(buffer.length, end - at), at))
    } catch {
      return
    }
  }
}

function countIn(slice: Buffer, bytes: Uint8Array): number {
  let count = 0
  for (let at = slice.indexOf(bytes); at >= 0; at = slice.indexOf(bytes, at + 1)) count += 1
  return count
}
