// An approval counts for exactly one operation, within its proposal's times, from an eligible approver, once; and the
// set that was found complete has one name whatever its order.
import { describe, expect, test } from 'vitest'
import {
  type ApprovalMembers,
  type GovernedApprovalToken,
  signApproval,
  tokenDigest,
  verifySoleApproval,
} from '../../protocol/approval-token.js'
import { canonicalBytes } from '../../protocol/canonical.js'
import { domainDigestHex } from '../../protocol/digest.js'
import { isBrokerError } from '../../protocol/errors.js'
import { brokeredIntent, governedIntentHash } from '../../protocol/governed-intent.js'
import { type SigningKey, signingKey } from '../../protocol/keys.js'
import {
  approvalSetHash,
  answerProposal,
  type EligibleApprover,
  eligibleSetDigest,
  type ProposalTerms,
  proposalHash,
  signProposal,
  type ThresholdProposal,
  verifyApproval,
  verifyProposal,
} from '../../protocol/threshold-proposal.js'

const policy = signingKey(new Uint8Array(32).fill(71))
const keys = [72, 73, 74].map(byte => signingKey(new Uint8Array(32).fill(byte)))
const [lead, security, stranger] = keys as [SigningKey, SigningKey, SigningKey]
const approvers: readonly EligibleApprover[] = [
  { approverId: 'lead', publicKey: lead.publicKey },
  { approverId: 'security', publicKey: security.publicKey },
]
const CREATED = 1_000
const TERMS: ProposalTerms = {
  authorizationCapabilityHash: 'a'.repeat(64),
  eligibleSetDigest: eligibleSetDigest(approvers),
  governedIntentHash: 'b'.repeat(64),
  policyHash: 'c'.repeat(64),
  proposalCreatedAt: CREATED,
  proposalDeadline: CREATED + 900,
  proposalId: 'proposal-1',
  requestId: 'request-1',
  required: 2,
  subject: 'd'.repeat(64),
}
const proposal = signProposal(TERMS, policy)
const pins = { approvers, policyAuthority: policy.publicKey }
const verified = verifyProposal(proposal, pins)

function approvalOf(changes: Partial<ApprovalMembers> = {}, by: SigningKey = lead): GovernedApprovalToken {
  return signApproval(
    {
      approver: by.publicKey,
      decision: 'approved',
      expires_at: CREATED + 900,
      governed_intent_hash: TERMS.governedIntentHash,
      id: `approval-${by.publicKey.slice(0, 8)}`,
      issued_at: CREATED,
      request_id: TERMS.requestId,
      subject: TERMS.subject,
      threshold_proposal_hash: proposalHash(proposal.body),
      ...changes,
    },
    by,
  )
}

function judged(act: () => unknown): string {
  try {
    act()
    return 'accepted'
  } catch (error) {
    return isBrokerError(error) ? `${error.code}: ${error.message}` : String(error)
  }
}
const judge = (token: GovernedApprovalToken, now = CREATED + 1) =>
  judged(() => verifyApproval(token, verified, approvers, now))

test('an answer is signed over exactly its proposal, and is never older than the question', () => {
  const answer = { decision: 'approved', id: approvalOf().id } as const
  for (const [nowUnixSeconds, issued_at] of [
    [CREATED - 5, CREATED],
    [CREATED + 5, CREATED + 5],
  ] as const) {
    const word = answerProposal(proposal.body, { ...answer, nowUnixSeconds }, lead)
    expect(word).toEqual(approvalOf({ issued_at }))
  }
})

describe('a proposal', () => {
  test('is signed over its domain and its canonical body, and named by the digest of the same bytes', () => {
    const body = canonicalBytes({ ...proposal.body })
    const message = Buffer.concat([Buffer.from('chio.threshold-approval-proposal.v1\0'), body])
    expect(proposal.signature).toBe(Buffer.from(policy.sign(message)).toString('hex'))
    expect(proposalHash(proposal.body)).toBe(domainDigestHex('chio.threshold-approval-proposal.v1', body))
  })

  test('names its approvers in the order of their ids, however they are configured', () => {
    expect(eligibleSetDigest([...approvers].reverse())).toBe(eligibleSetDigest(approvers))
    const sorted = canonicalBytes(approvers.map(approver => ({ ...approver })))
    expect(eligibleSetDigest(approvers)).toBe(domainDigestHex('chio.approver-set.v1', sorted))
  })

  test.each<[string, () => unknown, RegExp]>([
    ['of another authority', () => verifyProposal(signProposal(TERMS, lead), pins), /policyAuthority/],
    ['changed after it was signed', () => verifyProposal(changed({ required: 1 }), pins), /signature/],
    [
      'about other approvers',
      () => verifyProposal(proposal, { ...pins, approvers: approvers.slice(1) }),
      /changed since/,
    ],
    [
      'for more approvals than approvers',
      () => verifyProposal(signProposal({ ...TERMS, required: 3 }, policy), pins),
      /at most 2 approvers/,
    ],
    ['without a life', () => signProposal({ ...TERMS, proposalDeadline: CREATED }, policy), /a life of 1/],
    [
      'with too long a life',
      () => signProposal({ ...TERMS, proposalDeadline: CREATED + 3_601 }, policy),
      /a life/,
    ],
  ])('%s is refused', (_what, act, sentence) => {
    expect(judged(act)).toMatch(sentence)
  })

  function changed(changes: Partial<ProposalTerms>): ThresholdProposal {
    return { ...proposal, body: { ...proposal.body, ...changes } }
  }
})

describe('an approval', () => {
  test('counts from its issue to before its expiry', () => {
    expect(judge(approvalOf(), CREATED)).toBe('accepted')
    expect(judge(approvalOf(), CREATED + 899)).toBe('accepted')
    expect(judge(approvalOf(), CREATED + 900)).toMatch(/^approval_expired: /)
    expect(judge(approvalOf({ issued_at: CREATED + 5 }), CREATED + 4)).toMatch(/issued_at/)
  })

  test.each(['threshold_proposal_hash', 'request_id', 'governed_intent_hash', 'subject'] as const)(
    'of another %s is refused by name',
    member => {
      expect(judge(approvalOf({ [member]: 'e'.repeat(64) }))).toBe(
        `approval_mismatch: approval ${member} refused: expected an approval of exactly this operation, got one of another`,
      )
    },
  )

  test.each<[string, GovernedApprovalToken, RegExp]>([
    ['given before it was asked for', approvalOf({ issued_at: CREATED - 1 }), /times within/],
    ['that outlives the proposal', approvalOf({ expires_at: CREATED + 901 }), /times within/],
    ['without a life', approvalOf({ expires_at: CREATED }), /a life of 1/],
    ['of somebody else', approvalOf({}, stranger), /an eligible approver/],
    ['changed after it was signed', { ...approvalOf(), decision: 'denied' }, /signature/],
    ['signed by another', { ...approvalOf(), signature: approvalOf({}, security).signature }, /signature/],
  ])('%s is refused', (_what, token, sentence) => {
    expect(judge(token)).toMatch(/^authorization_denied: /)
    expect(judge(token)).toMatch(sentence)
  })
})

describe('a set of approvals', () => {
  const tokens = [approvalOf(), approvalOf({}, security)].map(token =>
    verifyApproval(token, verified, approvers, CREATED + 1),
  )
  const [one, other] = tokens as [(typeof tokens)[0], (typeof tokens)[0]]

  test('has one name whatever its order: the digest of terms, proposal and sorted tokens', () => {
    const set = canonicalBytes({
      ...TERMS,
      canonicalTokenDigests: tokens.map(tokenDigest).sort(),
      schema: 'chio.verified-approval-set.v1',
      thresholdProposalHash: proposalHash(proposal.body),
    })
    expect(approvalSetHash(verified, tokens)).toBe(domainDigestHex('chio.verified-approval-set.v1', set))
    expect(approvalSetHash(verified, [other, one])).toBe(approvalSetHash(verified, [one, other]))
  })

  test('is refused with too few, a denial, or anybody twice', () => {
    expect(judged(() => approvalSetHash(verified, [one]))).toMatch(/2 approvals, got 1/)
    expect(judged(() => approvalSetHash(verified, [one, one]))).toMatch(/each approver once/)
    const again = verifyApproval(approvalOf({ id: one.id }, security), verified, approvers, CREATED + 1)
    expect(judged(() => approvalSetHash(verified, [one, again]))).toMatch(/each approval once/)
    const denial = verifyApproval(
      approvalOf({ decision: 'denied' }, security),
      verified,
      approvers,
      CREATED + 1,
    )
    expect(judged(() => approvalSetHash(verified, [one, denial]))).toMatch(/approvals alone/)
  })
})

test('an intent has another digest for every member that differs', () => {
  const body = {
    action_parameter_hash: 'a'.repeat(64),
    body_bytes: 3,
    body_sha256: 'b'.repeat(64),
    caller_public_key: lead.publicKey,
    credential: { credentialId: 'token', provider: 'tracker', version: 1 },
    destination: {
      exactPathAndQuery: '/issues',
      explicitPort: 443,
      method: 'POST',
      normalizedHost: 'tracker.example',
      redirectPolicy: 'disabled',
      scheme: 'https',
    },
    grant_id: 'grant',
    operation_id: 'c'.repeat(64),
    request_id: 'request',
    response_limit_bytes: 10,
    tenant_id: 'tenant',
    timeout_ms: 10,
  } as unknown as Parameters<typeof brokeredIntent>[0]
  const first = governedIntentHash(brokeredIntent(body))
  const others = Object.entries({
    body_bytes: 4,
    body_sha256: 'd'.repeat(64),
    grant_id: 'other',
    timeout_ms: 9,
  })
  const hashes = others.map(([member, value]) =>
    governedIntentHash(brokeredIntent({ ...body, [member]: value })),
  )
  expect(new Set([first, ...hashes]).size).toBe(5)
})

describe('one approval alone', () => {
  const sole = {
    approvers: [lead.publicKey],
    intentHash: TERMS.governedIntentHash,
    requestId: 'request-1',
    subject: TERMS.subject,
  }
  const judgeSole = (token: GovernedApprovalToken, now = CREATED + 1) =>
    judged(() => verifySoleApproval(token, sole, now))

  test('is judged by time, subject matter, decision, approver, signature and life, in this order', () => {
    expect(judgeSole(approvalOf())).toBe('accepted')
    expect(judgeSole(approvalOf({ request_id: 'other' }), CREATED + 900)).toMatch(/^approval_expired/)
    expect(judgeSole(approvalOf({ decision: 'denied', request_id: 'other' }))).toMatch(/^approval_mismatch/)
    expect(judgeSole(approvalOf({ decision: 'denied' }, stranger))).toMatch(/decision/)
    expect(judgeSole(approvalOf({}, stranger))).toMatch(/trusted approver/)
    expect(judgeSole({ ...approvalOf(), signature: '1'.repeat(128) })).toMatch(/signature/)
    expect(judgeSole(approvalOf({ expires_at: CREATED + 3_601 }))).toMatch(/a life of/)
    expect(judgeSole(approvalOf({ expires_at: CREATED + 3_600 }))).toBe('accepted')
  })
})
