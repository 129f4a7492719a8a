// Owns the error that carries a reason of the refusal table: the peer learns its code, the operator the sentence.
// Must never: hold a byte that a peer sent.
import { BrokerError, isBrokerError } from '../protocol/errors.js'
import { REFUSALS, type RefusalReason } from './refusals.js'

export class Refused extends BrokerError {
  readonly reason: RefusalReason

  /** @param got what came instead, in our own words: a name, a length, a code. */
  constructor(reason: RefusalReason, got?: string, cause?: unknown) {
    const { check, expected, code } = REFUSALS[reason]
    // What the disk refused, and what to do about it, stands in the sentence of the store alone.
    const what = isBrokerError(cause) && cause.code === 'storage' ? cause.message : got
    const sentence = `${check} refused: expected ${expected}${what === undefined ? '' : `, got ${what}`}`
    super(code, sentence, { outcome: 'not_started', cause })
    this.reason = reason
  }
}

/** Runs a check of protocol/ and gives its refusal the reason under which it is recorded. */
export function refusing<T>(reason: RefusalReason, check: () => T): T {
  try {
    return check()
  } catch (cause) {
    if (cause instanceof Refused || !(cause instanceof BrokerError)) throw cause
    throw new Refused(reason, cause.message, cause)
  }
}
