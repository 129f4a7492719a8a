// Owns the answer to an agent's tool call, as it travels: one result and the kernel's receipt of the decision.
// Must never: be an answer without a receipt; nor does a result say more than its receipt does.
// Source: the kernel's `tool_call_response`; its results by status and its errors by code.
import { type Infer, identifier, json, literal, object, tagged, text } from './codec.js'
import { KernelReceipt } from './kernel-receipt.js'
import { MAXIMUM_RECEIPT_TEXT_BYTES, MAXIMUM_TOOL_OUTCOME_BYTES } from './limits.js'
import { ThresholdProposal } from './threshold-proposal.js'
import { Count } from './unix-time.js'

const sentence = text({ maxBytes: MAXIMUM_RECEIPT_TEXT_BYTES })
const stopped = object({ chunks_received: Count, reason: sentence })

/** Why a call was denied or failed. */
export const ToolCallError = tagged('code', {
  capability_denied: object({ detail: sentence }),
  capability_expired: object({}),
  capability_revoked: object({}),
  internal_error: object({ detail: sentence }),
  policy_denied: object({ detail: object({ guard: sentence, reason: sentence }) }),
  tool_server_error: object({ detail: sentence }),
})
export type ToolCallError = Infer<typeof ToolCallError>

export const ToolCallResult = tagged('status', {
  cancelled: stopped,
  err: object({ error: ToolCallError }),
  incomplete: stopped,
  ok: object({ value: json({ maxBytes: MAXIMUM_TOOL_OUTCOME_BYTES }) }),
  pending_approval: object({ proposal: ThresholdProposal }),
  stream_complete: object({ total_chunks: Count }),
})
export type ToolCallResult = Infer<typeof ToolCallResult>

export const ToolCallResponse = object({
  id: identifier(),
  receipt: KernelReceipt,
  result: ToolCallResult,
  type: literal('tool_call_response'),
})
export type ToolCallResponse = Infer<typeof ToolCallResponse>
