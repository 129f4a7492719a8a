// Owns a state of the review-note example that tests work in: made by its own init, every command opening the stores
// anew, in this process or as a program.
// Must never: be reached from anything that ships.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Act, actIn } from '../../examples/review-note/act.js'
import { authorize } from '../../examples/review-note/authorize.js'
import { execute } from '../../examples/review-note/execute.js'
import { initialise } from '../../examples/review-note/init.js'
import { type RequestFiles, requestFiles } from '../../examples/review-note/place.js'
import { report } from '../../examples/review-note/report.js'
import { snapshotOf } from '../../examples/review-note/snapshot.js'
import { packageRoot } from '../../native/paths.js'
import { temporaryFolder } from './temporary-folder.js'

export const SAMPLE_NOTE =
  'Reviewed PR #421: the fixture for #414 carries an injected comment; do not merge.\n'
const quiet = (): void => undefined

export class ReviewNote {
  readonly folder: string
  readonly act: Act

  private constructor(folder: string, act: Act) {
    this.folder = folder
    this.act = act
  }

  static async begin(invocations = 4): Promise<ReviewNote> {
    const folder = temporaryFolder('chio-review-note-')
    const { state } = await initialise(join(folder, '.caller'), invocations, quiet)
    return new ReviewNote(folder, actIn(state, quiet))
  }

  get journal(): string {
    return this.act.place.journal
  }

  files(key: string): RequestFiles {
    return requestFiles(this.act.place, key)
  }

  /** A file with a note beside the state. */
  write(note: string | Uint8Array, name = 'review.txt'): string {
    const path = join(this.folder, name)
    writeFileSync(path, note)
    return path
  }

  authorize(key: string, note: string | Uint8Array = SAMPLE_NOTE) {
    return authorize(this.act, this.write(note), key)
  }

  execute(key: string, act = this.act) {
    return execute(act, key, false)
  }

  report(key: string) {
    return report(this.act, key)
  }

  /** Whole lines of the journal. */
  lines(): string[] {
    return existsSync(this.journal) ? readFileSync(this.journal, 'utf8').split('\n').slice(0, -1) : []
  }

  snapshot(): string {
    return snapshotOf(this.act.place)
  }

  /** A command as a process of its own. */
  run(...args: readonly string[]) {
    const program = join(packageRoot(), 'dist', 'bin', 'review-note.js')
    return spawnSync(process.execPath, [program, ...args], { cwd: this.folder, encoding: 'utf8' })
  }

  end(): void {
    rmSync(this.folder, { force: true, recursive: true })
  }
}
