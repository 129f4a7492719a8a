// Owns approvers of a test's kernel, and what each of them says of an operation that waits.
// Must never be reached from anything that ships.
import { randomUUID } from 'node:crypto'
import type { ApprovalCase } from '../../protocol/approval-rpc.js'
import {
  type ApprovalMembers,
  type GovernedApprovalToken,
  signApproval,
} from '../../protocol/approval-token.js'
import type { Clock } from '../../protocol/clock.js'
import { type SigningKey, signingKey } from '../../protocol/keys.js'
import { type EligibleApprover, proposalHash } from '../../protocol/threshold-proposal.js'

export const APPROVER_KEYS = { lead: keyOf(81), security: keyOf(82), owner: keyOf(83) } as const
export type ApproverName = keyof typeof APPROVER_KEYS

export const APPROVERS: readonly EligibleApprover[] = Object.entries(APPROVER_KEYS).map(
  ([approverId, { publicKey }]) => ({ approverId, publicKey }),
)

function keyOf(byte: number): SigningKey {
  return signingKey(new Uint8Array(32).fill(byte))
}

/** One approver's word on exactly what a case shows, from now until its deadline. */
export function wordOn(
  { proposal }: Pick<ApprovalCase, 'proposal'>,
  approver: SigningKey,
  { clock, ...changes }: Partial<ApprovalMembers> & { readonly clock: Clock },
): GovernedApprovalToken {
  const { body } = proposal
  const members: ApprovalMembers = {
    approver: approver.publicKey,
    decision: 'approved',
    expires_at: body.proposalDeadline,
    governed_intent_hash: body.governedIntentHash,
    id: `approval-${randomUUID()}`,
    issued_at: Math.floor(clock.unixMs() / 1_000),
    request_id: body.requestId,
    subject: body.subject,
    threshold_proposal_hash: proposalHash(body),
    ...changes,
  }
  return signApproval(members, approver)
}
