// Owns a place in which the commands of a document are run as a reader would: an ordinary user, a home of its own,
// a loopback provider in place of the example's, `chio` on the path. It ends only what it started.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { packageRoot } from '../../../native/paths.js'
import { freeIds } from '../../../selftest/free-ids.js'
import { type IssueProvider, startIssueProvider } from '../../../selftest/issue-provider.js'
import { reachableProgram } from '../../../selftest/program-copy.js'

const EXAMPLE_URL = 'https://api.example.com/issues'
const TOKEN = 'walk-token-of-the-readme'
const STEP_LIMIT_MS = 60_000

export interface StepEnd {
  readonly code: number | null
  readonly output: string
}

export class Walk {
  readonly provider: IssueProvider
  readonly #place: string
  readonly #uid: number | null
  readonly #programRoot: string
  #serving: ChildProcess | undefined

  private constructor(provider: IssueProvider, place: string, uid: number | null) {
    this.provider = provider
    this.#place = place
    this.#uid = uid
    this.#programRoot = uid === null ? packageRoot() : reachableProgram(place).root
  }

  static async begin(): Promise<Walk> {
    const provider = await startIssueProvider({ token: TOKEN })
    const place = realpathSync(mkdtempSync(join(tmpdir(), 'chio-walk-')))
    chmodSync(place, 0o755)
    const uid = process.geteuid?.() === 0 ? (freeIds(1)[0] ?? null) : null
    const walk = new Walk(provider, place, uid)
    walk.#furnish()
    return walk
  }

  get home(): string {
    return join(this.#place, 'home')
  }

  get state(): string {
    return join(this.home, '.local', 'state', 'chio')
  }

  /** Puts a file where the commands run. */
  write(name: string, text: string, mode = 0o644): void {
    const path = join(this.#place, 'home', name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
    chmodSync(path, mode)
  }

  /** Lets the broker reach the loopback provider, as an operator would: an entry of its configuration. */
  admitProvider(): void {
    const path = join(this.state, 'broker', 'config.json')
    const config = JSON.parse(readFileSync(path, 'utf8')) as object
    writeFileSync(path, JSON.stringify({ ...config, localProviders: [this.provider.local] }))
  }

  /** Runs the lines of one block in a shell that stops at the first failure. The provider answers meanwhile. */
  async run(text: string): Promise<StepEnd> {
    const script = text.replaceAll(EXAMPLE_URL, this.provider.url)
    const [program, ...args] = this.#command(['/bin/sh', '-eu', '-c', script])
    const child = spawn(program as string, args, {
      ...this.#circumstances(),
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: STEP_LIMIT_MS,
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (piece: string) => (output += piece))
    }
    await once(child, 'close')
    return { code: child.exitCode, output }
  }

  /** Starts a block that stays in the foreground, and waits until it says that it serves. */
  async serve(text: string): Promise<void> {
    const [program, ...args] = this.#command(['/bin/sh', '-eu', '-c', `exec ${text.trim()}`])
    const child = spawn(program as string, args, {
      ...this.#circumstances(),
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    this.#serving = child
    const said: string[] = []
    const serving = new Promise<void>(resolve => {
      createInterface({ input: child.stderr }).on('line', line => {
        said.push(line)
        if (line.startsWith('Serving ')) resolve()
      })
    })
    const ended = once(child, 'exit').then(() => 'ended')
    if ((await Promise.race([serving, ended])) === 'ended') throw new Error(said.join('\n'))
  }

  async end(): Promise<void> {
    const child = this.#serving
    if (child !== undefined && child.exitCode === null && child.signalCode === null) {
      child.kill('SIGTERM')
      await once(child, 'exit')
    }
    await this.provider.close()
    rmSync(this.#place, { recursive: true, force: true })
  }

  #furnish(): void {
    const bin = join(this.#place, 'bin')
    mkdirSync(bin)
    const shim = `#!/bin/sh\nexec '${process.execPath}' '${join(this.#programRoot, 'dist', 'bin', 'chio.js')}' "$@"\n`
    writeFileSync(join(bin, 'chio'), shim)
    chmodSync(join(bin, 'chio'), 0o755)
    const home = join(this.#place, 'home')
    mkdirSync(join(home, 'node_modules'), { recursive: true })
    symlinkSync(this.#programRoot, join(home, 'node_modules', 'chio-broker'))
    cpSync(join(packageRoot(), 'examples', 'requests'), join(home, 'examples', 'requests'), {
      recursive: true,
    })
    this.write('token.txt', `${TOKEN}\n`)
    if (this.#uid !== null) chownSync(home, this.#uid, this.#uid)
  }

  #command(command: readonly string[]): readonly string[] {
    if (this.#uid === null) return command
    return ['setpriv', `--reuid=${this.#uid}`, `--regid=${this.#uid}`, '--clear-groups', '--', ...command]
  }

  #circumstances() {
    const home = join(this.#place, 'home')
    const path = `${join(this.#place, 'bin')}:${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin:/usr/sbin`
    return { cwd: home, env: { HOME: home, PATH: path, LANG: 'C.UTF-8' } }
  }
}
