// The transition rule of admission operations, walked whole for the requirement sets that matter.
import { describe, expect, test } from 'vitest'
import { BROKERED_REQUIREMENTS } from '../../protocol/admission-requirements.js'
import {
  ADMISSION_STATES,
  type AdmissionState,
  isBeforeDispatch,
  isTerminalState,
  mayMove,
  type OperationKind,
  type RequirementFlags,
  STATE_FACTS,
} from '../../protocol/admission-states.js'

const NONE: RequirementFlags = {
  approval: false,
  broker_attempt: false,
  budget_capture: false,
  execution_nonce: false,
}
const APPROVED: RequirementFlags = { ...BROKERED_REQUIREMENTS, approval: true }

function movesFrom(
  kind: OperationKind,
  requirements: RequirementFlags,
  from: AdmissionState,
): AdmissionState[] {
  return ADMISSION_STATES.filter(to => mayMove(kind, requirements, from, to))
}

describe('the admission states', () => {
  test('are nineteen, each answered for', () => {
    expect(ADMISSION_STATES).toHaveLength(19)
    expect(new Set(ADMISSION_STATES).size).toBe(19)
    expect(Object.keys(STATE_FACTS).sort()).toEqual([...ADMISSION_STATES].sort())
  })

  test('let nothing leave a terminal state, whatever is required', () => {
    for (const kind of ['tool_dispatch', 'governed_active_response', 'governed_economic_mutation'] as const) {
      for (const requirements of [NONE, APPROVED, BROKERED_REQUIREMENTS]) {
        for (const from of ADMISSION_STATES.filter(isTerminalState)) {
          expect(movesFrom(kind, requirements, from)).toEqual([])
        }
      }
    }
  })

  test('never take back what was committed', () => {
    const committed = ADMISSION_STATES.filter(state => !isBeforeDispatch(state))
    for (const from of committed) {
      expect(mayMove('tool_dispatch', APPROVED, from, 'compensated_before_dispatch')).toBe(false)
    }
  })
})

describe('a brokered tool dispatch', () => {
  test.each([
    ['prepared', ['broker_attempt_registered', 'compensated_before_dispatch']],
    ['broker_attempt_registered', ['budget_authorized', 'compensated_before_dispatch']],
    ['budget_authorized', ['ready_to_dispatch', 'compensated_before_dispatch']],
    ['ready_to_dispatch', ['capture_pending', 'compensated_before_dispatch']],
    ['capture_pending', ['dispatch_committed', 'compensated_before_dispatch']],
    [
      'dispatch_committed',
      [
        'awaiting_caller_report',
        'finalizing',
        'not_accepted_after_dispatch_commit',
        'outcome_unknown_after_dispatch',
      ],
    ],
    ['awaiting_caller_report', ['finalizing']],
    ['finalizing', ['completed', 'outcome_unknown_after_dispatch', 'denied_after_delivery']],
    ['mutation_ready', []],
  ] as const)('moves on from %s to %j', (from, expected) => {
    expect(movesFrom('tool_dispatch', BROKERED_REQUIREMENTS, from)).toEqual(expected)
  })
})

describe('other requirements', () => {
  test('put the approval between registration and budget, or leave the wait for it out', () => {
    expect(movesFrom('tool_dispatch', APPROVED, 'broker_attempt_registered')).toEqual([
      'approval_required',
      'budget_authorized',
      'compensated_before_dispatch',
    ])
    expect(movesFrom('tool_dispatch', APPROVED, 'budget_authorized')).toEqual([
      'approval_reserved',
      'ready_to_dispatch',
      'compensated_before_dispatch',
    ])
  })

  test('refuse an active response the shortcut past its approval and the wait for a caller', () => {
    const kind = 'governed_active_response'
    expect(mayMove(kind, APPROVED, 'budget_authorized', 'ready_to_dispatch')).toBe(false)
    expect(mayMove(kind, APPROVED, 'dispatch_committed', 'awaiting_caller_report')).toBe(false)
  })

  test('let an operation without a budget dispatch from ready', () => {
    expect(movesFrom('tool_dispatch', NONE, 'prepared')).toEqual([
      'ready_to_dispatch',
      'compensated_before_dispatch',
    ])
    expect(movesFrom('tool_dispatch', NONE, 'ready_to_dispatch')).toEqual([
      'dispatch_committed',
      'compensated_before_dispatch',
    ])
    expect(movesFrom('tool_dispatch', NONE, 'dispatch_committed')).not.toContain('awaiting_caller_report')
  })

  test('give an economic mutation its own four edges and no dispatch', () => {
    const kind = 'governed_economic_mutation'
    expect(movesFrom(kind, NONE, 'prepared')).toEqual(['mutation_ready', 'economic_mutation_not_applied'])
    expect(movesFrom(kind, NONE, 'mutation_ready')).toEqual([
      'mutation_submitted',
      'economic_mutation_not_applied',
    ])
    expect(movesFrom(kind, NONE, 'mutation_submitted')).toEqual([
      'economic_mutation_applied',
      'economic_mutation_not_applied',
    ])
  })
})
