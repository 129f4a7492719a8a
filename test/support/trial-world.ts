// Owns one whole installation in a test: a trial with both daemons as processes, a provider that the test steers, a
// grant, a host. Tools run in real cages. Nothing here decides; a story says what happens and what must hold.
import { randomBytes } from 'node:crypto'
import { type CagePolicy, cagePolicy, type ExecPolicy, resolveTool } from '../../cage/index.js'
import type { BrokerClient } from '../../client/broker-client.js'
import type { RequestedExecution } from '../../host/admission.js'
import { type BrokeredRun, runBrokered } from '../../host/brokered-run.js'
import type { RunChoices } from '../../host/prepared-run.js'
import type { HostSession } from '../../host/session.js'
import { nativePath } from '../../native/index.js'
import { type BrokerError, isBrokerError } from '../../protocol/errors.js'
import type { Grant } from '../../protocol/grant.js'
import type { AttemptStatus, SlotStatus } from '../../protocol/status.js'
import { startTrial, type Trial, type TrialOptions } from '../../selftest/trial.js'
import { grantTrial } from '../../selftest/trial-grant.js'
import { answer, startProvider, type TestProvider } from './provider.js'

export const BODY = Buffer.from('{"title":"it broke"}')

export class TrialWorld {
  readonly trial: Trial
  readonly provider: TestProvider
  readonly session: HostSession
  readonly grant: Grant
  readonly token: string

  private constructor(parts: Pick<TrialWorld, 'trial' | 'provider' | 'session' | 'grant' | 'token'>) {
    this.trial = parts.trial
    this.provider = parts.provider
    this.session = parts.session
    this.grant = parts.grant
    this.token = parts.token
  }

  static async begin(options: TrialOptions = {}): Promise<TrialWorld> {
    const token = `trial-${randomBytes(24).toString('hex')}`
    const provider = await startProvider({ behaviour: ({ socket }) => answer(socket, '{"issue":1}') })
    try {
      const trial = await startTrial({ ...options, localProviders: [provider.localProvider()] })
      const grant = await grantTrial(trial, { url: provider.url('/issues'), token, maximumExecutions: 100 })
      return new TrialWorld({ trial, provider, grant, token, session: trial.openHost() })
    } catch (error) {
      await provider.close()
      throw error
    }
  }

  async end(): Promise<void> {
    this.session.close()
    await this.trial.stop()
    await this.provider.close()
  }

  get broker(): BrokerClient {
    return this.session.broker
  }

  requested(overrides: Partial<RequestedExecution> = {}): RequestedExecution {
    return { grantId: this.grant.grantId, body: BODY, headers: [], ...overrides }
  }

  /** A tool in its cage; without a command the default one. */
  cage(command: readonly string[] = [nativePath('chio-exec')], exec: ExecPolicy = 'allowed'): CagePolicy {
    const [program = '', ...args] = command
    return cagePolicy({ ...resolveTool(program, args), exec, identity: this.trial.identities.cage })
  }

  run(command?: readonly string[], overrides: Partial<RunChoices> = {}): Promise<BrokeredRun> {
    return runBrokered(this.session, {
      ...overrides,
      ...this.requested(overrides),
      cage: this.cage(command),
    })
  }

  /** Runs and expects a refusal. */
  async refusedRun(
    command?: readonly string[],
    overrides: Partial<RequestedExecution> = {},
  ): Promise<BrokerError> {
    return refusalOf(() => this.run(command, overrides))
  }

  slot(): Promise<SlotStatus> {
    return this.broker.slotStatus()
  }

  /** What was ever done with the credential. */
  async touches(): Promise<{ requests: number; decryptions: number }> {
    return { requests: this.provider.hits, decryptions: (await this.slot()).decryptions }
  }

  attempt(attemptId: string): Promise<AttemptStatus> {
    return this.broker.attemptStatus(attemptId)
  }

  /** Why an operation went where, in the order in which the kernel noted it. */
  async causes(operationId: string): Promise<readonly string[]> {
    const { explanation } = await this.session.kernel.call('explain', { id: operationId })
    return explanation.history.map(({ cause }) => cause)
  }

  async operation(operationId: string) {
    return this.session.kernel.call('inspect', { operationId })
  }
}

export async function refusalOf(act: () => Promise<unknown>): Promise<BrokerError> {
  const error: unknown = await act().then(
    () => undefined,
    (cause: unknown) => cause,
  )
  if (isBrokerError(error)) return error
  throw new Error(`expected a refusal, got ${String(error)}`, { cause: error })
}
