// Owns: whether a grant, an execution nonce and a capability live at one moment of the wall clock.
// Must never: read a clock. The moment is the one of the commit that rests on the answer.
// Source: the execution nonce's checks (issued_at ≤ now < expires_at) and their codes.
import type { BrokerCapabilityBody } from '../protocol/capability.js'
import type { ErrorCode } from '../protocol/error-codes.js'
import { BrokerError } from '../protocol/errors.js'
import type { ExecutionNonce } from '../protocol/execution-nonce.js'
import type { StoredGrant } from './operation.js'

/** @throws BrokerError `grant_unknown`, `grant_revoked` or `grant_expired`. */
export function assertGrantLive(
  stored: StoredGrant | undefined,
  nowUnixSeconds: number,
): asserts stored is StoredGrant {
  if (stored === undefined) refuse('grant_unknown', 'grant refused: expected one that this kernel holds')
  const { grantId, expiresAtUnixSeconds } = stored.grant
  if (stored.revoked) refuse('grant_revoked', `grant ${grantId} refused: expected one that is not revoked`)
  if (nowUnixSeconds >= expiresAtUnixSeconds) {
    refuse('grant_expired', `grant ${grantId} refused: expected one that lives, got one that has expired`)
  }
}

/** @throws BrokerError `execution_nonce_not_yet_valid` or `execution_nonce_expired`. */
export function assertNonceLive(nonce: ExecutionNonce, nowUnixSeconds: number): void {
  if (nowUnixSeconds < nonce.issued_at) {
    refuse('execution_nonce_not_yet_valid', nonceSentence('not-yet-valid', 'a nonce that was issued already'))
  }
  if (nowUnixSeconds >= nonce.expires_at) refuseExpiredNonce()
}

export function refuseExpiredNonce(): never {
  refuse('execution_nonce_expired', nonceSentence('expired', 'a nonce that has not expired; reserve anew'))
}

/** The kernel's own word for a nonce that was refused, after its published name. */
export function nonceSentence(name: string, expected: string): string {
  return `urn:chio:error:kernel:execution-nonce-${name}: execution nonce refused: expected ${expected}`
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
