// Owns the three questions that are asked again once the exact frame is here: does the parent live, is anything
// revoked, and was this very hold captured.
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
  const deadlineBootNs = askingUntil(terms.deadline.bootNs)
  const { audience, parentCapabilityId: capabilityId, subject } = body
  const { captureEventId, holdId, operationId } = registration.ids
  preparation.progress = 'before_commit'
  const [parent, revocation, hold] = await allAnswers([
    authority.liveParent({ audience, capabilityId, subject }, deadlineBootNs),
    authority.revocation(revocationIds, deadlineBootNs),
    authority.hold(
      { captureEventId, holdId, operationId, quotas: registration.quotas, revocationIds },
      deadlineBootNs,
    ),
  ])
  judgeLiveParent(parent, body, config, unixSeconds(clock))
  if (revocationIdsOf(body, parent.delegationAncestorIds).join('\0') !== revocationIds.join('\0')) {
    throw new Refused('revocation_set_changed', 'other ancestors than at preparation')
  }
  judgeRevocation(revocation, config, unixSeconds(clock))
  return { parent, captured: judgeHold(hold, revocationSetDigest(revocationIds)) }
}

/** All three before any refusal, so that which one is named does not depend on which came first. */
async function allAnswers<A, B, C>(questions: [Promise<A>, Promise<B>, Promise<C>]): Promise<[A, B, C]> {
  await Promise.allSettled(questions)
  return Promise.all(questions)
}
