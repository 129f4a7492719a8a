// Owns a single-user installation made by the commands themselves, under an unprivileged user: this one, or, when root
// runs the tests, a free id that can reach the program. Its folder is gone at the end, and what it started as well.
import { chmodSync, chownSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freeIds } from '../../selftest/free-ids.js'
import { reachableProgram } from '../../selftest/program-copy.js'
import { packageRoot } from '../../native/paths.js'
import { layoutOf } from '../../system/layout.js'
import type { LocalProvider } from '../../system/installation-plan.js'
import { type Command, type CommandOptions, type Ended, startCommand } from './chio.js'

export class SingleUser {
  readonly folder = realpathSync(mkdtempSync(join(tmpdir(), 'chio-user-')))
  readonly state = join(this.folder, 'state')
  readonly uid: number | undefined
  /** The program that this user can reach. */
  readonly root: string
  readonly #running = new Set<Command>()

  constructor() {
    chmodSync(this.folder, 0o755)
    const isRoot = process.geteuid?.() === 0
    this.uid = isRoot ? freeIds(1)[0] : undefined
    this.root = isRoot ? reachableProgram(this.folder).root : packageRoot()
    if (this.uid !== undefined) chownSync(this.folder, this.uid, this.uid)
  }

  start(args: readonly string[], options: CommandOptions = {}): Command {
    const user = this.uid === undefined ? {} : { uid: this.uid, root: this.root }
    const command = startCommand(args, { ...user, ...options })
    this.#running.add(command)
    void command.ended.then(() => this.#running.delete(command))
    return command
  }

  /** Runs a command on this installation. */
  say(args: readonly string[], options: CommandOptions = {}): Promise<Ended> {
    const at = args.indexOf('--')
    const [own, tool] = at === -1 ? [args, []] : [args.slice(0, at), args.slice(at)]
    return this.start([...own, '--state', this.state, ...tool], options).ended
  }

  /** As the operator would with an editor: the daemon reads it when it starts. */
  addProvider(provider: LocalProvider): void {
    const { config } = layoutOf(this.state).broker
    const document = JSON.parse(readFileSync(config, 'utf8')) as { localProviders: LocalProvider[] }
    document.localProviders.push(provider)
    writeFileSync(config, JSON.stringify(document))
  }

  async remove(): Promise<void> {
    await Promise.all([...this.#running].map(command => command.stop()))
    rmSync(this.folder, { recursive: true, force: true })
  }
}
