// Owns what a row of the crash table is: who ends at which named moment, in which story, and what is known of the
// operation then. The rows themselves are data beside it.
// Must never: permit a state that says more, or less, than what was on disk at that moment.

export type Who = 'broker' | 'kernel' | 'host' | 'cage-init' | 'tool'

/**
 * Which story leads to the moment. `run`: one brokered run. `unanswered`: one whose provider stays silent past the
 * deadline. `release`: one that finds the slot held, and gives its attempt back. `cancel`: a reservation taken back.
 * `registered`, `recorded`, `unregistered`: a host that died earlier left the operation, and the kernel settles it.
 * `recovery`: the process dies once more while its successor starts. `issue`, `provision`: an administrator's.
 * `announce`, `approve`: a request that has to wait for its approver, and the approver's word.
 * `state`, `correct`: a statement of what a provider did, and a clock that is accepted.
 * `call`: an agent's tool call, or the end of its token.
 * `look`: a question that changes nothing.
 */
export type Story =
  | 'run'
  | 'unanswered'
  | 'release'
  | 'cancel'
  | 'registered'
  | 'recorded'
  | 'unregistered'
  | 'recovery'
  | 'issue'
  | 'revoke'
  | 'provision'
  | 'announce'
  | 'approve'
  | 'state'
  | 'correct'
  | 'call'
  | 'look'

/** How far the operation is on disk when the process ends there: it decides everything that may be found later. */
export type Phase =
  | 'unreserved'
  | 'reserved'
  | 'registered'
  | 'starting'
  | 'started'
  | 'sent'
  | 'sending'
  | 'answered'
  | 'unchanged'
  | 'changed'

export interface CutpointRow {
  readonly name: string
  readonly who: Who
  readonly story: Story
  readonly phase: Phase
  /** Before or after what. */
  readonly what: string
}

/** What must be found in the end. */
export interface PhaseFacts {
  readonly meaning: string
  readonly hits: readonly number[]
  readonly attempts: readonly string[]
  readonly operations: readonly string[]
  readonly told: readonly string[]
}

const NOTHING_SENT = ['not_started', 'unknown', 'died']

export const PHASES: Record<Phase, PhaseFacts> = {
  unreserved: {
    meaning: 'nothing is reserved',
    hits: [0],
    attempts: ['none'],
    operations: ['none'],
    told: NOTHING_SENT,
  },
  reserved: {
    meaning: 'reserved, unknown to the broker: given back',
    hits: [0],
    attempts: ['none'],
    operations: ['compensated_before_dispatch'],
    told: NOTHING_SENT,
  },
  registered: {
    meaning: 'registered or prepared, not started: failed for certain, given back',
    hits: [0],
    attempts: ['failed'],
    operations: ['compensated_before_dispatch'],
    told: NOTHING_SENT,
  },
  starting: {
    meaning:
      'the moment races the start: given back where the host saw the end of its stream, spent where it did not',
    hits: [0],
    attempts: ['failed'],
    operations: ['compensated_before_dispatch', 'not_accepted_after_dispatch_commit'],
    told: NOTHING_SENT,
  },
  started: {
    meaning: 'started, not dispatched: failed for certain, the execution stays spent',
    hits: [0],
    attempts: ['failed', 'none'],
    operations: ['not_accepted_after_dispatch_commit'],
    told: NOTHING_SENT,
  },
  sent: {
    meaning: 'dispatched without a record of the end: unknown for good',
    hits: [0, 1],
    attempts: ['unknown_outcome'],
    operations: ['outcome_unknown_after_dispatch'],
    told: ['unknown', 'died'],
  },
  sending: {
    meaning: 'the moment races the dispatch: sent once or not at all, and the records say which',
    hits: [0, 1],
    attempts: ['failed', 'unknown_outcome', 'completed'],
    operations: ['not_accepted_after_dispatch_commit', 'outcome_unknown_after_dispatch', 'completed'],
    told: ['not_started', 'unknown', 'response', 'completed', 'died'],
  },
  answered: {
    meaning: 'the end is recorded: one hit, the response is kept',
    hits: [1],
    attempts: ['completed'],
    operations: ['completed'],
    told: ['response', 'unknown', 'completed', 'died'],
  },
  unchanged: {
    meaning: 'what the administrator asked is not done, and can be asked again',
    hits: [0],
    attempts: ['-'],
    operations: ['nothing changed'],
    told: ['unknown', 'not_started', 'completed'],
  },
  changed: {
    meaning: 'what the administrator asked is done, once',
    hits: [0],
    attempts: ['-'],
    operations: ['changed once'],
    told: ['unknown', 'not_started', 'completed'],
  },
}
