// What the broker cases share: one trial with a provider, one grant, a mint, and the questions that every
// case asks: is the slot free, what did the attempt end with, was the provider ever reached.
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { prepareDispatchConnection } from '../client/prepare.js'
import type { PreparedStream } from '../client/prepared-stream.js'
import { buildRequest } from '../host/admission.js'
import type { HostSession } from '../host/session.js'
import { systemClock } from '../native/clock.js'
import { isBrokerError } from '../protocol/errors.js'
import type { BrokerRequest } from '../protocol/execute-request.js'
import type { Grant } from '../protocol/grant.js'
import type { AttemptStatus } from '../protocol/status.js'
import { CaseFailure, expectEqual } from './case-result.js'
import { type IssueProvider, startIssueProvider } from './issue-provider.js'
import { Mint, type MintedAttempt, type MintedLifetime } from './minted-attempt.js'
import { startTrial, type Trial } from './trial.js'
import { grantTrial } from './trial-grant.js'

const POLL_MS = 1
const LONG: MintedLifetime = { capabilitySeconds: 120, nonceSeconds: 120 }

/** One bench for all cases of a run. */
export class BrokerBench {
  readonly trial: Trial
  readonly provider: IssueProvider
  readonly session: HostSession
  readonly grant: Grant
  readonly request: BrokerRequest
  readonly mint: Mint

  private constructor(parts: { trial: Trial; provider: IssueProvider; session: HostSession; grant: Grant }) {
    this.trial = parts.trial
    this.provider = parts.provider
    this.session = parts.session
    this.grant = parts.grant
    const body = Buffer.from('{"title":"selftest"}', 'utf8')
    this.request = buildRequest(parts.grant, { grantId: parts.grant.grantId, body, headers: [] })
    this.mint = new Mint(parts.trial.layout, parts.session, parts.grant)
  }

  static async open(): Promise<BrokerBench> {
    const token = `selftest-${randomBytes(24).toString('hex')}`
    const provider = await startIssueProvider({ token })
    try {
      const trial = await startTrial({ localProviders: [provider.local] })
      const grant = await grantTrial(trial, { url: provider.url, token, maximumExecutions: 100 })
      return new BrokerBench({ trial, provider, grant, session: trial.openHost() })
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

  /** Mints and registers an attempt. */
  async registered(lifetime: MintedLifetime = LONG): Promise<MintedAttempt> {
    const attempt = this.mint.mint(this.request, lifetime)
    await this.session.broker.register(attempt.register)
    return attempt
  }

  /** Prepares a registered attempt. */
  async prepare(attempt: Pick<MintedAttempt, 'prepare'>): Promise<PreparedStream> {
    return (await prepareDispatchConnection(this.session.pins.broker, attempt.prepare, systemClock)).stream
  }

  /** The code with which a preparation is declined. */
  async declinedCode(attempt: Pick<MintedAttempt, 'prepare'>): Promise<string> {
    let stream: PreparedStream
    try {
      stream = await this.prepare(attempt)
    } catch (error) {
      if (isBrokerError(error)) return error.code
      throw error
    }
    stream.close()
    throw new CaseFailure('preparation: expected a refusal, got a stream')
  }

  async slotState(): Promise<string> {
    return (await this.session.broker.slotStatus()).state
  }

  /** Waits for a free slot. @returns the milliseconds that it took. @throws CaseFailure past the bound. */
  async untilFree(boundMs: number): Promise<number> {
    const startedBootNs = systemClock.bootNs()
    const elapsedMs = (): number => Number((systemClock.bootNs() - startedBootNs) / 1_000n) / 1_000
    while ((await this.slotState()) !== 'free') {
      if (elapsedMs() > boundMs) throw new CaseFailure(`slot: expected free within ${boundMs} ms, got held`)
      await sleep(POLL_MS)
    }
    return elapsedMs()
  }

  async ending(attempt: MintedAttempt): Promise<AttemptStatus> {
    return this.session.broker.attemptStatus(attempt.registration.ids.attemptId)
  }

  /** No provider request and no decryption since `before`. */
  async expectUntouched(before: { requests: number; decryptions: number }): Promise<void> {
    expectEqual('provider requests and decryptions', before, await this.touches())
  }

  async touches(): Promise<{ requests: number; decryptions: number }> {
    const { decryptions } = await this.session.broker.slotStatus()
    return { requests: this.provider.requests, decryptions }
  }
}
