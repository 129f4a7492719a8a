// Owns the kept cases: one small file for each input that once broke a promise, below the folder of its target.
// They are replayed by a test at every run. Must never hold a real secret: inputs are made from invented ones.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from '../../native/index.js'
import { sha256Hex } from '../../protocol/digest.js'

export const CORPUS_FOLDER = join(packageRoot(), 'test', 'fuzz', 'corpus')

export interface KeptCase {
  readonly target: string
  readonly file: string
  readonly input: Uint8Array
}

export function keptCases(): KeptCase[] {
  return readdirSync(CORPUS_FOLDER, { withFileTypes: true })
    .filter(entry => entry.isDirectory())
    .flatMap(({ name: target }) =>
      readdirSync(join(CORPUS_FOLDER, target)).map(file => ({
        target,
        file,
        input: new Uint8Array(readFileSync(join(CORPUS_FOLDER, target, file))),
      })),
    )
}

/** @returns the path of the new file. */
export function keepCase(target: string, input: Uint8Array, folder = CORPUS_FOLDER): string {
  const path = join(folder, target, `${sha256Hex(input).slice(0, 12)}.input`)
  mkdirSync(join(folder, target), { recursive: true })
  writeFileSync(path, input)
  return path
}
