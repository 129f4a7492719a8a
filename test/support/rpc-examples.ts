// Owns the examples of the two kernel sockets' documents: made from fixed seeds and times, so that the pages can
// be compared with them byte for byte.
import {
  type AuthorityAnswer,
  type AuthorityOperation,
  type AuthorityQuestion,
  type AuthorityResult,
  signAuthorityRequest,
  signAuthorityResponse,
  verifyAuthorityRequest,
} from '../../protocol/authority-rpc.js'
import { canonicalBytes } from '../../protocol/canonical.js'
import { grantRevocationId, revocationAuthorityDomain, revocationSetDigest } from '../../protocol/hold.js'
import { signingKey } from '../../protocol/keys.js'
import { deriveAttemptIds } from '../../protocol/registration.js'

const AT = 1_800_000_000
const broker = signingKey(new Uint8Array(32).fill(1))
const authority = signingKey(new Uint8Array(32).fill(2))
const caller = signingKey(new Uint8Array(32).fill(3))
const GRANT = 'grant-issues'
const CAPABILITY = `broker-capability-${'c'.repeat(64)}`
const OPERATION = '0'.repeat(63) + '7'
const IDS = deriveAttemptIds(
  {
    brokerCapabilityId: CAPABILITY,
    invocationId: 'invocation-1',
    proofNonce: 'n'.repeat(32),
    requestDigest: 'd'.repeat(64),
  },
  OPERATION,
)
const SET = [CAPABILITY, GRANT, grantRevocationId(GRANT)]

const SINGLE: readonly (readonly [AuthorityOperation, AuthorityResult])[] = [
  [
    { kind: 'capabilities', request: {} },
    {
      kind: 'capabilities',
      response: {
        atomicMultiKeyHolds: true,
        combinedCaptureAndRevocation: true,
        profile: 'authoritative_hold_event',
        queryById: true,
        sharedRevocationWriteDomain: true,
      },
    },
  ],
  [
    {
      kind: 'verify_live_parent',
      request: { audience: 'chio-broker', capabilityId: GRANT, subject: caller.publicKey },
    },
    {
      kind: 'live_parent',
      response: {
        audience: 'chio-broker',
        authoritySnapshotDigest: 'a'.repeat(64),
        capabilityId: GRANT,
        delegationAncestorIds: [],
        expiresAtUnixSeconds: AT + 3_600,
        subject: caller.publicKey,
        verifiedAtUnixSeconds: AT,
      },
    },
  ],
  [
    { kind: 'check_broker_revocation', request: { revocationIds: SET } },
    {
      kind: 'revocation',
      response: {
        authorityDomain: revocationAuthorityDomain(authority.publicKey),
        commitIndex: 3,
        observedAtUnixSeconds: AT,
        revoked: false,
      },
    },
  ],
  [
    {
      kind: 'query_execution_hold',
      request: {
        captureEventId: IDS.captureEventId,
        holdId: IDS.holdId,
        operationId: OPERATION,
        quotas: [
          { keyId: CAPABILITY, maximumExecutions: 1 },
          { keyId: GRANT, maximumExecutions: 10 },
        ],
        revocationIds: SET,
      },
    },
    {
      kind: 'hold',
      response: {
        captured: {
          authorityCommitIndex: 9,
          budgetCommitIndex: 9,
          checkedRevocationSetDigest: revocationSetDigest(SET),
          leaderEpoch: 1,
          revocationCommitIndex: 3,
        },
      },
    },
  ],
]

/** The live parent and the revocation in one frame: both questions as they stand above, both answers. */
const TOGETHER: readonly [AuthorityOperation, AuthorityResult] = [
  {
    kind: 'questions',
    request: { questions: SINGLE.slice(1, 3).map(([question]) => question as AuthorityQuestion) },
  },
  {
    kind: 'answers',
    response: { answers: SINGLE.slice(1, 3).map(([, answer]) => answer as AuthorityAnswer) },
  },
]
const QUESTIONS = [...SINGLE, TOGETHER]

/** Every question with its answer, signed, as pretty JSON under the name of its kind. */
export function authorityExamples(): ReadonlyMap<string, string> {
  const examples = QUESTIONS.flatMap(([operation, result], index) => {
    const requestId = String(index + 1).repeat(64)
    const request = signAuthorityRequest({ issuedAtUnixSeconds: AT, operation, requestId }, broker)
    const pins = { broker: broker.publicKey, clockSkewSeconds: 5 }
    const response = signAuthorityResponse(verifyAuthorityRequest(request, pins, AT), result, AT, authority)
    return [
      [`${operation.kind} question`, pretty(request)],
      [`${operation.kind} answer`, pretty(response)],
    ] as const
  })
  return new Map(examples)
}

/** Members in canonical order, spaced for people. */
export function pretty(value: unknown): string {
  const canonical = Buffer.from(canonicalBytes(value as Parameters<typeof canonicalBytes>[0])).toString(
    'utf8',
  )
  return JSON.stringify(JSON.parse(canonical), null, 2)
}

/** Every member name that occurs anywhere in a document. */
export function memberNames(value: unknown): Set<string> {
  if (Array.isArray(value)) return new Set(value.flatMap(item => [...memberNames(item)]))
  if (typeof value !== 'object' || value === null) return new Set()
  return new Set(Object.entries(value).flatMap(([name, member]) => [name, ...memberNames(member)]))
}

/** The examples of a page: fenced JSON after a line `Example: NAME`. */
export function examplesOfPage(page: string): ReadonlyMap<string, string> {
  const found = page.matchAll(/^Example: (.+)\n+```json\n([\s\S]*?)\n```/gm)
  return new Map([...found].map(([, name, text]) => [name as string, text as string]))
}
