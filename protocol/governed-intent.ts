// Owns what approvers are asked to approve: one brokered request, as exactly as the kernel knows it. Its digest is what
// they sign; a request that differs in anything has another.
// Must never: hold a body or a secret: people are shown this whole document.
// Source: `chio.governed-transaction-intent.v2`, an envelope over a kind and its body, hashed as a whole.
import { digest, encode, type Infer, identifier, integer, literal, object, publicKeyHex } from './codec.js'
import { BrokerDestination, CredentialRef } from './destination.js'
import { sha256Hex } from './digest.js'
import { MAXIMUM_BODY_BYTES, MAXIMUM_RESPONSE_BYTES, MAXIMUM_TIMEOUT_MS } from './limits.js'

export const INTENT_SCHEMA = 'chio.governed-transaction-intent.v2'

/** One request, at one place, with one credential, by one caller. */
export const BrokeredRequestIntent = object({
  action_parameter_hash: digest(),
  body_bytes: integer({ min: 0, max: MAXIMUM_BODY_BYTES }),
  body_sha256: digest(),
  caller_public_key: publicKeyHex(),
  credential: CredentialRef,
  destination: BrokerDestination,
  grant_id: identifier(128),
  operation_id: digest(),
  request_id: identifier(),
  response_limit_bytes: integer({ min: 1, max: MAXIMUM_RESPONSE_BYTES }),
  tenant_id: identifier(),
  timeout_ms: integer({ min: 1, max: MAXIMUM_TIMEOUT_MS }),
})
export type BrokeredRequestIntent = Infer<typeof BrokeredRequestIntent>

export const GovernedIntent = object({
  body: BrokeredRequestIntent,
  kind: literal('brokered_request'),
  schema: literal(INTENT_SCHEMA),
})
export type GovernedIntent = Infer<typeof GovernedIntent>

export function brokeredIntent(body: BrokeredRequestIntent): GovernedIntent {
  return { body, kind: 'brokered_request', schema: INTENT_SCHEMA }
}

/** SHA-256 of the whole canonical envelope. */
export function governedIntentHash(intent: GovernedIntent): string {
  return sha256Hex(encode(GovernedIntent, intent))
}
