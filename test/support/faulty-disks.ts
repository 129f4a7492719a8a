// Owns a whole installation whose two stores lie on disks of their own, to be filled, locked and put back by a test,
// with what the daemons say of it. Everything is real: tmpfs, mount, a second process with the file's lock.
import { EventEmitter, once } from 'node:events'
import { finalize, isSigned } from '../../host/settlement.js'
import type { AdmittedOperation } from '../../host/admission.js'
import * as plain from '../../selftest/plain-operation.js'
import type { PreparedStream } from '../../client/prepared-stream.js'
import type { DaemonRole } from '../../selftest/daemon-commands.js'
import { DiskNamespace, type SmallDisk } from '../../selftest/soak/small-disk.js'
import { holdStore } from './test-store.js'
import { TrialWorld } from './trial-world.js'
import { answer } from './provider.js'

const DISK_MEGABYTES = 64

export interface StartedOperation {
  readonly admitted: AdmittedOperation
  readonly stream: PreparedStream
}

export class FaultyDisks {
  readonly world: TrialWorld
  readonly log: string[]
  readonly #namespace: DiskNamespace
  readonly #disks: Record<DaemonRole, SmallDisk>

  private constructor(
    parts: Pick<FaultyDisks, 'world' | 'log'>,
    namespace: DiskNamespace,
    disks: Record<DaemonRole, SmallDisk>,
  ) {
    this.world = parts.world
    this.log = parts.log
    this.#namespace = namespace
    this.#disks = disks
  }

  static async begin(): Promise<FaultyDisks> {
    const namespace = await DiskNamespace.open()
    const log: string[] = []
    const disks: Partial<Record<DaemonRole, SmallDisk>> = {}
    const world = await TrialWorld.begin({
      onLogLine: line => log.push(line),
      async enclose({ state }) {
        for (const role of ['broker', 'kernel'] as const) {
          disks[role] = await namespace.put(`${state}/${role}`, DISK_MEGABYTES)
        }
        return namespace.wrapper
      },
    })
    return new FaultyDisks({ world, log }, namespace, disks as Record<DaemonRole, SmallDisk>)
  }

  async end(): Promise<void> {
    await this.world.end()
    await this.#namespace.close()
  }

  disk(role: DaemonRole): SmallDisk {
    return this.#disks[role]
  }

  /** Fills the disk of a store so that no commit fits any more. */
  async fill(role: DaemonRole): Promise<void> {
    await this.cutLog(role)
    await this.#disks[role].fill()
  }

  /** A log that was emptied into its file keeps its room and is written anew: cut to nothing, it has to grow. */
  cutLog(role: DaemonRole): Promise<void> {
    const cut = 'import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute("PRAGMA wal_checkpoint(TRUNCATE)")'
    return this.#namespace.run(`/usr/bin/python3 -c '${cut}' ${this.#folder(role)}/${role}.db`)
  }

  #folder(role: DaemonRole): string {
    return `${this.world.trial.layout.state}/${role}`
  }

  /** Another process takes the write lock of a store. */
  hold(role: DaemonRole): Promise<{ letGo(): Promise<void> }> {
    return holdStore(`${this.#folder(role)}/${role}.db`, this.#namespace.wrapper)
  }

  /** Copies a store's file and log, as a backup that knows nothing of SQLite does. */
  copy(role: DaemonRole, name: string): Promise<void> {
    const at = this.#folder(role)
    return this.#namespace.run(`cd ${at} && mkdir ${name} && cp ${role}.db ${role}.db-wal ${name}`)
  }

  /** Writes a copy back into the very files; the daemon has ended. */
  putBack(role: DaemonRole, name: string): Promise<void> {
    const [at, file] = [this.#folder(role), `${role}.db`]
    const write = ['', '-wal'].map(suffix => `cat ${name}/${file}${suffix} > ${file}${suffix}`)
    return this.#namespace.run(`cd ${at} && ${write.join(' && ')} && rm -f ${file}-shm`)
  }

  /** What the daemons said since, of this kind. */
  said(pattern: RegExp): string[] {
    return this.log.filter(line => pattern.test(line))
  }

  /** Steps 1 to 4. */
  async started(): Promise<StartedOperation> {
    const admitted = await plain.admit(this.world, BODY)
    const stream = await plain.prepare(this.world, admitted)
    await plain.start(this.world, admitted)
    return { admitted, stream }
  }

  /** Steps 5 to 8 of one that was started. @returns the state of the operation. */
  async finished({ admitted, stream }: StartedOperation): Promise<string> {
    const outcome = plain.judged(admitted, await plain.submit(this.world, stream))
    if (!isSigned(outcome)) throw new Error(`expected a signed outcome, got ${outcome.kind}`)
    return (await finalize(this.world.session, admitted.operationId, outcome)).state
  }

  /** Holds the next answer of the provider until it is opened. */
  gate(): { readonly reached: Promise<unknown>; open(): void } {
    const moments = new EventEmitter()
    const [reached, opened] = [once(moments, 'reached'), once(moments, 'opened')]
    this.world.provider.behave(async ({ socket }) => {
      moments.emit('reached')
      await opened
      answer(socket, '{"issue":1}')
    })
    return { reached, open: () => moments.emit('opened') }
  }
}

const BODY = Buffer.from('{"title":"it broke"}')
