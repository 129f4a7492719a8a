// Owns the links of a delegation chain and what they claim to have narrowed: their documents, their signatures and how
// they hang together. Whether a delegated token may be admitted is in delegation.ts.
// Must never: say that a chain is admissible because its signatures are good.
// Source: the capability token's delegation chain; each link is signed by its delegator over the link's other members.
import { Constraint } from './constraint.js'
import {
  type Infer,
  array,
  digest,
  encode,
  identifier,
  integer,
  json,
  object,
  oneOf,
  publicKeyHex,
  signatureHex,
  tagged,
} from './codec.js'
import { toHex } from './digest.js'
import { admitPublicKey, type SigningKey, verifySignature } from './keys.js'
import {
  MAXIMUM_ATTENUATION_PROOF_BYTES,
  MAXIMUM_CONSTRAINTS_COUNT,
  MAXIMUM_DELEGATION_DEPTH,
  MAXIMUM_INVOCATIONS_COUNT,
} from './limits.js'
import { GRANT_OPERATIONS, MonetaryAmount } from './scope.js'
import { UnixSeconds } from './unix-time.js'

const target = { server_id: identifier(), tool_name: identifier() }

/** One way in which a delegator says that it narrowed the scope. */
export const Attenuation = tagged('type', {
  add_constraint: object({ ...target, constraint: Constraint }),
  reduce_budget: object({
    ...target,
    max_invocations: integer({ min: 0, max: MAXIMUM_INVOCATIONS_COUNT }),
  }),
  reduce_cost_per_invocation: object({ ...target, max_cost_per_invocation: MonetaryAmount }),
  reduce_total_cost: object({ ...target, max_total_cost: MonetaryAmount }),
  remove_operation: object({
    ...target,
    operation: oneOf(...GRANT_OPERATIONS),
  }),
  remove_tool: object(target),
  shorten_expiry: object({ new_expires_at: UnixSeconds }),
})
export type Attenuation = Infer<typeof Attenuation>

const signed = {
  capability_id: identifier(),
  delegatee: publicKeyHex(),
  delegator: publicKeyHex(),
  timestamp: UnixSeconds,
}
/** Members of later forms are kept and signed; admission refuses the ones whose meaning it does not enforce. */
const optional = {
  aggregate_budget: json({ maxBytes: MAXIMUM_ATTENUATION_PROOF_BYTES }),
  attenuations: array(Attenuation, { min: 1, max: MAXIMUM_CONSTRAINTS_COUNT }),
  cumulative_approval: json({ maxBytes: MAXIMUM_ATTENUATION_PROOF_BYTES }),
  scope_hash: digest(),
}
const SignedLinkMembers = object(signed, { optional })
type SignedLinkMembers = Infer<typeof SignedLinkMembers>

export const DelegationLink = object({ ...signed, signature: signatureHex() }, { optional })
export type DelegationLink = Infer<typeof DelegationLink>

/** Signs a link as its delegator. */
export function signDelegationLink(members: SignedLinkMembers, delegator: SigningKey): DelegationLink {
  if (members.delegator !== delegator.publicKey)
    throw new RangeError('"delegator" expected the key that signs, got another')
  return { ...members, signature: toHex(delegator.sign(encode(SignedLinkMembers, members))) }
}

/** What is wrong with a chain, in the order of the checks; undefined where nothing is. */
export function chainFault(chain: readonly DelegationLink[]): string | undefined {
  if (chain.length > MAXIMUM_DELEGATION_DEPTH) return `at most ${MAXIMUM_DELEGATION_DEPTH} links`
  for (const [index, link] of chain.entries()) {
    const fault = linkFault(link, chain[index - 1])
    if (fault !== undefined) return `${fault} at link ${index}`
  }
  return undefined
}

function linkFault(link: DelegationLink, previous: DelegationLink | undefined): string | undefined {
  const { signature, ...members } = link
  const delegator = admitPublicKey(link.delegator, 'delegator key')
  if (!verifySignature(delegator, encode(SignedLinkMembers, members), signature))
    return "the delegator's signature"
  if (previous === undefined) return undefined
  if (link.delegator !== previous.delegatee) return 'the delegatee of the link before as delegator'
  return link.timestamp < previous.timestamp ? 'a time not before the link before' : undefined
}
