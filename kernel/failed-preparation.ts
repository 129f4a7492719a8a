// Owns: what the kernel keeps of a preparation that failed: the word of its host, once, with the operation.
// Must never: take it for a record of the broker, or take the operation back by it: its hold comes back by the broker's
// signed failure, by the release, or when the nonce expires.
// Source: `tool_server_error` of a failed preparation.
import { BrokerError } from '../protocol/errors.js'
import type { FailedPreparation } from '../protocol/failed-preparation.js'
import * as rules from './operation/move-rules.js'
import type { AdmissionOperation } from './operation/operation.js'
import { note } from './operation/operation-walk.js'
import type { SqliteMove } from './sqlite/move.js'

/**
 * @returns the operation with the failure noted; the same word again changes nothing.
 * @throws BrokerError `operation_state` once it was started or has ended, or before anything could be prepared;
 * `conflict` for another word.
 */
export function noteFailedPreparation(
  move: SqliteMove,
  { error: { code, detail }, operationId }: FailedPreparation,
): AdmissionOperation {
  const operation = rules.assertFound(move.operations.find(operationId))
  rules.assertStartable(operation)
  const lastError = `preparation failed: ${code}: ${detail}`
  if (operation.lastError === lastError) return operation
  if (operation.lastError === null) return note(move, operation, { cause: lastError, lastError })
  throw new BrokerError(
    'conflict',
    `failed preparation of ${operationId} refused: expected the word that was noted first, got another; the operation is unchanged`,
    { operationId },
  )
}
