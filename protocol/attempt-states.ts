// The broker's attempt states and the moves between them, as data. The store refuses every move that
// this table does not permit, even when the code above it is wrong.
export const ATTEMPT_STATES = [
  'captured',
  'completed',
  'dispatch_committed',
  'failed',
  'held',
  'prepared',
  'registered',
  'reversed',
  'unknown_outcome',
] as const
export type AttemptState = (typeof ATTEMPT_STATES)[number]

/** From each state, the states it may move to. A state may always stay what it is. */
export const ATTEMPT_MOVES: Record<AttemptState, readonly AttemptState[]> = {
  registered: ['prepared', 'failed'],
  prepared: ['held', 'captured', 'reversed', 'failed', 'unknown_outcome'],
  held: ['captured', 'reversed', 'failed', 'unknown_outcome'],
  captured: ['dispatch_committed', 'unknown_outcome', 'failed'],
  dispatch_committed: ['completed', 'failed', 'unknown_outcome'],
  unknown_outcome: ['reversed', 'completed', 'failed'],
  reversed: [],
  completed: [],
  failed: [],
}

/** Whether an attempt may move along one edge (or stay). */
export function mayMoveAttempt(from: AttemptState, to: AttemptState): boolean {
  return from === to || ATTEMPT_MOVES[from].includes(to)
}

/** Whether nothing can leave the state any more. */
export function isTerminalAttempt(state: AttemptState): boolean {
  return ATTEMPT_MOVES[state].length === 0
}
