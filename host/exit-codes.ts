// Owns the exit code of an ending: what a shell is told of a run. Nobody may take an unknown outcome for a failure
// and try again.
// Must never: give 1 where the provider may have acted.
import { ERROR_CODES } from '../protocol/error-codes.js'
import type { BrokerError } from '../protocol/errors.js'
import type { ExecutionFailureReceiptBody } from '../protocol/failure.js'

/** Of an error: 75 wherever the provider may have acted or has, whatever it was that failed then. */
export function exitCodeOfError({ code, outcome }: BrokerError): number {
  return outcome === 'not_started' ? ERROR_CODES[code].exitCode : ERROR_CODES.outcome_undetermined.exitCode
}

/** Of a verified failure: 75 wherever the provider may have acted. */
export function exitCodeOfFailure(body: ExecutionFailureReceiptBody): number {
  return body.dispatchKnowledge === 'unknown' || isAnswerRefused(body)
    ? ERROR_CODES.outcome_undetermined.exitCode
    : 1
}

/** The provider answered, and its answer was refused or not kept. */
export function isAnswerRefused({ dispatchKnowledge, stage }: ExecutionFailureReceiptBody): boolean {
  return dispatchKnowledge === 'committed' && (stage === 'response' || stage === 'receipt_persistence')
}
