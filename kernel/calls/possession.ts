// Owns: whether an agent proves that it holds the key of its token, asked at the start of a call: that is where
// something is done. What is presented is judged even where no grant asks for it.
// Must never: use a proof up that another check of the same start refuses.
// Source: `dpop_required` of a tool grant; `chio.dpop_proof.v1`.
import type { CapabilityToken } from '../../protocol/capability-token.js'
import { BrokerError } from '../../protocol/errors.js'
import type { JsonValue } from '../../protocol/json.js'
import { type PossessionProof, verifyPossession } from '../../protocol/possession-proof.js'
import type { ChosenGrant } from '../../protocol/scope.js'
import { valueHash } from '../../protocol/kernel-receipt.js'
import type { Verified } from '../../protocol/verified.js'
import type { SqliteMove } from '../sqlite/move.js'
import { callRefusal, type CallRefusal, isRefusal, judged } from './call-refusal.js'
import type { JudgedCall } from './evaluate-call.js'

/** The possession as `evaluateCall` asks it. */
export interface Possession {
  judge(call: JudgedCall, token: CapabilityToken, covering: readonly ChosenGrant[]): CallRefusal | null
  /** Keeps the proof that was judged as used: in the commit of the start that it allows. */
  use(operationId: string): void
}

/** A preflight and a reserve take no proof: a start has to have one that nobody has seen. */
export const UNASKED: Possession = { judge: () => null, use() {} }

/** The proof that a start presents, or that it presents none. */
export function presentedPossession(move: SqliteMove, presented: JsonValue | undefined): Possession {
  let proof: Verified<PossessionProof> | null = null
  return {
    judge(call, token, covering) {
      if (presented === undefined) return missing(covering)
      const found = judged('proof_of_possession', () => unused(move, verified(presented, call, token)))
      if (isRefusal(found)) return found
      proof = found
      return null
    },
    use(operationId) {
      if (proof !== null) move.possessions.use(proof, operationId)
    },
  }
}

/** One grant that asks is enough: a call may be made under any that covers it. */
function missing(covering: readonly ChosenGrant[]): CallRefusal | null {
  if (!covering.some(({ grant }) => grant.dpop_required === true)) return null
  const sentence =
    'proof of possession refused: expected one beside the start, since a grant of this token asks for it, got none'
  return callRefusal('proof_of_possession', 'possession_denied', sentence)
}

function verified(presented: JsonValue, { nowUnixSeconds, request }: JudgedCall, token: CapabilityToken) {
  const pins = {
    action_hash: valueHash(request.params),
    agent_key: token.subject,
    capability_id: token.id,
    tool_name: request.tool,
    tool_server: request.server_id,
  }
  return verifyPossession(presented, pins, nowUnixSeconds)
}

function unused(move: SqliteMove, proof: Verified<PossessionProof>): Verified<PossessionProof> {
  if (!move.possessions.isUsed(proof)) return proof
  throw new BrokerError(
    'possession_replayed',
    'proof of possession nonce refused: expected one that no call was started with, got one that was used; sign a fresh proof',
    { outcome: 'not_started' },
  )
}
