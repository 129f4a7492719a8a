// Owns: what an administrator changes of authority in one commit: a grant given, a grant or a capability token ended.
// Must never: be reached without approvals that the same commit consumes.
// Source: grants and revocations of the kernel; revocations know no return.
import { BrokerError } from '../protocol/errors.js'
import type { Grant } from '../protocol/grant.js'
import { grantRevocationId } from '../protocol/hold.js'
import type { AdminOutcome } from './admission-store.js'
import type { SqliteMove } from './sqlite/move.js'

/** @throws BrokerError `conflict` for a known id. */
export function issueGrant(move: SqliteMove, grant: Grant): AdminOutcome {
  const { grantId } = grant
  if (move.grants.find(grantId) !== undefined) {
    throw new BrokerError('conflict', `grant ${grantId} refused: expected a new id, got a known one`)
  }
  move.grants.insert(grant)
  return { commitIndex: move.head.commitIndex, grantId, newlyRevoked: false }
}

/** @throws BrokerError `grant_unknown`. */
export function revokeGrant(move: SqliteMove, grantId: string): AdminOutcome {
  if (move.grants.find(grantId) === undefined) {
    throw new BrokerError('grant_unknown', 'revocation refused: expected a grant of this kernel, got none')
  }
  const newlyRevoked = move.grants.revoke(grantId, [grantId, grantRevocationId(grantId)])
  return { commitIndex: move.head.commitIndex, grantId, newlyRevoked }
}

/** A token need not have been seen. @throws BrokerError `conflict` for the id of a grant. */
export function revokeCapability(move: SqliteMove, capabilityId: string): AdminOutcome {
  if (move.grants.find(capabilityId) !== undefined) {
    throw new BrokerError(
      'conflict',
      'revocation refused: expected the id of a capability token, got that of a grant; revoke it as one',
    )
  }
  const newlyRevoked = move.grants.revokeId(capabilityId)
  return { commitIndex: move.head.commitIndex, grantId: capabilityId, newlyRevoked }
}
