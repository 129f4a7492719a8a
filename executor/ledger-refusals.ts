// Owns the sentences with which a ledger refuses. Must never hold an output, a note, or anything else of a callback.
// Source: the errors of the caller execution ledger: authentication, storage, outcome unknown, capacity.
import { type Codec, decode } from '../protocol/codec.js'
import { BrokerError, isBrokerError } from '../protocol/errors.js'

/** What a claim did is not known here. It is kept for ever, and nobody is invited to call again. */
export function outcomeUnknown(
  claim: { readonly claimId: string; readonly operationId: string },
  cause?: unknown,
): BrokerError {
  const { claimId, operationId } = claim
  return new BrokerError(
    'executor_outcome_unknown',
    `execution refused: expected a retained report of operation ${operationId}, got claim ${claimId} and none that is confirmed; it may have acted and is never called again`,
    { cause, operationId, outcome: 'unknown' },
  )
}

/** The content of a ledger is not the one that was written: nothing rests on it any more. */
export function notAsWritten(expected: string, got: string, cause?: unknown): BrokerError {
  return new BrokerError(
    'store_replaced',
    `executor ledger refused: expected ${expected}, got ${got}; restore the newest state, and provision nothing in its place`,
    { cause, outcome: 'not_started' },
  )
}

export function capacityReached(capacity: number, operationId: string): BrokerError {
  return new BrokerError(
    'executor_capacity',
    `claim refused: expected room for one more operation, got ${capacity} of ${capacity} claimed; extend the ledger by a segment`,
    { operationId, outcome: 'not_started' },
  )
}

export function otherExecutor(expected: string): BrokerError {
  return new BrokerError('executor_mismatch', `executor refused: expected ${expected}, got another`, {
    outcome: 'not_started',
  })
}

/** Reads what the ledger itself wrote. @throws BrokerError `store_replaced` for anything else. */
export function decodeKept<T>(codec: Codec<T>, bytes: Uint8Array, what: string): T {
  try {
    return decode(codec, bytes, what)
  } catch (cause) {
    if (isBrokerError(cause)) throw notAsWritten(`its ${what} as it was written`, 'other bytes', cause)
    throw cause
  }
}
