// Attempts with a lifetime of the test's choice. A trial holds its own issuer and authority keys, so that a
// case can mint what the kernel would never: a capability or a proof nonce that ends in two seconds.
import { randomBytes, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { AuthorizedAttempt } from '../client/broker-client.js'
import { systemClock } from '../native/clock.js'
import { CAPABILITY_SCHEMA, type SignedBrokerCapability, signCapability } from '../protocol/capability.js'
import { unixSeconds } from '../protocol/clock.js'
import {
  type BrokerExecuteRequest,
  type BrokerRequest,
  EXECUTE_SCHEMA,
  signProof,
} from '../protocol/execute-request.js'
import type { Grant } from '../protocol/grant.js'
import { authorityMetadataDigest, grantRevocationId, revocationAuthorityDomain } from '../protocol/hold.js'
import { type PublicKey, type SigningKey, signingKey } from '../protocol/keys.js'
import { placementHeader } from '../protocol/placement.js'
import {
  type AttemptRegistration,
  buildRegistration,
  type RegistrationAction,
  registrationDigest,
  signRegistrationAuthorization,
} from '../protocol/registration.js'
import type { HostSession } from '../host/session.js'
import type { Layout } from '../system/layout.js'

/** Lifetimes of one minted attempt. */
export interface MintedLifetime {
  readonly capabilitySeconds: number
  readonly nonceSeconds: number
}

export interface MintedAttempt {
  readonly register: AuthorizedAttempt
  readonly prepare: AuthorizedAttempt
  readonly release: AuthorizedAttempt
  readonly registration: AttemptRegistration
  readonly request: BrokerExecuteRequest
}

/** Mints attempts under one grant of a trial. */
export class Mint {
  readonly #issuer: SigningKey
  readonly #authority: SigningKey
  readonly #session: HostSession
  readonly #grant: Grant

  constructor(layout: Layout, session: HostSession, grant: Grant) {
    this.#issuer = signingKey(readFileSync(layout.kernel.keys.issuer))
    this.#authority = signingKey(readFileSync(layout.kernel.keys.authority))
    this.#session = session
    this.#grant = grant
  }

  /** Mints one attempt of a request. */
  mint(request: BrokerRequest, lifetime: MintedLifetime): MintedAttempt {
    const now = unixSeconds(systemClock)
    const capability = this.#capability(now, lifetime)
    const proof = { nonce: randomBytes(24).toString('base64url'), issuedAtUnixSeconds: now }
    const execute: BrokerExecuteRequest = {
      capability,
      invocationId: `invocation-${randomUUID()}`,
      proof: signProof(capability, request, proof, this.#session.caller),
      request,
      schema: EXECUTE_SCHEMA,
    }
    const registration = this.#registration(execute)
    const sign = (action: RegistrationAction): AuthorizedAttempt => ({
      registration,
      request: execute,
      authorization: this.sign(action, registration, this.#authority),
    })
    return {
      registration,
      request: execute,
      register: sign('register'),
      prepare: sign('prepare'),
      release: sign('release'),
    }
  }

  /** Signs an action with a key that need not be the authority's. */
  sign(action: RegistrationAction, registration: AttemptRegistration, key: SigningKey) {
    const statement = {
      action,
      registrationDigest: registrationDigest(registration),
      tenantScope: this.#session.pins.broker.tenantScope,
      issuedAtUnixSeconds: unixSeconds(systemClock),
    }
    return signRegistrationAuthorization(statement, key)
  }

  #registration(execute: BrokerExecuteRequest): AttemptRegistration {
    const authority: PublicKey = this.#authority.publicKey
    return buildRegistration(execute, {
      quotas: [
        { keyId: execute.capability.body.brokerQuotaKeyId, maximumExecutions: 1 },
        { keyId: this.#grant.grantId, maximumExecutions: this.#grant.maximumExecutions },
      ],
      authorityMetadataDigest: authorityMetadataDigest(authority),
      revocationAuthorityDomain: revocationAuthorityDomain(authority),
    })
  }

  #capability(now: number, lifetime: MintedLifetime): SignedBrokerCapability {
    const grant = this.#grant
    const { pins, caller } = this.#session
    const capabilityId = `broker-capability-${randomUUID()}`
    return signCapability(
      {
        audience: pins.audience,
        brokerQuotaKeyId: capabilityId,
        capabilityId,
        constraints: constraintsOf(grant),
        consumption: 'capture_before_dispatch',
        credential: grant.credential,
        destination: grant.destination,
        expiresAtUnixSeconds: now + lifetime.capabilitySeconds,
        issuedAtUnixSeconds: now,
        issuer: this.#issuer.publicKey,
        maximumExecutions: 1,
        notBeforeUnixSeconds: now,
        parentCapabilityId: grant.grantId,
        proof: {
          callerPublicKey: caller.publicKey,
          mode: 'public_key',
          nonceTtlSeconds: lifetime.nonceSeconds,
        },
        providerAdapterId: pins.adapter.id,
        providerAdapterVersion: pins.adapter.version,
        revocationId: grantRevocationId(grant.grantId),
        schema: CAPABILITY_SCHEMA,
        subject: caller.publicKey,
      },
      this.#issuer,
    )
  }
}

function constraintsOf(grant: Grant): SignedBrokerCapability['body']['constraints'] {
  return {
    allowedCallerHeaders: grant.allowedCallerHeaders,
    maximumBodyBytes: grant.maximumBodyBytes,
    maximumResponseBytes: grant.maximumResponseBytes,
    maximumTimeoutMs: grant.maximumTimeoutMs,
    providerOwnedHeaders: [placementHeader(grant.placement)],
    redirectPolicy: 'disabled',
    requiredBodySha256: null,
    requiredPreviewSha256: null,
    streamingAllowed: false,
  }
}
