// Owns disks that a trial may fill and lock: a mount namespace of its own, in which a folder of the trial lies on a
// small tmpfs. Only root has them: in a user namespace the folders above belong to nobody that it knows, and daemons
// rightly refuse to trust such folders.
// Must never: mount anything where other processes of this machine would see it, or note it in the machine's own table
// of mounts (`-n`).
// Source: mount_namespaces(7), tmpfs(5): its size may be changed while it is mounted.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface, type Interface } from 'node:readline'
import { BrokerError } from '../../protocol/errors.js'

/** Reads one command a line, and says one line when it is done. */
const SHELL = 'echo 0; while read -r line; do eval "$line" </dev/null >/dev/null 2>&1; echo $?; done'

/** A writer may be faster: what is used has grown between the look and the call. */
const TRIES = 20

/** A namespace that holds disks until it is closed. */
export class DiskNamespace {
  readonly #holder: ChildProcess
  readonly #lines: Interface
  readonly #ended: Promise<unknown>
  #turn: Promise<unknown>

  private constructor() {
    this.#holder = spawn('unshare', ['--mount', 'sh', '-c', SHELL], { stdio: ['pipe', 'pipe', 'ignore'] })
    this.#ended = once(this.#holder, 'close')
    this.#holder.stdin?.on('error', () => undefined)
    this.#lines = createInterface({ input: this.#holder.stdout as NodeJS.ReadableStream })
    this.#turn = this.#status()
  }

  /** @throws BrokerError `unsupported_platform` for another user than root, and where no such namespace can be made. */
  static async open(): Promise<DiskNamespace> {
    const uid = process.geteuid?.()
    if (uid !== 0)
      throw new BrokerError(
        'unsupported_platform',
        `disk refused: expected root, which may mount a small disk for the stores, got uid ${uid}; run it as root`,
      )
    const namespace = new DiskNamespace()
    await namespace.#turn
    return namespace
  }

  /** Put before a command that is to see the disks, under the uid of whoever starts it. */
  get wrapper(): readonly string[] {
    return ['nsenter', '--target', String(this.#holder.pid), '--mount', '--']
  }

  /** Moves what is in a folder on a disk of this size, mounted there. Nobody may use the folder meanwhile. */
  async put(folder: string, megabytes: number): Promise<SmallDisk> {
    const [at, staged] = [quoted(folder), quoted(`${folder}.disk`)]
    await this.run(`mkdir ${staged} && mount -n -t tmpfs -o size=${megabytes}m tmpfs ${staged}`)
    await this.run(`cp -a ${at}/. ${staged} && mount -n --move ${staged} ${at} && rmdir ${staged}`)
    return new SmallDisk(this, folder, megabytes)
  }

  /** Runs one line of shell inside. @throws BrokerError `storage` when it fails. */
  async run(line: string): Promise<void> {
    const before = this.#turn
    const status = (async () => {
      await before
      this.#holder.stdin?.write(`${line}\n`)
      return this.#status()
    })()
    this.#turn = status.catch(() => undefined)
    const got = await status
    if (got !== 0) throw new BrokerError('storage', `disk refused: expected status 0 of ${line}, got ${got}`)
  }

  /** The disks go when the last process that sees them has ended. */
  async close(): Promise<void> {
    this.#holder.stdin?.end()
    await this.#ended
  }

  async #status(): Promise<number> {
    const line = await Promise.race([once(this.#lines, 'line'), this.#ended.then(() => undefined)])
    if (line !== undefined) return Number(line[0])
    throw new BrokerError('unsupported_platform', 'disk refused: expected a mount namespace, got none')
  }
}

/** One disk of a namespace. */
export class SmallDisk {
  readonly #namespace: DiskNamespace
  readonly #at: string
  readonly #megabytes: number

  constructor(namespace: DiskNamespace, folder: string, megabytes: number) {
    this.#namespace = namespace
    this.#at = quoted(folder)
    this.#megabytes = megabytes
  }

  /** No block is free from now on: the disk is as large as what is on it. */
  fill(): Promise<void> {
    const used = `$(df --output=used -k ${this.#at} | tail -n 1)`
    const shrink = `mount -n -o remount,size=$((${used}))k tmpfs ${this.#at}`
    return this.#namespace.run(Array(TRIES).fill(shrink).join(' || '))
  }

  /** There is room again. */
  free(): Promise<void> {
    return this.#remount(`size=${this.#megabytes}m`)
  }

  /** Only while nobody has a file of it open for writing: the kernel refuses it otherwise. */
  forbidWrites(): Promise<void> {
    return this.#remount('ro')
  }

  allowWrites(): Promise<void> {
    return this.#remount(`rw,size=${this.#megabytes}m`)
  }

  #remount(options: string): Promise<void> {
    return this.#namespace.run(`mount -n -o remount,${options} tmpfs ${this.#at}`)
  }
}

function quoted(path: string): string {
  return `'${path.replaceAll("'", "'\\''")}'`
}
