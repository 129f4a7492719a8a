// Owns: what the kernel says of an operation: where it stands, who moves it next, when it settles.
// Must never: show a body, a proof or a capability.
// Source: the operation view of the kernel's host socket.
import { type AdmissionState, isTerminalState } from '../../protocol/admission-states.js'
import type { OperationView } from '../../protocol/kernel-rpc.js'
import type { AdmissionOperation } from './operation.js'
import type { WaitReason } from '../settling/settle-operation.js'

const MAXIMUM_ERROR_BYTES = 4_096

export interface Outlook {
  readonly reason: WaitReason | null
  readonly settlesAtUnixMs: number | null
}

const WAITS: Record<WaitReason, string> = {
  attempt_held: 'waiting: the broker still holds the attempt; looked at again at its deadline',
  attempt_pending: 'waiting: the attempt is not ended at the broker yet; asked again',
  broker_unreachable: 'waiting: the broker cannot be reached; asked again until it answers',
  release_refused:
    "waiting: the broker refused the kernel's release; see that both clocks agree and that it pins this kernel's authority key; asked again",
  record_refused: "waiting: the broker's record was refused; compare the stores of kernel and broker",
}

/** Of a call that an executor carries out. */
const DELIVERED: Partial<Record<AdmissionState, string>> = {
  awaiting_caller_report: "awaits its executor's report, however late; the kernel asks nobody for it",
  completed: "settled by its executor's report",
  denied_after_delivery: "settled by its executor's report, whose output is withheld",
  dispatch_committed: 'captured; its kernel signs what its executor may act on',
  finalizing: 'reported; its kernel ends it',
  outcome_unknown_after_dispatch: 'settled without a report: its executor is pinned no more',
}

export function operationView(
  operation: AdmissionOperation,
  outlook: Outlook,
  sharing: readonly string[] = [],
): OperationView {
  const { binding } = operation
  return {
    attemptId: operation.call.registration?.ids.attemptId ?? null,
    createdAtUnixMs: operation.createdAtUnixMs,
    grantId: binding.capability_id,
    invocationId: binding.request_id,
    lastError: operation.lastError?.slice(0, MAXIMUM_ERROR_BYTES) ?? null,
    operationId: operation.operationId,
    requestDigest: binding.request_binding.action_parameter_hash,
    sharesArgumentsWith: sharing,
    settlement: settlementText(operation, outlook.reason),
    settlesAtUnixMs: isTerminalState(operation.state) ? null : outlook.settlesAtUnixMs,
    state: operation.state,
    updatedAtUnixMs: operation.updatedAtUnixMs,
    version: operation.version,
  }
}

function settlementText(operation: AdmissionOperation, reason: WaitReason | null): string {
  const { call, commit, state } = operation
  const delivered = call.kind === 'tool_call' ? DELIVERED[state] : undefined
  if (delivered !== undefined) return delivered
  if (isTerminalState(state)) {
    return operation.call.record === null
      ? 'settled without a record: nothing was sent'
      : "settled by the broker's record"
  }
  if (reason !== null) return WAITS[reason]
  if (state === 'prepared')
    return 'awaits its reserve under a refreshed context; given back once its nonce expires'
  if (state === 'approval_required') return 'awaits its approvals; given back at their deadline'
  if (state === 'approval_reserved')
    return 'approved; awaits that its host asks again; given back at the deadline'
  return commit === null
    ? 'awaits its start; given back once its nonce expires'
    : "awaits the broker's record; the kernel asks for it at the deadline"
}
