// Owns the request of an agent to call one tool, as it travels.
// Must never: make anything of the request's own word: token, approvals and proposal are judged by whoever decides.
// Source: the agent's `tool_call_request`; capability digest and parameter hash of the kernel.
import { GovernedApprovalToken, SoleApprovalToken } from './approval-token.js'
import { CapabilityToken } from './capability-token.js'
import { array, bytes, type Infer, identifier, json, literal, object, refine } from './codec.js'
import { BrokerError } from './errors.js'
import { MAXIMUM_APPROVALS, MAXIMUM_PARAMETERS_BYTES, MAXIMUM_SUPPLEMENTAL_BYTES } from './limits.js'
import { ThresholdProposal } from './threshold-proposal.js'

/** Opaque to us: nothing in it is authority before a verifier was installed for it. */
export const SupplementalAuthorization = object({
  artifact: bytes({ min: 1, max: MAXIMUM_SUPPLEMENTAL_BYTES }),
  reference: identifier(),
})

const ToolCallMembers = object(
  {
    capability_token: CapabilityToken,
    id: identifier(),
    params: json({ maxBytes: MAXIMUM_PARAMETERS_BYTES }),
    server_id: identifier(),
    tool: identifier(),
    type: literal('tool_call_request'),
  },
  {
    optional: {
      approval_token: SoleApprovalToken,
      approval_tokens: array(GovernedApprovalToken, { min: 1, max: MAXIMUM_APPROVALS }),
      governed_intent: json({ maxBytes: MAXIMUM_PARAMETERS_BYTES }),
      supplemental_authorization: SupplementalAuthorization,
      threshold_approval_proposal: ThresholdProposal,
    },
  },
)

/** One approval or a set, never both; a set with its proposal, and a proposal with its set. */
export const ToolCallRequest = refine(ToolCallMembers, request => {
  const hasSet = request.approval_tokens !== undefined
  if (hasSet && request.approval_token !== undefined) refuse('approval_token', 'none beside approval_tokens')
  if (hasSet !== (request.threshold_approval_proposal !== undefined)) {
    refuse('threshold_approval_proposal', 'one exactly where approval_tokens are')
  }
})
export type ToolCallRequest = Infer<typeof ToolCallRequest>

function refuse(member: string, expected: string): never {
  throw new BrokerError('invalid_request', `tool call request ${member} refused: expected ${expected}`)
}
