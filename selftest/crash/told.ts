// Owns what a host is told at the end of a run: the exit code and the outcome, as `chio run` tells them, and whether
// that is true of what is on record.
// Must never: accept a certainty that the records do not bear out.
import type { BrokeredRun } from '../../host/brokered-run.js'
import { exitCodeOfError, exitCodeOfFailure } from '../../host/exit-codes.js'
import { isBrokerError } from '../../protocol/errors.js'
import type { RequestLedger } from './records.js'

/** `response`: it has the provider's answer; the others are what it knows of the dispatch. */
export type ToldOutcome = 'completed' | 'fault' | 'not_started' | 'response' | 'unknown'

export interface Told {
  readonly exitCode: number
  readonly outcome: ToldOutcome
  /** Code of the error or of the failure; null with a response. */
  readonly code: string | null
  readonly sentence: string
}

/** What a run that came to its end says. */
export function toldByRun({ outcome }: Pick<BrokeredRun, 'outcome'>): Told {
  if (outcome.kind === 'response') {
    return { exitCode: 0, outcome: 'response', code: null, sentence: `HTTP ${outcome.response.status}` }
  }
  const { body } = outcome.failure.receipt
  const { diagnosticCode: code, dispatchKnowledge } = body
  return {
    exitCode: exitCodeOfFailure(body),
    outcome: knownOf(dispatchKnowledge),
    code,
    sentence: `verified failure, dispatch ${dispatchKnowledge}`,
  }
}

function knownOf(dispatchKnowledge: string): ToldOutcome {
  if (dispatchKnowledge === 'unknown') return 'unknown'
  return dispatchKnowledge === 'committed' ? 'completed' : 'not_started'
}

/** What a run that failed says. Anything but an error of ours is a fault. */
export function toldByError(error: unknown): Told {
  if (!isBrokerError(error)) {
    const sentence = error instanceof Error ? (error.stack ?? error.message) : String(error)
    return { exitCode: 1, outcome: 'fault', code: null, sentence }
  }
  const { code, message: sentence, outcome } = error
  return { exitCode: exitCodeOfError(error), outcome, code, sentence }
}

/** @returns why it is not true, once everything is settled; nothing when it is. */
export function untruthsOf(told: Told, { hits, entries }: RequestLedger): string[] {
  const committed = entries.filter(({ attempt }) => attempt.isCommitted)
  const has = (state: string): boolean => committed.some(({ attempt }) => attempt.state === state)
  const lies: Record<ToldOutcome, readonly [isLie: boolean, sentence: string]> = {
    response: [!has('completed'), 'the host has a response, the broker none on record'],
    completed: [committed.length === 0, 'the host was told of a dispatch, the broker has none on record'],
    not_started: [committed.length > 0 || hits > 0, 'the host was told that nothing started, and it did'],
    unknown: [false, ''],
    fault: [true, `the host failed without an error of its own: ${told.sentence}`],
  }
  const [isLie, sentence] = lies[told.outcome]
  const isUndue = told.exitCode === 1 && has('unknown_outcome')
  return [...(isLie ? [sentence] : []), ...(isUndue ? ['exit 1 although the outcome is unknown'] : [])]
}
