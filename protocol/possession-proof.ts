// Owns the proof that an agent holds the key of its capability token: one signed statement over one call of one tool
// with one set of arguments.
// Must never: take the key from the proof, or let a proof count twice: whoever acts on one keeps its nonce for good.
// Source: `chio.dpop_proof.v1`: its body, the signature over the canonical body (the schema in it is its domain), the
// order of checks, a life of 300 s and 30 s for clocks that differ; snake_case is the wire's.
import { canonicalBytes } from './canonical.js'
import {
  decode,
  digest,
  encode,
  type Infer,
  identifier,
  literal,
  object,
  publicKeyHex,
  signatureHex,
} from './codec.js'
import { toHex } from './digest.js'
import { BrokerError } from './errors.js'
import type { JsonValue } from './json.js'
import { admitPublicKey, type SigningKey, verifySignature } from './keys.js'
import { UnixSeconds } from './unix-time.js'
import { markVerified, type Verified } from './verified.js'

const POSSESSION_SCHEMA = 'chio.dpop_proof.v1'
/** A proof may be shown for so long after its issue, the last second with it. */
const PROOF_LIFETIME_SECONDS = 300
/** So far ahead may the clock of whoever signed be. */
const PROOF_SKEW_SECONDS = 30

const PossessionBody = object({
  /** SHA-256 of the canonical arguments. */
  action_hash: digest(),
  agent_key: publicKeyHex(),
  capability_id: identifier(),
  issued_at: UnixSeconds,
  /** Chosen by whoever signs; once under one capability. */
  nonce: identifier(),
  schema: literal(POSSESSION_SCHEMA),
  tool_name: identifier(),
  tool_server: identifier(),
})
export type PossessionMembers = Omit<Infer<typeof PossessionBody>, 'schema'>

export const PossessionProof = object({ body: PossessionBody, signature: signatureHex() })
export type PossessionProof = Infer<typeof PossessionProof>

/** Signs a proof with the key that it names. */
export function signPossession(members: PossessionMembers, key: SigningKey): PossessionProof {
  if (members.agent_key !== key.publicKey) {
    throw new RangeError('"agent_key" expected the key that signs, got another')
  }
  const body = { ...members, schema: POSSESSION_SCHEMA } as const
  return { body, signature: toHex(key.sign(encode(PossessionBody, body))) }
}

/** What a verifier knows of the call of its own. */
export type PossessionPins = Pick<
  PossessionMembers,
  'action_hash' | 'agent_key' | 'capability_id' | 'tool_name' | 'tool_server'
>

/** Members in the order in which a foreign one is named: whose key, then which call. */
const BOUND: readonly (keyof PossessionPins)[] = [
  'agent_key',
  'capability_id',
  'tool_server',
  'tool_name',
  'action_hash',
]

/**
 * Verifies a proof as it was presented: its form, its key, its call, its time, its signature, in this order. Whether its
 * nonce was used before is asked of a store.
 * @throws BrokerError `possession_denied` naming the member.
 */
export function verifyPossession(
  presented: JsonValue,
  pins: PossessionPins,
  nowUnixSeconds: number,
): Verified<PossessionProof> {
  const proof = read(presented)
  const { body, signature } = proof
  const foreign = BOUND.find(member => body[member] !== pins[member])
  if (foreign !== undefined) deny(foreign, "this call's own")
  checkTime(body.issued_at, nowUnixSeconds)
  const agent = admitPublicKey(pins.agent_key, 'agent key')
  if (!verifySignature(agent, encode(PossessionBody, body), signature)) {
    deny('signature', "the agent's signature over this proof")
  }
  return markVerified(proof)
}

function read(presented: JsonValue): PossessionProof {
  try {
    return decode(PossessionProof, canonicalBytes(presented), 'proof of possession')
  } catch {
    deny('form', `a ${POSSESSION_SCHEMA} with its signature`)
  }
}

function checkTime(issuedAt: number, now: number): void {
  if (issuedAt > now + PROOF_SKEW_SECONDS) {
    deny('issued_at', `an issue at most ${PROOF_SKEW_SECONDS} s ahead; compare the clocks`)
  }
  if (now - issuedAt > PROOF_LIFETIME_SECONDS) {
    deny('issued_at', `an issue at most ${PROOF_LIFETIME_SECONDS} s ago; sign a fresh one`)
  }
}

function deny(member: string, expected: string): never {
  throw new BrokerError('possession_denied', `proof of possession ${member} refused: expected ${expected}`, {
    outcome: 'not_started',
  })
}
