// Owns the valid documents that fuzzing begins with: the frozen ones, and one text for each kind and variant that
// is not frozen, put together from parts of those. Signatures in them need not verify: codecs do not look.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from '../../native/index.js'
import { canonicalBytes } from '../../protocol/canonical.js'
import type { JsonValue } from '../../protocol/json.js'
import { admissionBinding, admissionDocuments } from './seed-admission.js'
import { callRequests, callResults, contextDocuments, outcomeDocuments } from './seed-calls.js'
import { logRequests, logResults } from './seed-log.js'
import { keptDocuments, recordRequests, recordResults } from './seed-operation.js'

export interface FrozenDocument {
  readonly name: string
  readonly canonical: string
}
type Document = Readonly<Record<string, JsonValue>>

const FROZEN = join(packageRoot(), 'test', 'vectors', 'documents.json')
const DIGEST = 'd'.repeat(64)
const AT = 1_800_000_000

export function frozenDocuments(): readonly FrozenDocument[] {
  return JSON.parse(readFileSync(FROZEN, 'utf8')) as FrozenDocument[]
}

/** Canonical bytes of every seed document. */
export function seedDocuments(): readonly Uint8Array[] {
  const frozen = frozenDocuments()
  const of = (name: string): Document => {
    const found = frozen.find(document => document.name === name)
    if (found === undefined) throw new RangeError(`"name" expected a frozen document, got ${name}`)
    return JSON.parse(found.canonical) as Document
  }
  const made = [
    ...brokerDocuments(of),
    ...authorityDocuments(of),
    ...kernelDocuments(of),
    ...admissionDocuments(RESERVE_REQUEST),
    ...keptDocuments(admissionBinding(), of('execution-nonce')),
    reservedOf(of),
    ...outcomeDocuments(),
    ...contextDocuments(of),
  ]
  return [...frozen.map(({ canonical }) => Buffer.from(canonical)), ...made.map(canonicalBytes)]
}

type Frozen = (name: string) => Document

function brokerDocuments(of: Frozen): JsonValue[] {
  const { attemptId, operationId } = of('prepare-acknowledgement')
  const acknowledged = { attemptId, operationId } as Document
  const { credential } = of('credential-mutation')
  const control = { capabilityId: 'grant-own', credential, revocationId: 'revocation-grant-own' } as Document
  return [
    {
      ...acknowledged,
      disposition: 'inserted',
      registeredAtUnixSeconds: AT,
      schema: 'chio.broker-register-attempt-acknowledgement.v1',
    },
    { ...acknowledged, releasedAtUnixSeconds: AT, schema: 'chio.broker-release-attempt-acknowledgement.v1' },
    { ...control, schema: 'chio.broker-capability-control.v1' },
    CAPABILITY_STATUS,
    { schema: 'chio.broker-credential-list-request.v1' },
    {
      credentials: PLACEMENTS.map(placement => ({
        credential: credential as JsonValue,
        enabled: true,
        placement,
        provisionedAtUnixMs: AT * 1_000,
      })),
      schema: 'chio.broker-credential-list.v1',
    },
    {
      credential: credential as JsonValue,
      mutation: 'disable',
      schema: 'chio.broker-credential-mutation.v1',
      secret: [],
    },
    { schema: 'chio.broker-slot-status-request.v1' },
    attemptIdentityOf(of),
    { attemptId: attemptId as JsonValue, schema: 'chio.broker-attempt-status-request.v1' },
    firstVersionResponse(of),
  ]
}

/** What the attempt ids are derived from. */
function attemptIdentityOf(of: Frozen): JsonValue {
  const { brokerCapabilityId, invocationId, proofNonce, requestDigest } = of('attempt-registration')
  return { brokerCapabilityId, invocationId, proofNonce, requestDigest } as Document
}

const CAPABILITY_STATUS = {
  authorityCommitIndex: 3,
  capabilityId: 'grant-own',
  observedAtUnixSeconds: AT,
  revocationId: 'revocation-grant-own',
  revoked: true,
  schema: 'chio.broker-capability-status.v1',
}

const PLACEMENTS: readonly JsonValue[] = [
  { kind: 'api_key_header' },
  { kind: 'basic_authorization', user: 'robot' },
  { kind: 'bearer_authorization' },
  { header: 'x-token', kind: 'named_header' },
]

/** The response of the first evidence version, which auditors still verify. */
function firstVersionResponse(of: Frozen): JsonValue {
  const response = of('execute-response')
  const { responseHeadersSha256: _second, ...evidence } = response['evidence'] as Document
  const first = { ...evidence, schema: 'chio.broker-execution-evidence.v1' } as Document
  const receipt = response['receipt'] as Document
  const body = {
    ...(receipt['body'] as Document),
    evidence: first,
    schema: 'chio.broker-execution-receipt.v1',
  }
  return { ...response, evidence: first, receipt: { ...receipt, body } }
}

const LIVE_PARENT = {
  audience: 'audience-own',
  authoritySnapshotDigest: DIGEST,
  capabilityId: 'grant-own',
  delegationAncestorIds: ['ancestor'],
  expiresAtUnixSeconds: AT,
  subject: DIGEST,
  verifiedAtUnixSeconds: AT,
}

function authorityDocuments(of: Frozen): JsonValue[] {
  const query = of('authority-hold-query')
  const answer = of('authority-hold')
  const asked = (operation: JsonValue): JsonValue => ({
    ...query,
    body: { ...(query['body'] as Document), operation },
  })
  const said = (result: JsonValue): JsonValue => ({
    ...answer,
    body: { ...(answer['body'] as Document), result },
  })
  return [
    asked({ kind: 'capabilities', request: {} }),
    asked({ kind: 'check_broker_revocation', request: { revocationIds: ['a', 'b'] } }),
    said({
      kind: 'capabilities',
      response: {
        atomicMultiKeyHolds: true,
        combinedCaptureAndRevocation: true,
        profile: 'authoritative_hold_event',
        queryById: true,
        sharedRevocationWriteDomain: true,
      },
    }),
    said({ kind: 'live_parent', response: LIVE_PARENT }),
    said({
      kind: 'revocation',
      response: {
        authorityDomain: 'chio.kernel:x',
        commitIndex: 3,
        observedAtUnixSeconds: AT,
        revoked: false,
      },
    }),
  ]
}

function kernelDocuments(of: Frozen): JsonValue[] {
  const shared = { requestId: DIGEST, tenantScope: 'tenant-own', schema: 'chio.kernel-rpc.v1' }
  const requests = kernelOperations(of).map(([kind, request]) => ({
    ...shared,
    authorization: kind === 'issue_grant' ? of('admin-authorization') : null,
    operation: { kind, request },
  }))
  const responses = kernelResults(of).map(([kind, response]) => ({
    refusal: null,
    requestId: DIGEST,
    result: { kind, response },
    schema: 'chio.kernel-rpc-response.v1',
  }))
  const refusal = {
    code: 'conflict',
    operationId: DIGEST,
    outcome: 'not_started',
    receipt: of('kernel-receipt'),
    sentence: 'refused: expected x, got y',
  }
  return [
    ...requests,
    ...responses,
    { refusal, requestId: DIGEST, result: null, schema: 'chio.kernel-rpc-response.v1' },
  ]
}

type Named = readonly [kind: string, document: JsonValue]

const OPERATION_VIEW = {
  attemptId: null,
  createdAtUnixMs: AT,
  grantId: 'grant-own',
  invocationId: 'invocation-own',
  lastError: 'x',
  operationId: DIGEST,
  requestDigest: DIGEST,
  settlement: 'waits',
  settlesAtUnixMs: AT,
  sharesArgumentsWith: [DIGEST],
  state: 'prepared',
  updatedAtUnixMs: AT,
  version: 1,
}

const RESERVE_REQUEST = {
  bodyBytes: 21,
  bodySha256: DIGEST,
  callerPublicKey: DIGEST,
  grantId: 'grant-own',
  invocationId: 'invocation-own',
  proofIssuedAtUnixSeconds: AT,
  proofNonce: 'nonce-own_0123456789',
  requestDigest: DIGEST,
  responseLimitBytes: 65_536,
  timeoutMs: 30_000,
}

function kernelOperations(of: Frozen): Named[] {
  const reference = { operationId: DIGEST }
  const record = { kind: 'receipt', receipt: of('execute-response')['receipt'] as JsonValue }
  const failure = { kind: 'failure', failure: of('execute-failure') }
  return [
    ['authorize_registration', { execute: of('execute-request'), operationId: DIGEST }],
    ['authorize_release', reference],
    ['finalize', { operationId: DIGEST, record }],
    ['finalize', { operationId: DIGEST, record: failure }],
    ['issue_grant', of('grant')],
    ['list', { limit: 1_000 }],
    ['reserve', RESERVE_REQUEST],
    ['revoke_grant', { grantId: 'grant-own' }],
    ['start', { executionNonce: of('execution-nonce'), operationId: DIGEST }],
    ['status', {}],
    ...logRequests(),
    ...callRequests(of),
    ...recordRequests(),
  ]
}

/** What a reservation is answered with, before the receipt of it. */
function reservedOf(of: Frozen): Document {
  return {
    authorityMetadataDigest: DIGEST,
    capability: of('broker-capability'),
    executionNonce: of('execution-nonce'),
    operationId: DIGEST,
    quotas: of('attempt-registration')['quotas'] as JsonValue,
    revocationAuthorityDomain: 'chio.kernel:x',
  }
}

function kernelResults(of: Frozen): Named[] {
  const registration = of('attempt-registration')
  const result = (of('authority-hold')['body'] as Document)['result'] as Document
  const { captured } = result['response'] as Document
  const grantView = { executions: 1, grant: of('grant'), held: 0, revoked: false }
  const authorizations = {
    prepareAuthorization: of('prepare-authorization'),
    registerAuthorization: of('register-authorization'),
    registration,
  }
  const operations = [{ count: 3, state: 'prepared' }]
  return [
    ['authorize_registration', authorizations],
    ['authorize_release', { registration, releaseAuthorization: of('release-authorization') }],
    ['issue_grant', { commitIndex: 1, grantId: 'grant-own' }],
    ['list', { operations: [OPERATION_VIEW, { ...OPERATION_VIEW, lastError: null, settlesAtUnixMs: null }] }],
    ['list_grants', { grants: [grantView] }],
    ['reserve', { ...reservedOf(of), receipt: of('kernel-receipt') }],
    ['finalize', { ...OPERATION_VIEW, receipt: of('kernel-receipt') }],
    ...logResults(of),
    ...callResults(of),
    ...recordResults(OPERATION_VIEW, admissionBinding()),
    ['revoke_grant', { commitIndex: 1, grantId: 'grant-own', newlyRevoked: true }],
    ['start', { captured: captured as JsonValue, operationId: DIGEST, startedAtUnixMs: AT }],
    ['status', { brokerReachable: true, clockFault: 'x', operations, ownerEpoch: 1, waiting: 0 }],
  ]
}
