// Owns what a soak disturbs: an installation with both stores on small disks, its steered daemons, its hosts. Brings a
// daemon back that was killed, as a service manager does, as often as its disk refuses it.
// Must never: take an end that nobody caused for one of the soak's own.
import { setTimeout as sleep } from 'node:timers/promises'
import { isBrokerError } from '../../protocol/errors.js'
import { CrashWorld } from '../crash/crash-world.js'
import { HostProcess } from '../crash/host-process.js'
import type { DaemonRole } from '../daemon-commands.js'
import { DiskNamespace, type SmallDisk } from './small-disk.js'

export const ROLES: readonly DaemonRole[] = ['broker', 'kernel']

/** Room for an hour of load; a full disk is made by shrinking it. */
const DISK_MEGABYTES = 2_048
const RESTART_PAUSE_MS = 100
const START_PATIENCE_TRIES = 600

export class SoakWorld {
  readonly crash: CrashWorld
  readonly disks: Readonly<Record<DaemonRole, SmallDisk>>
  /** Hosts at work. */
  readonly hosts = new Set<HostProcess>()
  readonly violations: string[] = []
  readonly #namespace: DiskNamespace
  readonly #serving = new Set<DaemonRole>()
  readonly #reviving = new Map<DaemonRole, Promise<void>>()
  #isClosing = false

  private constructor(crash: CrashWorld, namespace: DiskNamespace, disks: Record<DaemonRole, SmallDisk>) {
    this.crash = crash
    this.disks = disks
    this.#namespace = namespace
  }

  static async open(): Promise<SoakWorld> {
    const namespace = await DiskNamespace.open()
    const disks: Partial<Record<DaemonRole, SmallDisk>> = {}
    try {
      const crash = await CrashWorld.open({
        async enclose({ state }) {
          for (const role of ROLES) disks[role] = await namespace.put(`${state}/${role}`, DISK_MEGABYTES)
          return namespace.wrapper
        },
      })
      const world = new SoakWorld(crash, namespace, disks as Record<DaemonRole, SmallDisk>)
      for (const role of ROLES) await world.#steer(role)
      return world
    } catch (error) {
      await namespace.close()
      throw error
    }
  }

  /** Starts a host. */
  async startHost(): Promise<HostProcess> {
    const host = new HostProcess(this.crash.trial.layout.state)
    this.hosts.add(host)
    void host.ended.then(() => this.hosts.delete(host))
    return host.ready()
  }

  /** Kills daemons at once and brings them back. @param awayMs how long they stay away. */
  async restart(roles: readonly DaemonRole[], awayMs: number): Promise<void> {
    await Promise.all(roles.map(role => this.end(role)))
    await sleep(awayMs)
    await Promise.all(roles.map(role => this.revived(role)))
  }

  /** Ends a daemon as a crash does. */
  async end(role: DaemonRole): Promise<void> {
    this.#serving.delete(role)
    await this.crash.trial.kill(role)
  }

  /** Resolves when the daemon serves. */
  async revived(role: DaemonRole): Promise<void> {
    if (this.#serving.has(role)) return
    const under = this.#reviving.get(role)
    if (under !== undefined) return under
    const reviving = this.#revive(role).finally(() => this.#reviving.delete(role))
    this.#reviving.set(role, reviving)
    return reviving
  }

  async close(): Promise<void> {
    this.#isClosing = true
    await Promise.all([...this.hosts].map(host => host.kill()))
    await this.crash.close()
    await this.#namespace.close()
  }

  /** Ends both daemons in order, for good. */
  async stopDaemons(): Promise<void> {
    this.#isClosing = true
    await Promise.all(ROLES.map(role => this.crash.trial[role].stop()))
  }

  async #revive(role: DaemonRole): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#steer(role)
      } catch (error) {
        if (!isBrokerError(error)) throw error
        // A full disk refuses the start, whichever call of it is the first to need room.
        if (error.code !== 'storage' || tries >= START_PATIENCE_TRIES) {
          this.violations.push(`the ${role} did not come back: ${error.message}`)
        }
        if (tries >= START_PATIENCE_TRIES) throw error
      }
      await sleep(RESTART_PAUSE_MS)
    }
  }

  async #steer(role: DaemonRole): Promise<void> {
    const daemon = await this.crash.steer(role)
    this.#serving.add(role)
    void daemon.process.exited.then(code => {
      // Whoever ended it took it out, and another may serve by now.
      if (!this.#serving.has(role) || this.crash.steered(role) !== daemon || this.#isClosing) return
      this.#serving.delete(role)
      this.violations.push(`the ${role} ended by itself with ${code}: ${daemon.process.log.at(-1) ?? ''}`)
      void this.revived(role).catch(() => undefined)
    })
  }
}
