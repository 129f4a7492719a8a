// Owns what approvers are asked to approve: one brokered request or one tool call, as exactly as the kernel knows it. Its
// digest is what they sign; a request that differs in anything has another.
// Must never: hold a body, arguments or a secret: people are shown this whole document.
// Source: `chio.governed-transaction-intent.v2`, an envelope over a kind and its body, hashed as a whole.
import {
  digest,
  encode,
  type Infer,
  identifier,
  integer,
  literal,
  nullable,
  object,
  publicKeyHex,
  tagged,
} from './codec.js'
import { BrokerDestination, CredentialRef } from './destination.js'
import { sha256Hex } from './digest.js'
import {
  MAXIMUM_BODY_BYTES,
  MAXIMUM_PARAMETERS_BYTES,
  MAXIMUM_RESPONSE_BYTES,
  MAXIMUM_TIMEOUT_MS,
} from './limits.js'
import { MonetaryAmount } from './scope.js'

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

/** One call of one tool, with one set of arguments, by one agent. */
export const ToolCallIntent = object({
  agent_public_key: publicKeyHex(),
  arguments_bytes: integer({ min: 0, max: MAXIMUM_PARAMETERS_BYTES }),
  arguments_sha256: digest(),
  capability_id: identifier(),
  /** The most that the call may cost; null where nothing is counted. */
  maximum_cost: nullable(MonetaryAmount),
  operation_id: digest(),
  /** Over the whole request as it was asked: what is not named here is in it. */
  request_hash: digest(),
  request_id: identifier(),
  server_id: identifier(),
  tenant_id: identifier(),
  tool_name: identifier(),
})
export type ToolCallIntent = Infer<typeof ToolCallIntent>

const enveloped = { schema: literal(INTENT_SCHEMA) }
export const GovernedIntent = tagged('kind', {
  brokered_request: object({ body: BrokeredRequestIntent, ...enveloped }),
  tool_call: object({ body: ToolCallIntent, ...enveloped }),
})
export type GovernedIntent = Infer<typeof GovernedIntent>

export function brokeredIntent(body: BrokeredRequestIntent): GovernedIntent {
  return { body, kind: 'brokered_request', schema: INTENT_SCHEMA }
}

export function toolCallIntent(body: ToolCallIntent): GovernedIntent {
  return { body, kind: 'tool_call', schema: INTENT_SCHEMA }
}

/** Whose request it is: the key that a proposal names as its subject. */
export function subjectOf(intent: GovernedIntent): string {
  return intent.kind === 'tool_call' ? intent.body.agent_public_key : intent.body.caller_public_key
}

/** SHA-256 of the whole canonical envelope. */
export function governedIntentHash(intent: GovernedIntent): string {
  return sha256Hex(encode(GovernedIntent, intent))
}
