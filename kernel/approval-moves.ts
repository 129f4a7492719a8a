// Owns: what an approver's word changes in the store, in the transaction in which it is judged: one denial takes the
// operation back, the last approval that was missing reserves the whole set.
// Must never: count a word that is about something else, has expired, or comes from somebody who spoke before.
// Source: the admission states approval_required and approval_reserved; the verification of approval sets.
import { type GovernedApprovalToken, tokenDigest } from '../protocol/approval-token.js'
import { BrokerError } from '../protocol/errors.js'
import {
  approvalSetHash,
  approverName,
  proposalHash,
  type ProposalPins,
  type ThresholdProposal,
  verifyApproval,
  verifyProposal,
} from '../protocol/threshold-proposal.js'
import type { Verified } from '../protocol/verified.js'
import type { AnnounceCommand, AnswerCommand, ApprovalCommand } from './admission-store.js'
import { brokerAttemptOf } from './operation/dispatch-commit.js'
import { assertGrantLive } from './liveness.js'
import * as rules from './operation/move-rules.js'
import type { AdmissionOperation } from './operation/operation.js'
import { begin, note, preparedOf, stepsTo, walk } from './operation/operation-walk.js'
import { endParticipants } from './operation/participants.js'
import type { SqliteMove } from './sqlite/move.js'
import { bootEndOf } from './sqlite/nonce-tables.js'

/** Sets the hold aside and asks the approvers, in one commit. The same request again returns it as it stands. */
export function announce(move: SqliteMove, { announcement, proposal }: AnnounceCommand): AdmissionOperation {
  const { binding, ids, request } = announcement
  const known = move.operations.ofRequest(binding.request_namespace_digest, binding.request_id)
  if (known !== undefined) return rules.sameOperation(known, binding.operation_id)
  const grant = move.grants.find(request.grantId)
  assertGrantLive(grant, move.nowUnixSeconds)
  rules.assertExecutionLeft(grant)
  rules.assertClock(move)
  const call = { kind: 'announced', reservation: announcement, registration: null, record: null } as const
  const prepared = preparedOf(call, move)
  begin(move, prepared)
  move.holds.insert(announcement)
  const asked = {
    budget_hold_id: ids.holdId,
    threshold_proposal: proposal,
    threshold_proposal_hash: proposalHash(proposal.body),
  }
  const steps = [
    { attach: { broker_attempt: brokerAttemptOf(announcement) }, to: 'broker_attempt_registered' },
    { attach: asked, to: 'approval_required' },
  ] as const
  return walk(move, prepared, steps, { cause: 'approvals asked for' })
}

/** Makes an approved operation ready, under what is true now. Whoever asked twice gets the first answer. */
export function answerApproved(
  move: SqliteMove,
  { issuer, nonce, nonceCapacity, pins, reservation }: AnswerCommand,
): AdmissionOperation {
  const operation = rules.assertFound(move.operations.find(reservation.binding.operation_id))
  if (operation.call.kind === 'brokered') return operation
  rules.assertState(operation, 'approval_reserved', 'it cannot be answered; inspect it')
  assertApproved(move, operation, pins)
  assertGrantLive(move.grants.find(reservation.request.grantId), move.nowUnixSeconds)
  rules.assertClock(move)
  move.nonces.reserve(nonce, { bootEnd: bootEndOf(move, nonce), capacity: nonceCapacity, issuer })
  const ready = {
    attach: { execution_nonce_id: nonce.signed.nonce.nonce_id },
    to: 'ready_to_dispatch',
  } as const
  return walk(move, operation, [ready], { cause: 'reserved', reservation })
}

/** @returns the operation as it stands then; the same token again changes nothing. */
export function submitApproval(
  move: SqliteMove,
  { approval, operationId, pins }: ApprovalCommand,
): AdmissionOperation {
  const operation = rules.assertFound(move.operations.find(operationId))
  const spoken = move.approvals.of(operationId)
  if (spoken.some(token => tokenDigest(token) === tokenDigest(approval))) return operation
  const proposal = proposalOf(operation, pins)
  const verified = verifyApproval(approval, proposal, pins.approvers, move.nowUnixSeconds)
  rules.assertState(operation, 'approval_required', 'no approval is awaited; inspect it')
  const live = liveApprovals(move, spoken, { pins, proposal })
  assertFirstWord(move, verified, live)
  move.approvals.insert(operationId, verified)
  const who = approverName(pins.approvers, verified.approver)
  if (verified.decision === 'denied') return denied(move, operation, who)
  const given = [...live, verified]
  const cause = `approved by ${who}: ${given.length} of ${proposal.body.required}`
  if (given.length < proposal.body.required) return note(move, operation, { cause })
  const approved = {
    attach: { approval_set_hash: approvalSetHash(proposal, given) },
    to: 'budget_authorized',
  } as const
  return walk(move, operation, [approved, ...stepsTo('approval_reserved')], { cause })
}

/**
 * That an approved operation still is: its proposal has not passed, and enough of its approvals live.
 * @throws BrokerError `approval_expired`; `authorization_denied` when the approvers were changed meanwhile.
 */
export function assertApproved(move: SqliteMove, operation: AdmissionOperation, pins: ProposalPins): void {
  const proposal = proposalOf(operation, pins)
  const live = liveApprovals(move, move.approvals.of(operation.operationId), { pins, proposal })
  const { proposalDeadline, required } = proposal.body
  if (move.nowUnixSeconds < proposalDeadline && live.length >= required) return
  throw new BrokerError(
    'approval_expired',
    `operation ${operation.operationId} refused: expected ${required} approvals that live, got ${live.length}; run it again`,
    { operationId: operation.operationId, outcome: 'not_started' },
  )
}

/** Who denied, in the words of a receipt: its reason names the approver. */
const APPROVAL_GUARD = 'approval'

function denied(move: SqliteMove, operation: AdmissionOperation, who: string): AdmissionOperation {
  const said = `denied by ${who}`
  const steps = stepsTo('compensated_before_dispatch')
  return endParticipants(
    move,
    walk(move, operation, steps, { cause: said, deniedBy: APPROVAL_GUARD, lastError: said }),
  )
}

function proposalOf(
  { attachments, operationId }: AdmissionOperation,
  pins: ProposalPins,
): Verified<ThresholdProposal> {
  if (attachments.threshold_proposal !== undefined)
    return verifyProposal(attachments.threshold_proposal, pins)
  throw new BrokerError(
    'operation_state',
    `approval of ${operationId} refused: expected an operation that needs approvals, got one that needs none`,
    { operationId },
  )
}

/** Approvals that count now. A denial never stands beside them: it ended the operation. */
function liveApprovals(
  move: SqliteMove,
  spoken: readonly GovernedApprovalToken[],
  { pins, proposal }: { readonly pins: ProposalPins; readonly proposal: Verified<ThresholdProposal> },
): Verified<GovernedApprovalToken>[] {
  const now = move.nowUnixSeconds
  return spoken
    .filter(token => token.decision === 'approved' && now < token.expires_at)
    .map(token => verifyApproval(token, proposal, pins.approvers, now))
}

/** Whoever approved may still deny; nobody approves twice, and no id is used twice. */
function assertFirstWord(
  move: SqliteMove,
  approval: GovernedApprovalToken,
  live: readonly GovernedApprovalToken[],
): void {
  if (move.approvals.operationOf(approval.id) !== undefined) {
    repeated(`a new id, got ${approval.id}, which was used before`)
  }
  if (approval.decision === 'approved' && live.some(token => token.approver === approval.approver)) {
    repeated('an approver who did not approve yet, got one who did')
  }
}

function repeated(expected: string): never {
  throw new BrokerError('approval_repeated', `approval refused: expected ${expected}`, {
    outcome: 'not_started',
  })
}
