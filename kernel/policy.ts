// Owns: the policy under which this kernel admits, as one fixed text, and the lifetimes that it gives away.
// Must never: change its meaning without its version, since every operation id commits to its digest.
// Source: the admission operation's policy hash; the broker protocol's proof and capability lifetimes.
import { sha256Hex } from '../protocol/digest.js'

const POLICY_TEXT =
  'chio.kernel-policy.v1: one live grant of the caller; one execution held before start and captured by it; ' +
  'one capability for the exact body; one execution nonce; as many approvals of the exact request as the grant asks'

/** Enters every operation id: another policy makes another operation. */
export const POLICY_HASH = sha256Hex(Buffer.from(POLICY_TEXT, 'utf8'))

/**
 * Life of a proof nonce from its issue. It caps the prepared stream, so it covers an execution nonce of 30 s,
 * the stream's own 30 s, and no more: a proof that leaked is worth nothing a minute later.
 */
export const PROOF_NONCE_TTL_SECONDS = 60

/** Life of a minted capability: twice the proof's, so that the proof's expiry always decides first. */
export const CAPABILITY_LIFETIME_SECONDS = 120

/** From start to the latest dispatch commit of the broker: the life of a prepared stream. */
export const PREPARED_LIFETIME_MS = 30_000

/** What the broker may take after the provider's deadline to record an outcome, before the kernel asks. */
export const SETTLEMENT_GRACE_MS = 10_000
