// A process outside of the cage with the very uid of the tool, and in the launcher's process group: what a tool could
// signal, limit or look at, if anything. It sleeps, and is ended by its pid.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { CageIdentity } from '../../cage/index.js'

const SECONDS = '600'

export class Bystander {
  readonly #child: ChildProcess
  #end: string | null = null

  private constructor(child: ChildProcess) {
    this.#child = child
    child.once('exit', (code, signal) => (this.#end = signal ?? `code ${code}`))
  }

  static async start(identity: CageIdentity | null): Promise<Bystander> {
    const child = spawn('/usr/bin/sleep', [SECONDS], {
      cwd: '/',
      env: {},
      stdio: 'ignore',
      ...(process.geteuid?.() === 0 && identity !== null && { uid: identity.uid, gid: identity.gid }),
    })
    const bystander = new Bystander(child)
    await once(child, 'spawn')
    return bystander
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  /** How it ended although nobody asked it to; null while it lives. */
  get end(): string | null {
    return this.#end
  }

  async stop(): Promise<void> {
    if (this.#end !== null) return
    const ended = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await ended
  }
}
