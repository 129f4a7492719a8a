// Owns: whether a grant and a capability live at one moment of the wall clock.
// Must never: read a clock. The moment is the one of the commit that rests on the answer.
// Source: the grants of this kernel; the broker capability's expiry.
import type { BrokerCapabilityBody } from '../protocol/capability.js'
import type { ErrorCode } from '../protocol/error-codes.js'
import { BrokerError } from '../protocol/errors.js'
import type { StoredGrant } from './operation/operation.js'

/** @throws BrokerError `grant_unknown`, `grant_revoked` or `grant_expired`. */
export function assertGrantLive(
  stored: StoredGrant | undefined,
  nowUnixSeconds: number,
): asserts stored is StoredGrant {
  if (stored === undefined)
    refuse('grant_unknown', 'grant refused: expected one that this kernel holds, got none')
  const { grantId, expiresAtUnixSeconds } = stored.grant
  if (stored.revoked)
    refuse('grant_revoked', `grant ${grantId} refused: expected one that is not revoked, got a revoked one`)
  if (nowUnixSeconds >= expiresAtUnixSeconds) {
    refuse('grant_expired', `grant ${grantId} refused: expected one that lives, got one that has expired`)
  }
}

/** @throws BrokerError `operation_state` once the minted capability is of no more use. */
export function assertCapabilityLive(body: BrokerCapabilityBody, nowUnixSeconds: number): void {
  if (nowUnixSeconds < body.expiresAtUnixSeconds) return
  refuse(
    'operation_state',
    'start refused: expected a broker capability that lives, got one that has expired; cancel and reserve anew',
  )
}

function refuse(code: ErrorCode, sentence: string): never {
  throw new BrokerError(code, sentence, { outcome: 'not_started' })
}
