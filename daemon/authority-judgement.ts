// Owns what the authority's answers must say before anything is done with them. Pure.
// Must never: take an answer that is older than the operator allows, or from the future beyond the skew.
// Source: the broker protocol, sections 8.2, 8.4 and 17.
import type { LiveParent, RevocationSnapshot } from '../protocol/authority-rpc.js'
import type { BrokerCapabilityBody } from '../protocol/capability.js'
import {
  type CapturedHold,
  type HoldState,
  revocationAuthorityDomain,
  revocationSet,
} from '../protocol/hold.js'
import type { BrokerdConfig } from './config.js'
import { Refused } from './refused.js'

/** @throws Refused `parent_not_live`. */
export function judgeLiveParent(
  parent: LiveParent,
  capability: BrokerCapabilityBody,
  config: BrokerdConfig,
  nowUnixSeconds: number,
): void {
  if (parent.capabilityId !== capability.parentCapabilityId) refuseParent('another capability')
  if (parent.subject !== capability.subject) refuseParent('another subject')
  if (parent.audience !== capability.audience) refuseParent('another audience')
  if (nowUnixSeconds >= parent.expiresAtUnixSeconds) refuseParent('an expired one')
  const ageSeconds = nowUnixSeconds - parent.verifiedAtUnixSeconds
  if (ageSeconds > config.livenessAgeSeconds) refuseParent(`one verified ${ageSeconds} s ago`)
  if (ageSeconds < -config.clockSkewSeconds) refuseParent('one verified in the future')
}

function refuseParent(got: string): never {
  throw new Refused('parent_not_live', got)
}

/** @throws Refused `revoked_by_authority`, or `authority_unreachable` for an answer that says nothing current. */
export function judgeRevocation(
  snapshot: RevocationSnapshot,
  config: BrokerdConfig,
  nowUnixSeconds: number,
): void {
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

/** @throws Refused `hold_not_captured` or `revocation_set_changed`. */
export function judgeHold(state: HoldState, revocationSetDigest: string): CapturedHold {
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
