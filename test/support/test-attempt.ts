// Owns attempts of broker tests, made as a kernel and a host would: minted, proven, derived, authorized, with the
// world's keys. A member of any document can be given another value, so that one thing alone is wrong.
import { randomBytes } from 'node:crypto'
import type { AuthorizedAttempt, BrokerClient } from '../../client/broker-client.js'
import type { BrokerPins } from '../../client/broker-pins.js'
import { type Preparation, prepareDispatchConnection } from '../../client/prepare.js'
import type { BrokerdConfig } from '../../daemon/config.js'
import { systemClock } from '../../native/clock.js'
import { CAPABILITY_SCHEMA, type BrokerCapabilityBody, signCapability } from '../../protocol/capability.js'
import { destinationFromUrl } from '../../protocol/destination.js'
import {
  type BrokerExecuteRequest,
  type BrokerRequest,
  EXECUTE_SCHEMA,
  signProof,
} from '../../protocol/execute-request.js'
import { authorityMetadataDigest, revocationAuthorityDomain } from '../../protocol/hold.js'
import type { SigningKey } from '../../protocol/keys.js'
import { placementHeader } from '../../protocol/placement.js'
import {
  type AttemptRegistration,
  type Quota,
  buildRegistration,
  type RegistrationAction,
  registrationDigest,
  signRegistrationAuthorization,
} from '../../protocol/registration.js'
import type { OutcomeContext } from '../../protocol/execute-response.js'

export const TENANT = 'tenant-a'
export const AUDIENCE = 'chio-broker'
export const GRANT_ID = 'grant-1'

export function nowUnixSeconds(): number {
  return Math.floor(Date.now() / 1000)
}

/** What attempts are made in: the keys and pins of one broker's surroundings. */
export interface AttemptWorld {
  readonly config: BrokerdConfig
  readonly keys: { readonly authority: SigningKey; readonly issuer: SigningKey; readonly caller: SigningKey }
  readonly receiptKey: SigningKey
  readonly client: BrokerClient
  readonly pins: BrokerPins
  readonly provider: { url(path: string): string }
}

export interface AttemptOptions {
  readonly body?: Uint8Array
  readonly grantId?: string
  readonly grantMaximum?: number
  readonly capabilityLifetimeSeconds?: number
  readonly nonceTtlSeconds?: number
  readonly timeoutMs?: number
  readonly responseLimitBytes?: number
  readonly method?: string
  readonly url?: string
  readonly ownedHeader?: string
  /** `own_only` leaves the grant's quota out, which no broker accepts. */
  readonly quotas?: 'own_only'
  readonly capability?: Partial<BrokerCapabilityBody>
  readonly credentialVersion?: number
}

export class TestAttempt {
  readonly request: BrokerExecuteRequest
  readonly registration: AttemptRegistration
  readonly #world: AttemptWorld

  constructor(world: AttemptWorld, options: AttemptOptions, of?: TestAttempt) {
    this.#world = world
    this.request = of?.request ?? executeRequestOf(world, options)
    const authority = world.keys.authority.publicKey
    this.registration = buildRegistration(this.request, {
      operationId: of?.registration.ids.operationId ?? randomBytes(32).toString('hex'),
      quotas: quotasOf(this.request, options),
      authorityMetadataDigest: authorityMetadataDigest(authority),
      revocationAuthorityDomain: revocationAuthorityDomain(authority),
    })
  }

  /** Another registration of the same attempt. */
  withGrantMaximum(grantMaximum: number): TestAttempt {
    return new TestAttempt(this.#world, { grantMaximum }, this)
  }

  get attemptId(): string {
    return this.registration.ids.attemptId
  }

  /** What a host retained of it, to verify an outcome with. */
  get context(): OutcomeContext {
    const { request, registration } = this
    return { request, registration, receiptSigner: this.#world.receiptKey.publicKey }
  }

  authorized(action: RegistrationAction, key = this.#world.keys.authority): AuthorizedAttempt {
    const authorization = signRegistrationAuthorization(
      {
        action,
        registrationDigest: registrationDigest(this.registration),
        tenantScope: TENANT,
        issuedAtUnixSeconds: nowUnixSeconds(),
      },
      key,
    )
    return { authorization, registration: this.registration, request: this.request }
  }

  register() {
    return this.#world.client.register(this.authorized('register'))
  }

  prepare(): Promise<Preparation> {
    return prepareDispatchConnection(this.#world.pins, this.authorized('prepare'), systemClock)
  }

  release() {
    return this.#world.client.release(this.authorized('release'))
  }

  status() {
    return this.#world.client.attemptStatus(this.attemptId)
  }

  replay(budgetMs = 5_000) {
    return this.#world.client.replayResponse(this.request, budgetMs)
  }
}

function executeRequestOf(world: AttemptWorld, options: AttemptOptions): BrokerExecuteRequest {
  const nonce = randomBytes(16).toString('hex')
  const request = requestOf(world, options)
  const capability = signCapability(capabilityBody(world, options, request, nonce), world.keys.issuer)
  const times = { nonce, issuedAtUnixSeconds: nowUnixSeconds() }
  const proof = signProof(capability, request, times, world.keys.caller)
  return { capability, invocationId: `invocation-${nonce}`, proof, request, schema: EXECUTE_SCHEMA }
}

function quotasOf({ capability }: BrokerExecuteRequest, options: AttemptOptions): Quota[] {
  const { brokerQuotaKeyId, maximumExecutions, parentCapabilityId } = capability.body
  const own = { keyId: brokerQuotaKeyId, maximumExecutions }
  if (options.quotas === 'own_only') return [own]
  return [own, { keyId: parentCapabilityId, maximumExecutions: options.grantMaximum ?? 1_000_000 }]
}

function requestOf(world: AttemptWorld, options: AttemptOptions): BrokerRequest {
  const url =
    world.config.localProviders.length > 0 ? world.provider.url('/issues') : 'https://provider.test/issues'
  return {
    approvedPreviewSha256: null,
    body: options.body ?? Buffer.from('{"title":"it broke"}'),
    destination: destinationFromUrl(options.url ?? url, options.method ?? 'POST'),
    headers: [{ name: 'content-type', value: Buffer.from('application/json') }],
    options: {
      responseLimitBytes: options.responseLimitBytes ?? 65_536,
      streaming: false,
      timeoutMs: options.timeoutMs ?? 5_000,
    },
  }
}

function capabilityBody(
  world: AttemptWorld,
  options: AttemptOptions,
  request: BrokerRequest,
  nonce: string,
): BrokerCapabilityBody {
  const now = nowUnixSeconds()
  const parentCapabilityId = options.grantId ?? GRANT_ID
  const caller = world.keys.caller.publicKey
  return {
    audience: AUDIENCE,
    brokerQuotaKeyId: `capability-${nonce}`,
    capabilityId: `capability-${nonce}`,
    constraints: {
      allowedCallerHeaders: ['content-type'],
      maximumBodyBytes: 524_288,
      maximumResponseBytes: 2_097_152,
      maximumTimeoutMs: 120_000,
      providerOwnedHeaders: [options.ownedHeader ?? placementHeader({ kind: 'bearer_authorization' })],
      redirectPolicy: 'disabled',
      requiredBodySha256: null,
      requiredPreviewSha256: null,
      streamingAllowed: false,
    },
    consumption: 'capture_before_dispatch',
    credential: { credentialId: 'issues', provider: 'tracker', version: options.credentialVersion ?? 1 },
    destination: request.destination,
    expiresAtUnixSeconds: now + (options.capabilityLifetimeSeconds ?? 600),
    issuedAtUnixSeconds: now - 1,
    issuer: world.keys.issuer.publicKey,
    maximumExecutions: 1,
    notBeforeUnixSeconds: now - 1,
    parentCapabilityId,
    proof: { callerPublicKey: caller, mode: 'public_key', nonceTtlSeconds: options.nonceTtlSeconds ?? 300 },
    providerAdapterId: 'https-json',
    providerAdapterVersion: 1,
    revocationId: `revocation-${parentCapabilityId}`,
    schema: CAPABILITY_SCHEMA,
    subject: caller,
    ...options.capability,
  }
}
