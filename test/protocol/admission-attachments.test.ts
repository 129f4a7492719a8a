// The attachments of an operation: what may be added where, what may stand where, what may not be missing.
import { describe, expect, test } from 'vitest'
import {
  type AdmissionAttachments,
  ATTACHMENT_NAMES,
  ATTACHMENT_RULES,
  type AttachmentHolder,
  type AttachmentName,
  assertAddable,
  assertAttachments,
} from '../../protocol/admission-attachments.js'
import { BROKERED_REQUIREMENTS, type ParticipantRequirements } from '../../protocol/admission-requirements.js'
import { ADMISSION_STATES, type AdmissionState } from '../../protocol/admission-states.js'

const DIGEST = 'ab'.repeat(32)
const ATTEMPT = { attempt_id: 'a', operation_id: DIGEST, transport_id: 't', transport_key_epoch: 1 }
const BROKERED: AdmissionAttachments = {
  broker_attempt: ATTEMPT,
  budget_hold_id: 'hold',
  execution_nonce_id: 'nonce',
}
const ALL: ParticipantRequirements = {
  ...BROKERED_REQUIREMENTS,
  approval: true,
  outcome_eligibility: true,
  payment: true,
}

const holder = (
  state: AdmissionState,
  requirements: ParticipantRequirements = BROKERED_REQUIREMENTS,
  kind: AttachmentHolder['kind'] = 'tool_dispatch',
): AttachmentHolder => ({ kind, requirements, state })

const forbidden = { code: 'attachment_forbidden', outcome: 'not_started' }
const statesFor = (name: AttachmentName, requirements = ALL): AdmissionState[] =>
  ADMISSION_STATES.filter(state => {
    try {
      assertAddable([name], holder(state, requirements))
      return true
    } catch {
      return false
    }
  })

describe('an attachment', () => {
  test.each([
    [
      'execution_nonce_id',
      [
        'prepared',
        'broker_attempt_registered',
        'approval_required',
        'budget_authorized',
        'approval_reserved',
      ],
    ],
    ['nonce_issuance_digest', ['prepared']],
    ['nonce_preflight_digest', ['prepared']],
    ['caller_dispatch_context_digest', ['capture_pending']],
    ['native_dispatch_ledger_digest', ['capture_pending']],
    ['governed_approval_ledger_digest', ['prepared', 'broker_attempt_registered']],
    ['tool_outcome_id', ['dispatch_committed', 'awaiting_caller_report', 'finalizing']],
  ] as const)('%s is added in exactly its states', (name, states) => {
    expect(statesFor(name)).toEqual(states)
  })

  test('is refused by an operation whose requirements have no use for it', () => {
    const none = Object.fromEntries(Object.keys(ALL).map(name => [name, false])) as ParticipantRequirements
    const open: AttachmentName[] = [
      'runtime_participant_ledger_digest',
      'governed_approval_ledger_digest',
      'dpop_replay_ledger_digest',
      'tool_outcome_id',
    ]
    for (const name of ATTACHMENT_NAMES.filter(each => !open.includes(each))) {
      expect(statesFor(name, none)).toEqual([])
    }
  })

  test('of a tool dispatch is refused by another kind', () => {
    const active = holder('dispatch_committed', { ...ALL, budget_capture: false }, 'governed_active_response')
    expect(() => assertAddable(['tool_outcome_id'], active)).toThrow(expect.objectContaining(forbidden))
  })

  test('that belongs to a commit stands only where one stands', () => {
    for (const state of ADMISSION_STATES) {
      const standsIn = ATTACHMENT_RULES.caller_dispatch_context_digest.standsIn ?? []
      const judge = (): void =>
        assertAttachments(
          { ...BROKERED, caller_dispatch_context_digest: DIGEST, tool_outcome_id: 'o' },
          holder(state),
        )
      const outcomeStands = ATTACHMENT_RULES.tool_outcome_id.standsIn?.includes(state) === true
      if (standsIn.includes(state) && outcomeStands) expect(judge).not.toThrow()
      else expect(judge).toThrow(expect.objectContaining(forbidden))
    }
  })

  test('of the outcome does not stand while its executor is awaited', () => {
    const awaiting = holder('awaiting_caller_report')
    expect(() => assertAttachments({ ...BROKERED, tool_outcome_id: 'o' }, awaiting)).toThrow(
      expect.objectContaining(forbidden),
    )
    expect(() => assertAttachments(BROKERED, awaiting)).not.toThrow()
  })
})

describe('what may not be missing', () => {
  const missing = (attachments: AdmissionAttachments, given: AttachmentHolder): string => {
    try {
      assertAttachments(attachments, given)
      return 'nothing'
    } catch (error) {
      return /attachment (\w+) refused/.exec((error as Error).message)?.[1] ?? 'another fault'
    }
  }

  test('grows with the milestones of a brokered operation', () => {
    expect(missing({}, holder('prepared'))).toBe('nothing')
    expect(missing({}, holder('broker_attempt_registered'))).toBe('broker_attempt')
    const attempted = { broker_attempt: ATTEMPT }
    expect(missing(attempted, holder('broker_attempt_registered'))).toBe('nothing')
    expect(missing(attempted, holder('budget_authorized'))).toBe('budget_hold_id')
    const held = { ...attempted, budget_hold_id: 'hold' }
    expect(missing(held, holder('ready_to_dispatch'))).toBe('execution_nonce_id')
    expect(missing(BROKERED, holder('dispatch_committed'))).toBe('nothing')
  })

  test('is named in the order of the wire, the outcome first', () => {
    expect(missing({}, holder('finalizing', ALL))).toBe('tool_outcome_id')
    const outcome = { tool_outcome_id: 'o' }
    expect(missing(outcome, holder('finalizing', ALL))).toBe('broker_attempt')
    expect(missing({ ...BROKERED, ...outcome }, holder('finalizing', ALL))).toBe('outcome_eligibility_digest')
  })

  test('is not asked of what was given back or denied', () => {
    for (const state of ['compensated_before_dispatch', 'denied_after_delivery'] as const) {
      expect(missing({}, holder(state))).toBe('nothing')
    }
  })

  test('of a wait for approvals is the proposal, its hash and the hold', () => {
    const required = holder('approval_required', { ...BROKERED_REQUIREMENTS, approval: true })
    const attempted = { broker_attempt: ATTEMPT }
    expect(missing(attempted, required)).toBe('threshold_proposal_hash')
    const proposed = { ...attempted, threshold_proposal_hash: DIGEST }
    expect(missing(proposed, required)).toBe('budget_hold_id')
    expect(missing({ ...proposed, budget_hold_id: 'h' }, required)).toBe('threshold_proposal')
  })

  test('of approvals is asked of an active response, and of a tool call once it was proposed', () => {
    const approval = { ...BROKERED_REQUIREMENTS, approval: true }
    expect(missing(BROKERED, holder('ready_to_dispatch', approval))).toBe('nothing')
    const proposed = { ...BROKERED, threshold_proposal_hash: DIGEST }
    expect(missing(proposed, holder('ready_to_dispatch', approval))).toBe('approval_set_hash')
    const alone = { ...approval, broker_attempt: false, budget_capture: false, execution_nonce: false }
    expect(missing({}, holder('approval_reserved', alone, 'governed_active_response'))).toBe(
      'threshold_proposal_hash',
    )
  })
})
