// Owns where the exercise works: a new folder, the programs that it starts there, and what they left.
// Must never: share a process between two commands.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { BrokerError } from '../../protocol/errors.js'
import { DEFAULT_STATE, type Place, placeOf, type RequestFiles, requestFiles } from './place.js'
import { snapshotOf } from './snapshot.js'

/** A machine that is busy is no miss. */
const COMMAND_LIMIT_MS = 120_000

export const NOTE = 'Reviewed PR #421: the fixture for #414 carries an injected comment; do not merge.\n'
export const NOTE_SHA256 = '1237fdc278c34d32ab1e023f63d4b5e97922b13d18328e7f13783bb4d337e75f'

export interface Ended {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

export class ExercisePlace {
  readonly folder: string
  readonly place: Place
  readonly #chio: string
  #processes = 0

  /** @throws BrokerError `usage` where the folder has something in it. */
  constructor(output: string, chio: string) {
    this.folder = resolve(output)
    this.#chio = resolve(chio)
    this.place = placeOf(join(this.folder, DEFAULT_STATE))
    mkdirSync(this.folder, { mode: 0o700, recursive: true })
    if (existsSync(this.place.state)) {
      throw new BrokerError(
        'usage',
        `--output refused: expected a folder without ${DEFAULT_STATE}, got ${output}`,
      )
    }
    this.write('review.txt', NOTE)
    this.write('changed.txt', NOTE.replace('do not merge', 'merge'))
  }

  get processes(): number {
    return this.#processes
  }

  write(name: string, text: string): void {
    writeFileSync(join(this.folder, name), text)
  }

  path(name: string): string {
    return join(this.folder, name)
  }

  reviewNote(...args: readonly string[]): Ended {
    return this.#run(process.execPath, [programBeside('review-note.js'), ...args])
  }

  chio(...args: readonly string[]): Ended {
    return this.#chio.endsWith('.js')
      ? this.#run(process.execPath, [this.#chio, ...args])
      : this.#run(this.#chio, args)
  }

  files(key: string): RequestFiles {
    return requestFiles(this.place, key)
  }

  snapshot(): string {
    return snapshotOf(this.place)
  }

  /** Whole lines of the journal. */
  journalLines(): number {
    const { journal } = this.place
    return existsSync(journal) ? readFileSync(journal, 'utf8').split('\n').length - 1 : 0
  }

  #run(program: string, args: readonly string[]): Ended {
    this.#processes += 1
    const { error, status, stderr, stdout } = spawnSync(program, args, {
      cwd: this.folder,
      encoding: 'utf8',
      timeout: COMMAND_LIMIT_MS,
    })
    return { status, stderr: error === undefined ? stderr : error.message, stdout: stdout ?? '' }
  }
}

/** A program that lies where this one does. */
export function programBeside(name: string): string {
  return join(dirname(fileURLToPath(import.meta.url)), name)
}
