// Owns: the two steps of a dispatch commit, with the nonce's two transitions beside them.
// Must never: be taken without a nonce that the store itself returned as reserved.
// Source: the dispatch commit; the history of an operation-owned nonce (capture_pending, committed).
import { dispatchCommitOf } from './dispatch-commit.js'
import type { AdmissionOperation, DispatchCommit } from './operation.js'
import { commitRecord, operationBytes } from './operation-document.js'
import { stepsTo, walk } from './operation-walk.js'
import type { SqliteMove } from '../sqlite/move.js'
import type { ReservedNonce } from '../sqlite/nonce-tables.js'

/** Commits the dispatch of an operation that is ready, and ends its nonce's reservation with it. */
export function dispatch(
  move: SqliteMove,
  operation: AdmissionOperation,
  { reserved, storeId }: { readonly reserved: ReservedNonce; readonly storeId: string },
): AdmissionOperation {
  const { head, nowUnixMs, owner } = move
  const commit: DispatchCommit = dispatchCommitOf(operation, { ...head, ...owner, nowUnixMs, storeId })
  const cause = { cause: 'started' }
  const pending = walk(move, operation, stepsTo('capture_pending'), cause)
  const committed = walk(move, pending, [{ to: 'dispatch_committed', commit }], cause)
  move.nonces.commit(
    reserved,
    { version: pending.version, bytes: operationBytes(pending) },
    { version: committed.version, bytes: operationBytes(committed), commit: commitRecord(commit) },
  )
  return committed
}
