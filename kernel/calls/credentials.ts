// Owns: what a call carries, and what its start presents, beside its token and its nonce: each is judged, or refused by
// its name.
// Must never: pass over in silence what nobody here judges, or take an approval that its approver did not hand in.
// Source: credentials of a caller's start; operation-owned custody of approvals.
import { GovernedApprovalToken, SoleApprovalToken } from '../../protocol/approval-token.js'
import { encode } from '../../protocol/codec.js'
import { ThresholdProposal } from '../../protocol/threshold-proposal.js'
import type { ToolCallRequest } from '../../protocol/tool-call.js'
import type { CallCredentials } from '../../protocol/tool-call-rpc.js'
import type { AdmissionOperation } from '../operation/operation.js'
import type { SqliteMove } from '../sqlite/move.js'
import { callRefusal, type CallRefusal } from './call-refusal.js'

/** Approvers hand their words in themselves; of what else a request may carry, nothing is judged here. */
const CARRIED = [
  'approval_token',
  'approval_tokens',
  'supplemental_authorization',
  'threshold_approval_proposal',
] as const

/** What a request brings along; null where that is nothing. */
export function judgeCarried(request: ToolCallRequest): CallRefusal | null {
  return unjudged(CARRIED.filter(name => request[name] !== undefined))
}

/** What a start presents; null where all of it is what this operation rests on already. A proof is judged in its place. */
export function judgePresented(
  move: SqliteMove,
  operation: AdmissionOperation,
  credentials: CallCredentials,
): CallRefusal | null {
  if (credentials.declassification_grant !== undefined) return unjudged(['declassification_grant'])
  const presented = approvalsIn(credentials)
  if (presented.length === 0) return null
  const proposal = operation.attachments.threshold_proposal
  if (proposal === undefined) return unjudged(presented.map(({ name }) => name))
  const own = [
    encode(ThresholdProposal, proposal),
    ...move.approvals.of(operation.operationId).map(word => encode(GovernedApprovalToken, word)),
  ]
  const other = presented.find(({ bytes }) => !own.some(known => Buffer.compare(known, bytes) === 0))
  if (other === undefined) return null
  const expected = 'expected what was given for exactly this operation, got one of another'
  return callRefusal('approval', 'approval_mismatch', `${other.name} refused: ${expected}`)
}

interface Presented {
  readonly name: string
  readonly bytes: Uint8Array
}

function approvalsIn({
  approval_token: sole,
  approval_tokens: several = [],
  threshold_approval_proposal: proposal,
}: CallCredentials): readonly Presented[] {
  return [
    ...(sole === undefined ? [] : [{ bytes: encode(SoleApprovalToken, sole), name: 'approval_token' }]),
    ...several.map(token => ({ bytes: encode(GovernedApprovalToken, token), name: 'approval_tokens' })),
    ...(proposal === undefined
      ? []
      : [{ bytes: encode(ThresholdProposal, proposal), name: 'threshold_approval_proposal' }]),
  ]
}

function unjudged(names: readonly string[]): CallRefusal | null {
  if (names.length === 0) return null
  return callRefusal(
    'approval',
    'authorization_denied',
    `caller execution requires authenticated start and operation-owned credential custody: expected none, got ${names.join(', ')}`,
  )
}
