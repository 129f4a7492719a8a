// Owns: the attachments of an admission operation as data: which requirement makes each possible, in which states it
// may be added and may stand, and in which it may not be missing. Each is set once.
// Must never: let a milestone be reached without what it rests on, or take in what the operation has no use for.
// Source: the attachment table of the admission operation; its order of checks. The names that it leaves open are ours.
import type { ParticipantRequirements } from './admission-requirements.js'
import type { AdmissionState, OperationKind } from './admission-states.js'
import { digest, type Infer, identifier, object } from './codec.js'
import { ProviderAttempt } from './dispatch-commit.js'
import type { ErrorCode } from './error-codes.js'
import { BrokerError } from './errors.js'
import { ThresholdProposal } from './threshold-proposal.js'

export const AdmissionAttachments = object(
  {},
  {
    optional: {
      approval_set_hash: digest(),
      broker_attempt: ProviderAttempt,
      budget_hold_id: identifier(),
      caller_dispatch_context_digest: digest(),
      channel_reservation_digest: digest(),
      channel_reservation_id: identifier(),
      dpop_replay_ledger_digest: digest(),
      execution_nonce_id: identifier(),
      governed_approval_ledger_digest: digest(),
      native_dispatch_ledger_digest: digest(),
      nonce_issuance_digest: digest(),
      nonce_preflight_digest: digest(),
      outcome_eligibility_digest: digest(),
      payment_participant_id: identifier(),
      runtime_participant_ledger_digest: digest(),
      threshold_proposal: ThresholdProposal,
      threshold_proposal_hash: digest(),
      tool_outcome_id: identifier(),
    },
  },
)
export type AdmissionAttachments = Infer<typeof AdmissionAttachments>
export type AttachmentName = keyof AdmissionAttachments

type Condition = keyof ParticipantRequirements | OperationKind

export interface AttachmentRule {
  /** Every one must hold; a name of a kind excludes the other kinds. */
  readonly supported: readonly Condition[]
  readonly addedIn: readonly AdmissionState[]
  /** Null: anywhere. */
  readonly standsIn: readonly AdmissionState[] | null
  /** Where it may not be missing, once it is supported. */
  readonly neededIn: readonly AdmissionState[]
}

const AFTER_COMMIT_ENDS: readonly AdmissionState[] = [
  'completed',
  'not_accepted_after_dispatch_commit',
  'outcome_unknown_after_dispatch',
  'denied_after_delivery',
]
const COMMITTED: readonly AdmissionState[] = ['dispatch_committed', 'finalizing', ...AFTER_COMMIT_ENDS]
/** Milestones reached with a dispatch. What was given back and what was denied are not looked at again. */
const FROM_READY: readonly AdmissionState[] = [
  'ready_to_dispatch',
  'capture_pending',
  'dispatch_committed',
  'awaiting_caller_report',
  'finalizing',
  'completed',
  'not_accepted_after_dispatch_commit',
  'outcome_unknown_after_dispatch',
]
const FROM_APPROVED: readonly AdmissionState[] = ['approval_reserved', ...FROM_READY]
const FROM_AUTHORIZED: readonly AdmissionState[] = ['budget_authorized', ...FROM_APPROVED]
const FROM_REGISTERED: readonly AdmissionState[] = [
  'broker_attempt_registered',
  'approval_required',
  ...FROM_AUTHORIZED,
]
const EARLY: readonly AdmissionState[] = [
  'prepared',
  'broker_attempt_registered',
  'approval_required',
  'budget_authorized',
  'approval_reserved',
]
const FIRST_TWO: readonly AdmissionState[] = ['prepared', 'broker_attempt_registered']
const FIRST_THREE: readonly AdmissionState[] = [...FIRST_TWO, 'approval_required']

const rule = (
  supported: readonly Condition[],
  addedIn: readonly AdmissionState[],
  more: Partial<Pick<AttachmentRule, 'neededIn' | 'standsIn'>> = {},
): AttachmentRule => ({ supported, addedIn, standsIn: null, neededIn: [], ...more })
const ledger = rule(['tool_dispatch'], FIRST_TWO)
const channel = rule(['channel'], ['budget_authorized', 'approval_reserved'], {
  neededIn: FROM_READY,
  standsIn: [
    ...FROM_AUTHORIZED,
    ...AFTER_COMMIT_ENDS.filter(state => state !== 'denied_after_delivery'),
    'compensated_before_dispatch',
  ],
})

/** In the order in which what is missing is named. A new attachment does not compile before it has its rule. */
export const ATTACHMENT_RULES: Readonly<Record<AttachmentName, AttachmentRule>> = {
  broker_attempt: rule(['broker_attempt'], ['prepared'], { neededIn: FROM_REGISTERED }),
  budget_hold_id: rule(['budget_capture'], FIRST_THREE, { neededIn: FROM_AUTHORIZED }),
  threshold_proposal_hash: rule(['approval'], FIRST_TWO),
  approval_set_hash: rule(['approval'], ['prepared', 'approval_required', 'budget_authorized']),
  execution_nonce_id: rule(['execution_nonce'], EARLY, { neededIn: FROM_READY }),
  outcome_eligibility_digest: rule(['outcome_eligibility'], EARLY, { neededIn: FROM_READY }),
  payment_participant_id: rule(['payment'], EARLY, { neededIn: FROM_READY }),
  channel_reservation_id: channel,
  channel_reservation_digest: channel,
  threshold_proposal: rule(['approval'], FIRST_TWO),
  nonce_issuance_digest: rule(['execution_nonce'], ['prepared']),
  nonce_preflight_digest: rule(['execution_nonce'], ['prepared']),
  caller_dispatch_context_digest: rule(
    ['tool_dispatch', 'execution_nonce', 'budget_capture', 'broker_attempt'],
    ['capture_pending'],
    { standsIn: [...COMMITTED, 'awaiting_caller_report'] },
  ),
  native_dispatch_ledger_digest: rule(
    ['tool_dispatch', 'budget_capture', 'broker_attempt'],
    ['capture_pending'],
    { standsIn: [...COMMITTED, 'awaiting_caller_report'] },
  ),
  runtime_participant_ledger_digest: ledger,
  governed_approval_ledger_digest: ledger,
  dpop_replay_ledger_digest: ledger,
  tool_outcome_id: rule(['tool_dispatch'], ['dispatch_committed', 'awaiting_caller_report', 'finalizing'], {
    standsIn: COMMITTED.filter(state => state !== 'not_accepted_after_dispatch_commit'),
    neededIn: ['finalizing', 'completed'],
  }),
}
export const ATTACHMENT_NAMES = Object.keys(ATTACHMENT_RULES) as readonly AttachmentName[]

const IN_ORDER: readonly AttachmentName[] = [
  'tool_outcome_id',
  ...ATTACHMENT_NAMES.filter(name => name !== 'tool_outcome_id'),
]

/** What of an operation its attachments are judged by. */
export interface AttachmentHolder {
  readonly kind: OperationKind
  readonly requirements: ParticipantRequirements
  readonly state: AdmissionState
}

export function isSupported(name: AttachmentName, { kind, requirements }: AttachmentHolder): boolean {
  const held = requirements as Readonly<Record<string, boolean | undefined>>
  return ATTACHMENT_RULES[name].supported.every(condition => condition === kind || held[condition] === true)
}

/**
 * What is added here, before the move that it belongs to.
 * @throws BrokerError `attachment_forbidden` for what this operation does not support, in this state or at all.
 */
export function assertAddable(names: readonly AttachmentName[], holder: AttachmentHolder): void {
  for (const name of names) {
    if (isSupported(name, holder) && ATTACHMENT_RULES[name].addedIn.includes(holder.state)) continue
    refuse('attachment_forbidden', name, `one that may be added in ${holder.state}, got one that may not`)
  }
}

/**
 * What an operation in this state has: nothing misplaced, then nothing missing, in the order of the wire.
 * @throws BrokerError `attachment_forbidden`, then `attachment_missing`.
 */
export function assertAttachments(attachments: AdmissionAttachments, holder: AttachmentHolder): void {
  const has = (name: AttachmentName): boolean => attachments[name] !== undefined
  for (const name of ATTACHMENT_NAMES.filter(has)) {
    const { standsIn } = ATTACHMENT_RULES[name]
    if (isSupported(name, holder) && standsIn?.includes(holder.state) !== false) continue
    refuse('attachment_forbidden', name, `none in ${holder.state}, got one`)
  }
  const missing = neededNames(attachments, holder).find(name => !has(name))
  if (missing !== undefined) refuse('attachment_missing', missing, `one in ${holder.state}, got none`)
}

/** The outcome first, then the list of milestones, then what a wait for approvals shows. */
function neededNames(attachments: AdmissionAttachments, holder: AttachmentHolder): AttachmentName[] {
  const { state } = holder
  const needed = IN_ORDER.filter(
    name =>
      (ATTACHMENT_RULES[name].neededIn.includes(state) || isApprovalNeeded(name, attachments, holder)) &&
      isSupported(name, holder),
  )
  const shown: AttachmentName[] = ['threshold_proposal_hash', 'budget_hold_id', 'threshold_proposal']
  return state === 'approval_required' ? [...needed, ...shown] : needed
}

/** An active response always rests on approvals; a tool call does once a proposal was made for it. */
function isApprovalNeeded(
  name: AttachmentName,
  attachments: AdmissionAttachments,
  { kind, state }: AttachmentHolder,
): boolean {
  if (name !== 'threshold_proposal_hash' && name !== 'approval_set_hash') return false
  if (!FROM_APPROVED.includes(state)) return false
  return kind === 'governed_active_response' || attachments.threshold_proposal_hash !== undefined
}

function refuse(code: ErrorCode, name: AttachmentName, expected: string): never {
  throw new BrokerError(code, `attachment ${name} refused: expected ${expected}`, { outcome: 'not_started' })
}
