// Owns: what there is to say of one operation to whoever has to decide what to do with it.
// Must never: claim a lease, move anything, or guess: what nobody recorded is said to be unknown.
// Source: the admission state table; the broker's attempt status.
import type { AdmissionState } from '../../protocol/admission-states.js'
import { STATE_FACTS } from '../../protocol/admission-states.js'
import type { OperationExplanation } from '../../protocol/operation-rpc.js'
import { deadlineAfter } from '../../system/deadline.js'
import { pinText } from '../delivery/caller-pin.js'
import type { ToolCallTerms } from '../calls/tool-call-terms.js'
import { readableOperation } from './find-operation.js'
import type { Caller, KernelContext } from '../kernel-context.js'
import { type AdmissionOperation, isToolCall } from './operation.js'
import { operationDocument } from './operation-document.js'

/** An explanation must not hang on a broker that does not answer. */
const ASK_BROKER_MS = 1_000
const OPERATION_ID = /^[0-9a-f]{64}$/

/** @param id of an operation or of its attempt. @throws BrokerError `operation_unknown`. */
export async function explain(
  context: KernelContext,
  caller: Caller,
  id: string,
): Promise<{ readonly explanation: OperationExplanation; readonly operation: AdmissionOperation }> {
  const found = OPERATION_ID.test(id) ? id : await context.store.findAttempt(id)
  const operation = await readableOperation(context, caller, found ?? id)
  const { history, reconciliations, sharing } = await context.store.readRecord(operation)
  const explanation: OperationExplanation = {
    ...(await attemptMembers(context, operation)),
    capture: captureText(operation),
    document: operationDocument(operation, await context.store.receipts.endIdOf(operation.operationId)),
    history,
    mover: STATE_FACTS[operation.state].owner,
    next: nextOf(operation),
    reconciliations,
    sharesArgumentsWith: sharing,
  }
  return { explanation, operation }
}

type AttemptMembers = Pick<OperationExplanation, 'attempt' | 'attemptReason'>

/** What is said of an attempt of which the broker says nothing. */
const unsaid = (attempt: string): AttemptMembers => ({ attempt, attemptReason: null })

async function attemptMembers(
  context: KernelContext,
  operation: AdmissionOperation,
): Promise<AttemptMembers> {
  const { call } = operation
  if (isToolCall(call)) return unsaid(executorText(operation, call.terms))
  const { registration } = call
  if (registration === null)
    return unsaid('none: its registration was never signed, so the broker cannot know it')
  const { attemptId } = registration.ids
  try {
    const deadline = deadlineAfter(context.clock, ASK_BROKER_MS)
    const status = await context.records.attemptStatus(attemptId, deadline)
    if (status === 'unreachable')
      return unsaid(`${attemptId}: the broker cannot be reached, so it is not known`)
    if (status === 'refused') return unsaid(`${attemptId}: the broker refused to say`)
    if (status === 'unknown') return unsaid(`${attemptId}: the broker holds no such attempt`)
    const held = status.held ? ', held on a prepared stream' : ''
    return { attempt: `${attemptId}: ${status.state} at the broker${held}`, attemptReason: status.reason }
  } catch {
    return unsaid(`${attemptId}: the broker gave no answer that can be believed`)
  }
}

/** An executor is asked for nothing: it reports what it did. */
function executorText(
  { attachments }: AdmissionOperation,
  { executor }: Pick<ToolCallTerms, 'executor'>,
): string {
  const { broker_attempt: attempt } = attachments
  if (executor === null) return 'none: no executor was pinned when it was admitted'
  if (attempt === undefined) return `none yet: it would be of ${pinText(executor)}`
  return `${attempt.attempt_id}: of ${pinText(executor)}, whose ledger says whether it was claimed`
}

/** Captured or not, and which record says so. */
function captureText(operation: AdmissionOperation): string {
  const { attachments, commit, state } = operation
  const hold = attachments.budget_hold_id
  if (hold === undefined) return 'nothing is held'
  if (commit !== null) {
    const { budgetCommitIndex } = commit.captured
    return `captured: ${hold} by the dispatch commit of version ${commit.committed_version}, store commit ${budgetCommitIndex}; it stays spent`
  }
  return state === 'compensated_before_dispatch'
    ? `given back: ${hold} by the end of version ${operation.version}`
    : `held and not captured: ${hold}; it is given back unless the operation starts`
}

function nextOf({ call, state }: AdmissionOperation): string {
  return (call.kind === 'tool_call' ? NEXT_OF_CALL[state] : undefined) ?? NEXT[state]
}

const REVERSIBLE = 'repeat the run, or take it back: chio operation cancel'
const SETTLING = "wait: its kernel asks the broker and ends it by the broker's record"

/** Where a call of an executor differs. */
const NEXT_OF_CALL: Partial<Record<AdmissionState, string>> = {
  awaiting_caller_report:
    'its executor still has to report: execute it again there, which repeats what is retained, and bring that report; where its ledger says unknown, look at the resource and state what you found: chio operation reconcile',
  completed: 'nothing: it is done; the same report again gets the same answer',
  denied_after_delivery:
    'its executor acted and the output is kept from you; look at the resource before you run anything again',
  dispatch_committed: 'start it again: the same start gets its signed authorization',
  outcome_unknown_after_dispatch:
    'look at the resource, never run it again before that, and state what you found: chio operation reconcile',
}

/** What to do, for every state. A new one does not compile before it has its sentence. */
const NEXT: Readonly<Record<AdmissionState, string>> = {
  prepared: REVERSIBLE,
  broker_attempt_registered: REVERSIBLE,
  approval_required: 'ask its approvers: chio approval show; the run that waits for them goes on by itself',
  budget_authorized: REVERSIBLE,
  approval_reserved: 'its run goes on by itself; without one it is given back at its deadline',
  ready_to_dispatch: `its host starts it before its nonce expires; else ${REVERSIBLE}`,
  capture_pending: SETTLING,
  dispatch_committed: `${SETTLING}; never run it again before that`,
  awaiting_caller_report:
    'its executor still has to report; bring the original report, and never run it again',
  finalizing: 'wait: its kernel checks what was delivered and ends it',
  completed: 'nothing: it is done; read its outcome: chio operation outcome',
  compensated_before_dispatch: 'nothing was sent: run it again under a new id when you want to',
  not_accepted_after_dispatch_commit:
    'nothing was sent, the execution stays spent: run it again under a new id',
  outcome_unknown_after_dispatch:
    'ask the provider what it did, never run it again before that, and state what you found: chio operation reconcile',
  denied_after_delivery:
    'the provider was called and its answer is kept from you; look there before you run anything again',
  mutation_ready: SETTLING,
  mutation_submitted: SETTLING,
  economic_mutation_applied: 'nothing: it was applied',
  economic_mutation_not_applied: 'nothing: it was not applied',
}
