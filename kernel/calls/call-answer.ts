// Owns: what a decision about a tool call is answered as.
// Must never: say that anything may be executed before an authorization was signed, or show a nonce that serves nothing.
// Source: the answers of the kernel's caller API.
import type { AdmissionState } from '../../protocol/admission-states.js'
import type { StartWarning } from '../../protocol/operation-rpc.js'
import type { CallAnswer, StartAnswer } from '../../protocol/tool-call-rpc.js'
import { toolCallOf } from '../operation/operation.js'
import { pendingReason } from './call-approvals.js'
import type { CallDecision } from './call-store.js'

/** The nonce is answered while it is good for something. */
const NONCE_STATES: readonly AdmissionState[] = ['prepared', 'approval_reserved', 'ready_to_dispatch']

export function answerOf(decision: CallDecision): CallAnswer {
  const { operation, receipt, refusal } = decision
  const isUsable =
    operation?.call.kind === 'tool_call' && refusal === null && NONCE_STATES.includes(operation.state)
  return {
    ...saidOf(decision),
    executionAuthorized: false,
    executionNonce: isUsable ? toolCallOf(operation).terms.executionNonce : null,
    operationId: operation?.operationId ?? null,
    receipt,
    state: operation?.state ?? null,
  }
}

function saidOf({
  operation,
  refusal,
}: CallDecision): Pick<CallAnswer, 'check' | 'code' | 'reason' | 'verdict'> {
  if (refusal !== null) {
    const { check, code, reason } = refusal
    return { check, code, reason, verdict: 'deny' }
  }
  const reason = operation === null ? null : pendingReason(operation)
  if (reason === null) return { check: null, code: null, reason, verdict: 'allow' }
  return { check: 'approval', code: 'approval_required', reason, verdict: 'pending_approval' }
}

export function startAnswerOf(
  decision: CallDecision,
  warnings: readonly StartWarning[],
  nowUnixMs: number,
): StartAnswer {
  const authorization = decision.authorization ?? null
  const expiresAtUnixMs = authorization?.authorization.expires_at_unix_ms ?? 0
  const isClaimable = decision.operation?.state === 'awaiting_caller_report' && nowUnixMs < expiresAtUnixMs
  const warned = decision.refusal === null && warnings.length > 0 && { warnings: [...warnings] }
  return { ...answerOf(decision), authorization, executionAuthorized: isClaimable, ...warned }
}
