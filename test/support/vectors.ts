// Owns access to vectors: those made by the other implementation, which lie outside this repository and may be
// absent, and our own frozen ones. Must never let an absent vector pass for a verified one.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, test } from 'vitest'
import { SKIP_REASONS, vectorsFolder } from './skips.js'

/** The folder of the shared vectors, or undefined where it is absent. */
export function vectors(): string | undefined {
  return vectorsFolder()
}

/** Runs the tests of one vector set, or names the set as skipped where the vectors are absent. */
export function describeVectors(title: string, body: (folder: string) => void): void {
  const folder = vectors()
  if (folder === undefined) {
    test.skip(`${title} (${SKIP_REASONS.vectorsAbsent})`, () => {})
    return
  }
  describe(title, () => body(folder))
}

/** Parses a vector file. */
export function readVectors<T>(folder: string, ...path: readonly string[]): T {
  return JSON.parse(readFileSync(join(folder, ...path), 'utf8')) as T
}

/** Bytes of a vector document; one final newline is the file's, not the document's. */
export function readDocument(folder: string, ...path: readonly string[]): Uint8Array {
  const bytes = new Uint8Array(readFileSync(join(folder, ...path)))
  return bytes.at(-1) === 0x0a ? bytes.subarray(0, -1) : bytes
}

/** Our own frozen vectors. */
export const OWN_VECTORS = fileURLToPath(new URL('../vectors', import.meta.url))
