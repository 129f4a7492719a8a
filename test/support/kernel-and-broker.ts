// Owns a real kernel beside a real broker, each with its own store and sockets, and the host between them. Both run
// on one clock that a test moves on, so that no deadline has to be waited for.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { BrokerClient } from '../../client/broker-client.js'
import type { BrokerPins } from '../../client/broker-pins.js'
import { BrokerRecordsClient } from '../../client/broker-records.js'
import { type Preparation, prepareDispatchConnection } from '../../client/prepare.js'
import { type Broker, startBroker } from '../../daemon/broker.js'
import { provisionBrokerStore } from '../../daemon/broker-store.js'
import { CONFIG_SCHEMA } from '../../daemon/config.js'
import { systemClock } from '../../native/clock.js'
import type { Clock } from '../../protocol/clock.js'
import { encode } from '../../protocol/codec.js'
import { CredentialMutation } from '../../protocol/credential-mutation.js'
import { destinationFromUrl } from '../../protocol/destination.js'
import type { Grant } from '../../protocol/grant.js'
import type { AuthorizeRegistrationResult } from '../../protocol/kernel-rpc.js'
import { approve, AUDIENCE, issueGrant, makeTestKernel, seed, TENANT, type TestKernel } from './kernel.js'
import { startProvider, type TestProvider } from './provider.js'
import { type ReservedOperation, reserved } from './brokered-operation.js'

/** The machine's time, and what a test let pass on both hands. */
export class PassingClock implements Clock {
  #passedMs = 0

  unixMs(): number {
    return systemClock.unixMs() + this.#passedMs
  }

  bootNs(): bigint {
    return systemClock.bootNs() + BigInt(this.#passedMs) * 1_000_000n
  }

  pass(milliseconds: number): void {
    this.#passedMs += milliseconds
  }
}

export interface AuthorizedOperation extends ReservedOperation, AuthorizeRegistrationResult {}

export class KernelAndBroker {
  readonly clock = new PassingClock()
  readonly kernel: TestKernel
  readonly provider: TestProvider
  readonly pins: BrokerPins
  readonly grant: Grant
  readonly #masterKey = seed()
  #broker: Broker | undefined

  private constructor(parts: Pick<KernelAndBroker, 'clock' | 'grant' | 'kernel' | 'pins' | 'provider'>) {
    this.clock = parts.clock
    this.grant = parts.grant
    this.kernel = parts.kernel
    this.pins = parts.pins
    this.provider = parts.provider
  }

  static async start(): Promise<KernelAndBroker> {
    const clock = new PassingClock()
    const provider = await startProvider()
    const found = () => new BrokerRecordsClient(pinsOf(kernel), clock)
    const kernel: TestKernel = await makeTestKernel({
      clock,
      records: {
        attemptStatus: (attemptId, deadline) => found().attemptStatus(attemptId, deadline),
        output: (attempt, deadline) => found().output(attempt, deadline),
        isReachable: deadline => found().isReachable(deadline),
        release: (attempt, authorization, deadline) => found().release(attempt, authorization, deadline),
        replay: (attempt, deadline) => found().replay(attempt, deadline),
      },
    })
    const pins = pinsOf(kernel)
    const grant = await issueGrant(
      kernel,
      { destination: destinationFromUrl(provider.url('/issues'), 'POST') },
      clock,
    )
    const pair = new KernelAndBroker({ clock, grant, kernel, pins, provider })
    mkdirSync(join(kernel.folder, 'broker-state'), { mode: 0o700 })
    await provisionBrokerStore(join(kernel.folder, 'broker-state'), clock)
    await pair.startBroker()
    await pair.#provision()
    return pair
  }

  get client(): BrokerClient {
    return new BrokerClient(this.pins, this.clock)
  }

  async startBroker(): Promise<void> {
    this.#broker = await startBroker({
      clock: this.clock,
      config: brokerConfig(this.kernel, this.provider),
      log: { error: () => {}, info: () => {}, warn: () => {} },
      masterKey: Uint8Array.from(this.#masterKey),
      receiptKey: this.kernel.broker,
    })
  }

  async stopBroker(): Promise<void> {
    await this.#broker?.close()
    this.#broker = undefined
  }

  async close(): Promise<void> {
    await this.stopBroker()
    await this.provider.close()
    await this.kernel.remove()
  }

  /** Reserves and lets the kernel sign; the broker knows nothing yet. */
  async authorized(): Promise<AuthorizedOperation> {
    const operation = await reserved(this.kernel, this.grant, this.clock)
    const { execute, operationId } = operation
    return {
      ...operation,
      ...(await this.kernel.client.call('authorize_registration', { execute, operationId })),
    }
  }

  async register(operation: AuthorizedOperation): Promise<void> {
    const { execute: request, registerAuthorization: authorization, registration } = operation
    await this.client.register({ authorization, registration, request })
  }

  async prepare(operation: AuthorizedOperation): Promise<Preparation> {
    const { execute: request, prepareAuthorization: authorization, registration } = operation
    return prepareDispatchConnection(this.pins, { authorization, registration, request }, this.clock)
  }

  async #provision(): Promise<void> {
    const payload = encode(CredentialMutation, {
      credential: this.grant.credential,
      mutation: 'provision',
      placement: this.grant.placement,
      schema: 'chio.broker-credential-mutation.v2',
      secret: Buffer.from('canary-secret-token-8391'),
    })
    const request = { operation: 'provision', payload, tenantScope: TENANT } as const
    await this.client.administer(request, approve(this.kernel, 'provision', payload, this.clock))
  }
}

function pinsOf(kernel: TestKernel): BrokerPins {
  return {
    receiptKey: kernel.broker.publicKey,
    requestFrameBytes: 8 * 1024 * 1024,
    responseFrameBytes: 32 * 1024 * 1024,
    socketGid: null,
    socketPath: kernel.config.broker.socketPath,
    tenantScope: TENANT,
    uid: process.geteuid?.() ?? 0,
  }
}

function brokerConfig(
  kernel: TestKernel,
  provider: TestProvider,
): Parameters<typeof startBroker>[0]['config'] {
  const uid = process.geteuid?.() ?? 0
  return {
    adapter: kernel.config.broker.adapter,
    administrators: kernel.config.administrators,
    audience: AUDIENCE,
    authority: {
      gid: null,
      publicKey: kernel.keys.authority.publicKey,
      socketPath: kernel.config.authoritySocketPath,
      timeoutMs: 2_000,
      uid,
    },
    brokerIdentity: kernel.broker.publicKey,
    capabilityIssuer: kernel.keys.issuer.publicKey,
    clients: [{ callerPublicKey: null, gids: [process.getegid?.() ?? 0], uid }],
    clockSkewSeconds: 5,
    livenessAgeSeconds: 10,
    localProviders: [provider.localProvider()],
    providerTimeoutCeilingMs: 30_000,
    readTimeoutMs: 2_000,
    requestFrameBytes: 8 * 1024 * 1024,
    responseFrameBytes: 32 * 1024 * 1024,
    revocationAgeSeconds: 10,
    schema: CONFIG_SCHEMA,
    socketGid: null,
    socketPath: kernel.config.broker.socketPath,
    stateDirectory: join(kernel.folder, 'broker-state'),
    tenantScope: TENANT,
    writeTimeoutMs: 2_000,
  }
}
