// The nineteen admission states, who may move an operation on from each, and the one transition rule, as
// data. The store refuses every move that `mayMove` does not permit, even when the code above it is wrong.
// Source: the admission operation's transition rule; the order of the states is the specification's.

export const ADMISSION_STATES = [
  'prepared',
  'broker_attempt_registered',
  'approval_required',
  'budget_authorized',
  'approval_reserved',
  'ready_to_dispatch',
  'capture_pending',
  'dispatch_committed',
  'awaiting_caller_report',
  'finalizing',
  'completed',
  'compensated_before_dispatch',
  'not_accepted_after_dispatch_commit',
  'outcome_unknown_after_dispatch',
  'denied_after_delivery',
  'mutation_ready',
  'mutation_submitted',
  'economic_mutation_applied',
  'economic_mutation_not_applied',
] as const
export type AdmissionState = (typeof ADMISSION_STATES)[number]

export const OPERATION_KINDS = [
  'governed_active_response',
  'governed_economic_mutation',
  'tool_dispatch',
] as const
export type OperationKind = (typeof OPERATION_KINDS)[number]

export const DISPATCH_STATES = [
  'capture_pending',
  'committed',
  'finalizing',
  'not_applicable',
  'not_committed',
  'terminal',
] as const
export type DispatchState = (typeof DISPATCH_STATES)[number]

/** Who may move the operation on: its approvers, the host that asked, the kernel itself, the pinned executor, or nobody. */
export type StateOwner = 'approver' | 'executor' | 'host' | 'kernel' | 'nobody'

export interface StateFacts {
  readonly terminal: boolean
  readonly owner: StateOwner
  readonly dispatch: DispatchState
}

const open = (owner: StateOwner, dispatch: DispatchState): StateFacts => ({
  terminal: false,
  owner,
  dispatch,
})
const ended = (dispatch: DispatchState): StateFacts => ({ terminal: true, owner: 'nobody', dispatch })

/** A new state does not compile before it is answered for here. */
export const STATE_FACTS: Record<AdmissionState, StateFacts> = {
  prepared: open('host', 'not_committed'),
  broker_attempt_registered: open('kernel', 'not_committed'),
  approval_required: open('approver', 'not_committed'),
  budget_authorized: open('kernel', 'not_committed'),
  approval_reserved: open('kernel', 'not_committed'),
  ready_to_dispatch: open('host', 'not_committed'),
  capture_pending: open('kernel', 'capture_pending'),
  dispatch_committed: open('kernel', 'committed'),
  awaiting_caller_report: open('executor', 'committed'),
  finalizing: open('kernel', 'finalizing'),
  completed: ended('terminal'),
  compensated_before_dispatch: ended('terminal'),
  not_accepted_after_dispatch_commit: ended('terminal'),
  outcome_unknown_after_dispatch: ended('terminal'),
  denied_after_delivery: ended('terminal'),
  mutation_ready: open('kernel', 'not_applicable'),
  mutation_submitted: open('kernel', 'not_applicable'),
  economic_mutation_applied: ended('not_applicable'),
  economic_mutation_not_applied: ended('not_applicable'),
}

/** What an operation cannot do without; the members are the wire's. */
export interface RequirementFlags {
  readonly approval: boolean
  readonly broker_attempt: boolean
  readonly budget_capture: boolean
  readonly execution_nonce: boolean
}

/** A condition of one edge: a requirement present (`+`) or absent (`-`), or one kind of operation alone. */
type Condition = `${'+' | '-'}${keyof RequirementFlags}` | 'tool dispatch'
type Edge = readonly [from: AdmissionState, to: AdmissionState, ...conditions: Condition[]]

/** Edges of tool dispatch and active response. What is not here is refused. */
export const DISPATCH_EDGES: readonly Edge[] = [
  ['prepared', 'broker_attempt_registered', '+broker_attempt'],
  ['broker_attempt_registered', 'approval_required', '+broker_attempt', '+budget_capture', '+approval'],
  ['prepared', 'approval_required', '-broker_attempt', '+budget_capture', '+approval'],
  // Approval may have been presented beforehand: the wait for it is then left out.
  ['approval_required', 'budget_authorized', '+budget_capture', '+approval'],
  ['broker_attempt_registered', 'budget_authorized', '+budget_capture', '+broker_attempt'],
  ['prepared', 'budget_authorized', '+budget_capture', '-broker_attempt'],
  ['budget_authorized', 'approval_reserved', '+approval', '+budget_capture'],
  ['prepared', 'approval_reserved', '+approval', '-budget_capture'],
  ['approval_reserved', 'ready_to_dispatch', '+approval'],
  ['budget_authorized', 'ready_to_dispatch', '-approval', '+budget_capture'],
  ['budget_authorized', 'ready_to_dispatch', '+approval', '+budget_capture', 'tool dispatch'],
  ['prepared', 'ready_to_dispatch', '-approval', '-budget_capture'],
  ['ready_to_dispatch', 'capture_pending', '+budget_capture'],
  ['capture_pending', 'dispatch_committed', '+budget_capture'],
  ['ready_to_dispatch', 'dispatch_committed', '-budget_capture'],
  ['dispatch_committed', 'awaiting_caller_report', '+execution_nonce', '+budget_capture', 'tool dispatch'],
  ['awaiting_caller_report', 'finalizing', '+execution_nonce', '+budget_capture', 'tool dispatch'],
  ['dispatch_committed', 'finalizing'],
  ['dispatch_committed', 'not_accepted_after_dispatch_commit'],
  ['dispatch_committed', 'outcome_unknown_after_dispatch'],
  ['finalizing', 'outcome_unknown_after_dispatch'],
  ['finalizing', 'completed'],
  ['finalizing', 'denied_after_delivery'],
  ['prepared', 'compensated_before_dispatch'],
  ['ready_to_dispatch', 'compensated_before_dispatch'],
  ['broker_attempt_registered', 'compensated_before_dispatch', '+broker_attempt'],
  ['approval_required', 'compensated_before_dispatch', '+budget_capture', '+approval'],
  ['budget_authorized', 'compensated_before_dispatch', '+budget_capture'],
  ['capture_pending', 'compensated_before_dispatch', '+budget_capture'],
  ['approval_reserved', 'compensated_before_dispatch', '+approval'],
]

/** Edges of an economic mutation, which has no dispatch. */
export const ECONOMIC_EDGES: readonly Edge[] = [
  ['prepared', 'mutation_ready'],
  ['mutation_ready', 'mutation_submitted'],
  ['mutation_submitted', 'economic_mutation_applied'],
  ['prepared', 'economic_mutation_not_applied'],
  ['mutation_ready', 'economic_mutation_not_applied'],
  ['mutation_submitted', 'economic_mutation_not_applied'],
]

/** Whether an operation of this kind and these requirements may move along one edge. */
export function mayMove(
  kind: OperationKind,
  requirements: RequirementFlags,
  from: AdmissionState,
  to: AdmissionState,
): boolean {
  const edges = kind === 'governed_economic_mutation' ? ECONOMIC_EDGES : DISPATCH_EDGES
  return edges.some(
    ([source, target, ...conditions]) =>
      source === from && target === to && conditions.every(condition => holds(condition, kind, requirements)),
  )
}

function holds(condition: Condition, kind: OperationKind, requirements: RequirementFlags): boolean {
  if (condition === 'tool dispatch') return kind === 'tool_dispatch'
  const required = requirements[condition.slice(1) as keyof RequirementFlags]
  return condition.startsWith('+') ? required : !required
}

/** Whether nothing leaves the state any more. */
export function isTerminalState(state: AdmissionState): boolean {
  return STATE_FACTS[state].terminal
}

/** Whether the operation may still be taken back: nothing has authorized its effect. */
export function isBeforeDispatch(state: AdmissionState): boolean {
  const { dispatch } = STATE_FACTS[state]
  return dispatch === 'not_committed' || dispatch === 'capture_pending'
}
