// Owns: the two steps of a dispatch commit, with the nonce's two transitions beside them.
// Must never: be taken without a nonce that the store itself returned as reserved.
// Source: the dispatch commit; the history of an operation-owned nonce (capture_pending, committed).
import type { AdmissionAttachments } from '../../protocol/admission-attachments.js'
import type { GuardEvidence } from '../../protocol/kernel-receipt.js'
import { dispatchCommitOf, revocationIdsOf } from './dispatch-commit.js'
import type { AdmissionOperation, DispatchCommit } from './operation.js'
import { commitRecord, operationBytes } from './operation-document.js'
import { stepsTo, walk } from './operation-walk.js'
import type { SqliteMove } from '../sqlite/move.js'
import type { ReservedNonce } from '../sqlite/nonce-tables.js'

export interface Dispatch {
  readonly reserved: ReservedNonce
  readonly storeId: string
  /** What is attached with the commit, made of the operation as its capture is pending. */
  readonly attach?: (pending: AdmissionOperation) => AdmissionAttachments
  readonly evidence?: readonly GuardEvidence[]
  /** Everything whose revocation was asked for; of a brokered operation unless said. */
  readonly revocationIds?: readonly string[]
}

/** Commits the dispatch of an operation that is ready, and ends its nonce's reservation with it. */
export function dispatch(
  move: SqliteMove,
  operation: AdmissionOperation,
  { attach, evidence, reserved, revocationIds = revocationIdsOf(operation), storeId }: Dispatch,
): AdmissionOperation {
  const { head, nowUnixMs, owner } = move
  const moment = { ...head, ...owner, nowUnixMs, storeId }
  const commit: DispatchCommit = dispatchCommitOf(operation, revocationIds, moment)
  const cause = { cause: 'started', evidence }
  const pending = walk(move, operation, stepsTo('capture_pending'), cause)
  const step = { attach: attach?.(pending) ?? {}, commit, to: 'dispatch_committed' } as const
  const committed = walk(move, pending, [step], cause)
  move.nonces.commit(
    reserved,
    { version: pending.version, bytes: operationBytes(pending) },
    { version: committed.version, bytes: operationBytes(committed), commit: commitRecord(commit) },
  )
  return committed
}
