// Owns one brokered request made from fixed seeds and times: keys, grant, capability, proof, registration. Made by
// the same functions that the processes call. Must never hold a real secret.
import { signCapability } from '../../protocol/capability.js'
import { destinationFromUrl } from '../../protocol/destination.js'
import { sha256Hex } from '../../protocol/digest.js'
import { type BrokerExecuteRequest, EXECUTE_SCHEMA, signProof } from '../../protocol/execute-request.js'
import type { Grant } from '../../protocol/grant.js'
import { authorityMetadataDigest, revocationAuthorityDomain } from '../../protocol/hold.js'
import { signingKey } from '../../protocol/keys.js'
import {
  buildRegistration,
  registrationDigest,
  signRegistrationAuthorization,
} from '../../protocol/registration.js'

export const seeded = (byte: number) => signingKey(new Uint8Array(32).fill(byte))
export const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)

/** For whoever has to make the caller's key in another process. */
export const CALLER_SEED_BYTE = 12
export const OWN_KEYS = {
  issuer: seeded(11),
  caller: seeded(CALLER_SEED_BYTE),
  authority: seeded(13),
  receipt: seeded(14),
  admin: seeded(15),
  stranger: seeded(16),
}
export const NOW = 1_800_000_000
export const TENANT = 'tenant-own'
export const AUDIENCE = 'audience-own'
export const OPERATION_ID = sha256Hex(utf8('operation'))
export const credential = { credentialId: 'tracker', provider: 'tracker.example', version: 3 }
export const destination = destinationFromUrl('https://tracker.example/issues?labels=a,b', 'POST')
export const body = utf8('{"title":"größer 😀"}')
export const headers = [
  { name: 'content-type', value: utf8('application/json') },
  { name: 'x-trace', value: Uint8Array.of(0x61, 0x09, 0xff) },
]

export const grant: Grant = {
  allowedCallerHeaders: ['content-type', 'x-trace'],
  callerPublicKey: OWN_KEYS.caller.publicKey,
  credential,
  destination,
  expiresAtUnixSeconds: NOW + 3600,
  grantId: 'grant-own',
  issuedAtUnixSeconds: NOW,
  maximumBodyBytes: 4096,
  maximumExecutions: 5,
  maximumResponseBytes: 65_536,
  maximumTimeoutMs: 30_000,
  placement: { kind: 'bearer_authorization' },
  requiredApprovals: 0,
  schema: 'chio.kernel-grant.v1',
  tenantScope: TENANT,
}

export const capability = signCapability(
  {
    audience: AUDIENCE,
    brokerQuotaKeyId: 'capability-own',
    capabilityId: 'capability-own',
    constraints: {
      allowedCallerHeaders: grant.allowedCallerHeaders,
      maximumBodyBytes: body.length,
      maximumResponseBytes: 65_536,
      maximumTimeoutMs: 30_000,
      providerOwnedHeaders: ['authorization'],
      redirectPolicy: 'disabled',
      requiredBodySha256: sha256Hex(body),
      requiredPreviewSha256: null,
      streamingAllowed: false,
    },
    consumption: 'capture_before_dispatch',
    credential,
    destination,
    expiresAtUnixSeconds: NOW + 60,
    issuedAtUnixSeconds: NOW,
    issuer: OWN_KEYS.issuer.publicKey,
    maximumExecutions: 1,
    notBeforeUnixSeconds: NOW,
    parentCapabilityId: grant.grantId,
    proof: { callerPublicKey: OWN_KEYS.caller.publicKey, mode: 'public_key', nonceTtlSeconds: 60 },
    providerAdapterId: 'https',
    providerAdapterVersion: 1,
    revocationId: 'revocation-grant-own',
    schema: 'chio.broker-capability.v1',
    subject: OWN_KEYS.caller.publicKey,
  },
  OWN_KEYS.issuer,
)

export const request = {
  approvedPreviewSha256: null,
  body,
  destination,
  headers,
  options: { responseLimitBytes: 65_536, streaming: false, timeoutMs: 30_000 },
}

export const execute: BrokerExecuteRequest = {
  capability,
  invocationId: 'invocation-own',
  proof: signProof(
    capability,
    request,
    { nonce: 'nonce-own_0123456789', issuedAtUnixSeconds: NOW + 1 },
    OWN_KEYS.caller,
  ),
  request,
  schema: EXECUTE_SCHEMA,
}

export const registration = buildRegistration(execute, {
  operationId: OPERATION_ID,
  quotas: [
    { keyId: 'grant-own', maximumExecutions: 5 },
    { keyId: 'capability-own', maximumExecutions: 1 },
  ],
  authorityMetadataDigest: authorityMetadataDigest(OWN_KEYS.authority.publicKey),
  revocationAuthorityDomain: revocationAuthorityDomain(OWN_KEYS.authority.publicKey),
})

export const authorized = (action: 'prepare' | 'register' | 'release') =>
  signRegistrationAuthorization(
    {
      action,
      registrationDigest: registrationDigest(registration),
      tenantScope: TENANT,
      issuedAtUnixSeconds: NOW + 2,
    },
    OWN_KEYS.authority,
  )
