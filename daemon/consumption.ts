// Owns the three questions that are asked again, in one frame, once the exact frame is here: does the parent live,
// is anything revoked, and was this very hold captured.
// Must never: capture anything. The kernel captures; the broker only asks.
// Source: the broker protocol, sections 8.4 (10 to 16) and 17.
import type { LiveParent } from '../protocol/authority-rpc.js'
import { unixSeconds } from '../protocol/clock.js'
import { type CapturedHold, revocationSetDigest } from '../protocol/hold.js'
import { judgeHold, judgeLiveParent, judgeRevocation, revocationIdsOf } from './authority-judgement.js'
import { askingUntil } from './deadline.js'
import type { BrokerParts } from './parts.js'
import type { Preparation, PreparedTerms } from './preparation.js'
import { Refused } from './refused.js'

export interface CurrentCapture {
  readonly parent: LiveParent
  readonly captured: CapturedHold
}

/** @throws Refused naming the first that fails, in the order live parent, revocation, capture. */
export async function currentCapture(
  parts: BrokerParts,
  preparation: Preparation,
  terms: PreparedTerms,
): Promise<CurrentCapture> {
  const { authority, clock, config } = parts
  const { registration } = preparation.candidate
  const { body } = terms.request.capability
  const { revocationIds } = terms
  const { audience, parentCapabilityId: capabilityId, subject } = body
  const { captureEventId, holdId, operationId } = registration.ids
  preparation.progress = 'before_commit'
  const query = {
    captureEventId,
    holdId,
    operationId,
    quotas: registration.quotas,
    revocationIds: [...revocationIds],
  }
  const [liveParent, revocation, hold] = await authority.ask(
    [
      { kind: 'verify_live_parent', request: { audience, capabilityId, subject } },
      { kind: 'check_broker_revocation', request: { revocationIds: [...revocationIds] } },
      { kind: 'query_execution_hold', request: query },
    ],
    askingUntil(terms.deadline.bootNs),
  )
  const parent = judgeLiveParent(liveParent, body, config, unixSeconds(clock))
  if (revocationIdsOf(body, parent.delegationAncestorIds).join('\0') !== revocationIds.join('\0')) {
    throw new Refused('revocation_set_changed', 'other ancestors than at preparation')
  }
  judgeRevocation(revocation, config, unixSeconds(clock))
  return { parent, captured: judgeHold(hold, revocationSetDigest(revocationIds)) }
}
