// Owns what the authority's answers must say before anything is done with them. Pure.
// Must never: take an answer that is older than the operator allows, or from the future beyond the skew.
// Source: the broker protocol, sections 8.2, 8.4 and 17.
import type { AuthorityAnswer, LiveParent } from '../protocol/authority-rpc.js'
import type { BrokerCapabilityBody } from '../protocol/capability.js'
import { type CapturedHold, revocationAuthorityDomain, revocationSet } from '../protocol/hold.js'
import type { BrokerdConfig } from './config.js'
import { Refused } from './refused.js'

/** @returns the parent that lives. @throws Refused `parent_not_live` or `authority_unreachable`. */
export function judgeLiveParent(
  answer: AuthorityAnswer,
  capability: BrokerCapabilityBody,
  config: BrokerdConfig,
  nowUnixSeconds: number,
): LiveParent {
  if (answer.kind !== 'live_parent') throw rejection(answer, 'parent_not_live')
  const parent = answer.response
  if (parent.capabilityId !== capability.parentCapabilityId) refuseParent('another capability')
  if (parent.subject !== capability.subject) refuseParent('another subject')
  if (parent.audience !== capability.audience) refuseParent('another audience')
  if (nowUnixSeconds >= parent.expiresAtUnixSeconds) refuseParent('an expired one')
  const ageSeconds = nowUnixSeconds - parent.verifiedAtUnixSeconds
  if (ageSeconds > config.livenessAgeSeconds) refuseParent(`one verified ${ageSeconds} s ago`)
  if (ageSeconds < -config.clockSkewSeconds) refuseParent('one verified in the future')
  return parent
}

function refuseParent(got: string): never {
  throw new Refused('parent_not_live', got)
}

/** @throws Refused `revoked_by_authority`, or `authority_unreachable` for an answer that says nothing current. */
export function judgeRevocation(
  answer: AuthorityAnswer,
  config: BrokerdConfig,
  nowUnixSeconds: number,
): void {
  if (answer.kind !== 'revocation') throw rejection(answer, 'authority_unreachable')
  const snapshot = answer.response
  if (snapshot.authorityDomain !== revocationAuthorityDomain(config.authority.publicKey)) {
    throw new Refused('authority_unreachable', 'a snapshot of another revocation domain')
  }
  const ageSeconds = nowUnixSeconds - snapshot.observedAtUnixSeconds
  if (ageSeconds > config.revocationAgeSeconds || ageSeconds < -config.clockSkewSeconds) {
    throw new Refused('authority_unreachable', `a snapshot of ${ageSeconds} s ago`)
  }
  if (snapshot.revoked)
    throw new Refused('revoked_by_authority', `a revocation at index ${snapshot.commitIndex}`)
}

/** @throws Refused `hold_not_captured`, `revocation_set_changed` or `authority_unreachable`. */
export function judgeHold(answer: AuthorityAnswer, revocationSetDigest: string): CapturedHold {
  if (answer.kind !== 'hold') throw rejection(answer, 'hold_not_captured')
  const state = answer.response
  if (typeof state === 'string') throw new Refused('hold_not_captured', state)
  if (state.captured.checkedRevocationSetDigest !== revocationSetDigest) {
    throw new Refused('revocation_set_changed', 'a capture against another set')
  }
  return state.captured
}

/** Everything whose revocation ends an execution of this capability. */
export function revocationIdsOf(capability: BrokerCapabilityBody, ancestorIds: readonly string[]): string[] {
  return revocationSet([
    capability.parentCapabilityId,
    ...ancestorIds,
    capability.capabilityId,
    capability.revocationId,
  ])
}

type Rejection = 'parent_not_live' | 'authority_unreachable' | 'hold_not_captured'

/** A rejection by the authority is its word on the question; another kind of answer is no answer. */
function rejection(answer: AuthorityAnswer, reason: Rejection): Refused {
  if (answer.kind !== 'rejected') return new Refused('authority_unreachable', 'an answer of another kind')
  const unavailable = answer.response.code === 'authority_unavailable'
  return new Refused(unavailable ? 'authority_unreachable' : reason, 'a rejection')
}
