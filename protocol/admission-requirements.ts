// Owns: which requirements go together, of which kind of operation. What is wrong is said whole, as sentences.
// Must never: let an operation be bound whose participants contradict each other: no table of states fits it.
// Source: the participant requirements of the admission operation.
import type { OperationKind } from './admission-states.js'
import { boolean, type Infer, object } from './codec.js'

/** Nine requirements are always written; `channel` is left out where it is not needed. */
export const ParticipantRequirements = object(
  {
    approval: boolean(),
    authorization_consumption: boolean(),
    broker_attempt: boolean(),
    budget_capture: boolean(),
    execution_nonce: boolean(),
    obligation: boolean(),
    observation_attempt_zero: boolean(),
    outcome_eligibility: boolean(),
    payment: boolean(),
  },
  { optional: { channel: boolean() } },
)
export type ParticipantRequirements = Infer<typeof ParticipantRequirements>

/** What a brokered tool call needs: an attempt at the broker, a hold and an execution nonce. */
export const BROKERED_REQUIREMENTS: ParticipantRequirements = {
  approval: false,
  authorization_consumption: false,
  broker_attempt: true,
  budget_capture: true,
  execution_nonce: true,
  obligation: false,
  observation_attempt_zero: false,
  outcome_eligibility: false,
  payment: false,
}

type Given = Partial<ParticipantRequirements>

/** What contradicts: requirements against each other, then against the kind. Empty when they go together. */
export function requirementFaults(kind: OperationKind, given: Given): string[] {
  return [...needs(given), ...ofKind(kind, given)]
}

function needs(given: Given): string[] {
  const budget = (['broker_attempt', 'payment', 'channel'] as const).filter(
    name => given[name] === true && given.budget_capture !== true,
  )
  return [
    ...budget.map(name => `${name} needs budget_capture`),
    ...(given.channel === true && given.payment === true ? ['channel excludes payment'] : []),
    ...(given.channel === true && given.obligation !== true ? ['channel needs obligation'] : []),
  ]
}

function ofKind(kind: OperationKind, given: Given): string[] {
  const required = Object.entries(given)
    .filter(([, value]) => value === true)
    .map(([name]) => name)
  switch (kind) {
    case 'tool_dispatch':
      return []
    case 'governed_active_response':
      return required.length === 1 && given.approval === true ? [] : ['an active response has approval alone']
    case 'governed_economic_mutation':
      return required.length === 0 ? [] : ['an economic mutation has none']
  }
}
