// Owns one whole installation of a crash run: a trial with both daemons, a provider that counts by request, a grant
// that outlasts the run, and a host session that reads both records.
// Must never: decide whether something holds; that is the comparison's.
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { buildRequest } from '../../host/admission.js'
import type { HostSession } from '../../host/session.js'
import type { AtMoment } from '../../host/timeline.js'
import { systemClock } from '../../native/clock.js'
import { nativePath } from '../../native/index.js'
import { type Clock, NS_PER_MS } from '../../protocol/clock.js'
import { BrokerError, isBrokerError } from '../../protocol/errors.js'
import { requestDigest } from '../../protocol/execute-request.js'
import type { Grant } from '../../protocol/grant.js'
import { type SigningKey, signingKey } from '../../protocol/keys.js'
import { KEY_BYTES } from '../../protocol/limits.js'
import { deadlineAfter, hasPassed } from '../../system/deadline.js'
import type { DaemonRole } from '../daemon-commands.js'
import { startTrial, type Trial, type TrialOptions } from '../trial.js'
import { grantTrial } from '../trial-grant.js'
import { type HitProvider, startHitProvider } from './hit-provider.js'
import { type OperationEntry, readEntries, readEntry, type RequestLedger } from './records.js'
import { type Reached, SteeredDaemon } from './steered-daemon.js'

/** Of every request in a crash run: long enough for a busy machine, since only one row is about its end. */
export const TIMEOUT_MS = 3_000
/** Beyond the life of an execution nonce, and beyond start + 30 s + the timeout + 10 s. */
export const SETTLED_AFTER_MS = 62_000
const GRANT_LIFETIME_SECONDS = 86_400
const GRANT_EXECUTIONS = 1_000_000
const LOOK_MS = 20

export class CrashWorld {
  readonly trial: Trial
  readonly provider: HitProvider
  readonly grant: Grant
  readonly session: HostSession
  /** Who approves what asks for it. */
  readonly approver: SigningKey
  /** Every cutpoint that a steered daemon reached. */
  readonly reached: Reached = new Set()
  /** Called between the steps of runs in this very process. */
  atMoment: AtMoment = () => undefined
  readonly #steered = new Map<DaemonRole, SteeredDaemon>()
  #aheadMs = 0

  private constructor(parts: { trial: Trial; provider: HitProvider; grant: Grant; approver: SigningKey }) {
    this.approver = parts.approver
    this.trial = parts.trial
    this.provider = parts.provider
    this.grant = parts.grant
    const clock: Clock = {
      bootNs: () => systemClock.bootNs() + BigInt(this.#aheadMs) * NS_PER_MS,
      unixMs: () => systemClock.unixMs() + this.#aheadMs,
    }
    this.session = parts.trial.openHost({ clock, atMoment: moment => this.atMoment(moment) })
  }

  /** The daemons are the shipped ones until they are steered. */
  static async open(options: TrialOptions = {}): Promise<CrashWorld> {
    const provider = await startHitProvider()
    const approver = signingKey(randomBytes(KEY_BYTES))
    const approvers = [{ approverId: 'crash', publicKey: approver.publicKey }]
    try {
      const trial = await startTrial({ ...options, approvers, localProviders: [provider.local] })
      const token = `crash-${randomBytes(24).toString('hex')}`
      const wanted = { url: provider.url, token, maximumExecutions: GRANT_EXECUTIONS }
      const grant = await grantTrial(trial, { ...wanted, lifetimeSeconds: GRANT_LIFETIME_SECONDS })
      return new CrashWorld({ approver, trial, provider, grant })
    } catch (error) {
      await provider.close()
      throw error
    }
  }

  async close(): Promise<void> {
    this.session.close()
    await this.trial.stop()
    await this.provider.close()
  }

  /** How far every clock of this world is ahead of the machine's. */
  get aheadMs(): number {
    return this.#aheadMs
  }

  /** Puts a steered daemon in the place of the one that is there, or was. */
  async steer(role: DaemonRole, endAt: string | null = null): Promise<SteeredDaemon> {
    await this.trial.kill(role)
    const start = { aheadMs: this.#aheadMs, endAt }
    const daemon = await SteeredDaemon.start({ trial: this.trial, role }, start, this.reached)
    this.#steered.set(role, daemon)
    return daemon
  }

  steered(role: DaemonRole): SteeredDaemon {
    const daemon = this.#steered.get(role)
    if (daemon !== undefined) return daemon
    throw new BrokerError('invariant', `crash run refused: expected a steered ${role}, got the shipped one`)
  }

  /** Lets time pass for everybody: the broker first, so that the kernel asks none that is behind. */
  async pass(milliseconds: number): Promise<void> {
    this.#aheadMs += milliseconds
    for (const role of ['broker', 'kernel'] as const) await this.steered(role).pass(milliseconds)
  }

  /** Lets so much time pass that everything is due, for two new daemons: the last crash of both. */
  async steerAhead(milliseconds: number): Promise<void> {
    this.#aheadMs += milliseconds
    await this.steer('broker')
    await this.steer('kernel')
  }

  /** An order for a host: this body, by a tool or the default one. */
  order(body: string, tool: readonly string[] = [nativePath('chio-exec')]) {
    return { grantId: this.grant.grantId, body, tool, timeoutMs: TIMEOUT_MS, aheadMs: this.#aheadMs }
  }

  /** What relates the operations of a body to it. */
  digestOf(body: string): string {
    const { grantId } = this.grant
    const requested = { grantId, body: Buffer.from(body), headers: [], timeoutMs: TIMEOUT_MS }
    return requestDigest(buildRequest(this.grant, requested))
  }

  /** Hits and operations of a body, as the latest operations of the kernel have them. */
  async ledgerOf(body: string): Promise<RequestLedger> {
    const digest = this.digestOf(body)
    const entries = (await readEntries(this.session)).filter(({ requestDigest: of }) => of === digest)
    return { hits: this.provider.hits.get(body) ?? 0, entries }
  }

  /** Waits until an operation is settled. @returns its entry then, or as it stands when the time is over. */
  async settled(operationId: string, withinMs: number): Promise<OperationEntry> {
    return this.until(
      () => readEntry(this.session, operationId),
      ({ isSettled }) => isSettled,
      withinMs,
    )
  }

  /** Whether the slot is free, at the latest so long from now. */
  async slotFrees(withinMs: number): Promise<boolean> {
    const look = async (): Promise<boolean> => (await this.session.broker.slotStatus()).state === 'free'
    return this.until(look, isFree => isFree, withinMs)
  }

  /** Looks until it suffices. A daemon that is away meanwhile is asked again. @returns the last look. */
  async until<T>(look: () => Promise<T>, suffices: (seen: T) => boolean, withinMs: number): Promise<T> {
    const deadlineBootNs = deadlineAfter(systemClock, withinMs)
    for (;;) {
      const isLast = hasPassed(systemClock, deadlineBootNs)
      try {
        const seen = await look()
        if (isLast || suffices(seen)) return seen
      } catch (error) {
        if (isLast || !isBrokerError(error)) throw error
      }
      await sleep(LOOK_MS)
    }
  }
}
