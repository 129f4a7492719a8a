// Owns the surroundings of one broker in a test: folder, keys, authority, provider, configuration, and attempts as a
// kernel and a host would make them. Everything is real but the deciding.
import { randomBytes } from 'node:crypto'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { BrokerClient } from '../../client/broker-client.js'
import type { BrokerPins } from '../../client/broker-pins.js'
import type { Preparation } from '../../client/prepare.js'
import { startBroker, type Broker } from '../../daemon/broker.js'
import { provisionBrokerStore } from '../../daemon/broker-store.js'
import { type BrokerdConfig, CONFIG_SCHEMA } from '../../daemon/config.js'
import type { HostLookup } from '../../daemon/provider/resolve.js'
import type { BrokerLog, LogFields } from '../../daemon/log.js'
import { systemClock } from '../../native/clock.js'
import { signAdminRequest } from '../../protocol/administration.js'
import type { Clock } from '../../protocol/clock.js'
import { decode, encode } from '../../protocol/codec.js'
import {
  CapabilityControlCommand,
  CapabilityStatusResponse,
  CredentialMutation,
} from '../../protocol/credential-mutation.js'
import { type PublicKey, type SigningKey, signingKey } from '../../protocol/keys.js'
import type { CredentialPlacement } from '../../protocol/placement.js'
import { TestAuthority } from './authority.js'
import { startProvider, type TestProvider } from './provider.js'
import { temporaryFolder } from './temporary-folder.js'
import { type AttemptOptions, AUDIENCE, nowUnixSeconds, TENANT, TestAttempt } from './test-attempt.js'

export const SECRET = 'canary-secret-token-8391'

export interface WorldOptions {
  readonly config?: Partial<BrokerdConfig>
  readonly authorityTimeoutMs?: number
  /** The one caller key that every client of the configuration may speak for. */
  readonly callerOfClients?: PublicKey
  readonly clock?: Clock
  readonly atCutpoint?: (name: string) => void
  readonly lookupHost?: HostLookup
  /** False: no credential is provisioned. */
  readonly provisioned?: boolean
  /** Without one no provider runs and nothing answers. */
  readonly provider?: boolean
}

export interface LogLine extends LogFields {
  readonly message: string
}

export class BrokerWorld {
  readonly folder = temporaryFolder('chio-broker-')
  readonly keys = {
    authority: signingKey(randomBytes(32)),
    issuer: signingKey(randomBytes(32)),
    admin: signingKey(randomBytes(32)),
    caller: signingKey(randomBytes(32)),
  }
  readonly receiptSeed = randomBytes(32)
  readonly masterSeed = randomBytes(32)
  readonly receiptKey: SigningKey = signingKey(this.receiptSeed)
  readonly lines: LogLine[] = []
  readonly #options: WorldOptions
  readonly authority: TestAuthority
  #provider: TestProvider | undefined
  #broker: Broker | undefined

  constructor(options: WorldOptions) {
    this.#options = options
    this.authority = new TestAuthority({
      path: join(this.folder, 'authority', 'sock'),
      key: this.keys.authority,
      broker: this.receiptKey.publicKey,
    })
  }

  get provider(): TestProvider {
    if (this.#provider === undefined) throw new Error('this world has no provider')
    return this.#provider
  }

  get broker(): Broker {
    if (this.#broker === undefined) throw new Error('no broker runs in this process')
    return this.#broker
  }

  /** Whether the broker of this process still serves. */
  get isRunning(): boolean {
    return this.#broker !== undefined && !this.lines.some(line => line['event'] === 'stopped')
  }

  get stateDirectory(): string {
    return join(this.folder, 'state')
  }

  get socketPath(): string {
    return join(this.folder, 'broker', 'sock')
  }

  get config(): BrokerdConfig {
    const uid = process.getuid?.() ?? 0
    const gids = [process.getgid?.() ?? 0]
    return {
      schema: CONFIG_SCHEMA,
      tenantScope: TENANT,
      audience: AUDIENCE,
      brokerIdentity: this.receiptKey.publicKey,
      stateDirectory: this.stateDirectory,
      socketPath: this.socketPath,
      socketGid: null,
      clients: [{ uid, gids, callerPublicKey: this.#options.callerOfClients ?? null }],
      authority: {
        socketPath: join(this.folder, 'authority', 'sock'),
        publicKey: this.keys.authority.publicKey,
        uid,
        gid: null,
        timeoutMs: this.#options.authorityTimeoutMs ?? 1_000,
      },
      capabilityIssuer: this.keys.issuer.publicKey,
      administrators: {
        subject: 'operator',
        threshold: 1,
        keys: [this.keys.admin.publicKey],
        maximumTokenLifetimeSeconds: 300,
      },
      adapter: { id: 'https-json', version: 1 },
      clockSkewSeconds: 5,
      livenessAgeSeconds: 10,
      revocationAgeSeconds: 10,
      readTimeoutMs: 2_000,
      writeTimeoutMs: 2_000,
      providerTimeoutCeilingMs: 30_000,
      requestFrameBytes: 8 * 1024 * 1024,
      responseFrameBytes: 32 * 1024 * 1024,
      localProviders: this.#provider === undefined ? [] : [this.#provider.localProvider()],
      ...this.#options.config,
    }
  }

  get pins(): BrokerPins {
    const { tenantScope, requestFrameBytes, responseFrameBytes } = this.config
    return {
      socketPath: this.socketPath,
      uid: process.getuid?.() ?? 0,
      socketGid: null,
      tenantScope,
      receiptKey: this.receiptKey.publicKey,
      requestFrameBytes,
      responseFrameBytes,
    }
  }

  get client(): BrokerClient {
    return new BrokerClient(this.pins, systemClock)
  }

  /** Makes folder, store, authority and provider; starts no broker. */
  async found(): Promise<void> {
    mkdirSync(this.stateDirectory, { mode: 0o700 })
    mkdirSync(join(this.folder, 'broker'), { mode: 0o700 })
    await provisionBrokerStore(this.stateDirectory, systemClock)
    await this.authority.start()
    if (this.#options.provider !== false) this.#provider = await startProvider()
  }

  /** Starts a broker in this process and provisions the credential. */
  async start(): Promise<Broker> {
    const { atCutpoint, clock, lookupHost } = this.#options
    this.#broker = await startBroker({
      config: this.config,
      masterKey: Uint8Array.from(this.masterSeed),
      receiptKey: this.receiptKey,
      clock: clock ?? systemClock,
      log: this.#log(),
      ...(atCutpoint && { atCutpoint }),
      ...(lookupHost && { lookupHost }),
    })
    return this.#broker
  }

  async stopBroker(): Promise<void> {
    await this.#broker?.close()
    this.#broker = undefined
  }

  async close(): Promise<void> {
    await this.stopBroker()
    await this.authority.close()
    await this.#provider?.close()
    rmSync(this.folder, { recursive: true, force: true })
  }

  /** Writes configuration and keys as files, for a broker that is a process of its own. */
  writeFiles(): { config: string; masterKey: string; receiptKey: string } {
    const files = {
      config: join(this.folder, 'config.json'),
      masterKey: join(this.folder, 'master.key'),
      receiptKey: join(this.folder, 'receipt.key'),
    }
    writeFileSync(files.config, JSON.stringify(this.config), { mode: 0o600 })
    writeFileSync(files.masterKey, this.masterSeed, { mode: 0o600 })
    writeFileSync(files.receiptKey, this.receiptSeed, { mode: 0o600 })
    return files
  }

  /** Signs one administrator's request. */
  administered(operation: string, payload: Uint8Array, requestId = randomBytes(8).toString('hex')) {
    const request = { operation, payload, tenantScope: TENANT }
    const statement = {
      subject: 'operator',
      requestId,
      issuedAtUnixSeconds: nowUnixSeconds(),
      lifetimeSeconds: 60,
    }
    return { request, authorization: signAdminRequest(request, statement, this.keys.admin) }
  }

  /** A signed request to store a credential. */
  provisioning(
    secret: string,
    version: number,
    placement: CredentialPlacement = { kind: 'bearer_authorization' },
  ) {
    const payload = encode(CredentialMutation, {
      credential: { credentialId: 'issues', provider: 'tracker', version },
      mutation: 'provision',
      placement,
      schema: 'chio.broker-credential-mutation.v2',
      secret: Buffer.from(secret),
    })
    return this.administered('provision', payload)
  }

  async provision(secret = SECRET, version = 1, placement?: CredentialPlacement): Promise<Uint8Array> {
    const { request, authorization } = this.provisioning(secret, version, placement)
    return this.client.administer({ ...request, operation: 'provision' }, authorization)
  }

  /** A signed request to disable a version of the stored credential. */
  disabling(version = 1) {
    const payload = encode(CredentialMutation, {
      credential: { credentialId: 'issues', provider: 'tracker', version },
      mutation: 'disable',
      placement: null,
      schema: 'chio.broker-credential-mutation.v2',
      secret: new Uint8Array(0),
    })
    return this.administered('disable', payload)
  }

  async disable(version = 1): Promise<Uint8Array> {
    const { request, authorization } = this.disabling(version)
    return this.client.administer({ ...request, operation: 'disable' }, authorization)
  }

  /** Puts a parent capability on the broker's own revocation list. */
  async revoke(capabilityId: string): Promise<CapabilityStatusResponse> {
    const payload = encode(CapabilityControlCommand, {
      capabilityId,
      credential: { credentialId: 'issues', provider: 'tracker', version: 1 },
      revocationId: `revocation-${capabilityId}`,
      schema: 'chio.broker-capability-control.v1',
    })
    const { request, authorization } = this.administered('revoke', payload)
    const answer = await this.client.administer({ ...request, operation: 'revoke' }, authorization)
    return decode(CapabilityStatusResponse, answer, 'revocation')
  }

  /** An attempt as the kernel would mint and derive it, signed by caller, issuer and authority. */
  attempt(options: AttemptOptions = {}): TestAttempt {
    return new TestAttempt(this, options)
  }

  /** Registers and prepares. */
  async prepared(options: AttemptOptions = {}): Promise<TestAttempt & { preparation: Preparation }> {
    const attempt = this.attempt(options)
    await attempt.register()
    const preparation = await attempt.prepare()
    return Object.assign(attempt, { preparation })
  }

  linesOf(reason: string): LogLine[] {
    return this.lines.filter(line => line['reason'] === reason)
  }

  #log(): BrokerLog {
    const note = (fields: LogFields, message: string): void => {
      this.lines.push({ ...fields, message })
    }
    return { info: note, warn: note, error: note }
  }
}

/** A founded world with a running broker and one credential. */
export async function startWorld(options: WorldOptions = {}): Promise<BrokerWorld> {
  const world = new BrokerWorld(options)
  await world.found()
  await world.start()
  if (options.provisioned !== false) await world.provision()
  return world
}
