// Owns: what a tool call's operation was admitted for, fixed by its preflight, and the names of its budget hold.
// Must never: hold the arguments: the exact request is kept apart, encrypted.
// Source: the admission operation of a caller-delivered tool call; ids of budget holds.
import { bindOperation, OperationBinding } from '../../protocol/admission-operation.js'
import type { ParticipantRequirements } from '../../protocol/admission-requirements.js'
import { CallerExecutor } from '../../protocol/caller-authorization.js'
import { capabilityTokenHash } from '../../protocol/capability-token.js'
import {
  digest,
  encode,
  type Infer,
  identifier,
  nullable,
  object,
  publicKeyHex,
} from '../../protocol/codec.js'
import { domainDigestHex } from '../../protocol/digest.js'
import { BrokerError } from '../../protocol/errors.js'
import { type NonceBinding, SignedExecutionNonce } from '../../protocol/execution-nonce.js'
import { valueHash } from '../../protocol/kernel-receipt.js'
import { MAXIMUM_IDENTIFIER_BYTES } from '../../protocol/limits.js'
import { MonetaryAmount } from '../../protocol/scope.js'
import { ToolCallRequest } from '../../protocol/tool-call.js'
import { Count, UnixSeconds } from '../../protocol/unix-time.js'
import { POLICY_HASH } from '../policy.js'

/** What this kernel asks of a call beside its request: with another answer to it, it is another operation. */
export interface CallBounds {
  /** What its tool may do. */
  readonly effectClass: OperationBinding['effect_class']
  /** To whom it is delivered; null where nobody is pinned. */
  readonly executor: CallerExecutor | null
  /** How many people have to agree. */
  readonly requiredApprovals: number
}

/**
 * A call that an executor carries out needs a hold and a nonce. An attempt is announced to a pinned executor alone, so
 * that pinning one later adopts none of the operations that were admitted without.
 */
const requirementsUnder = ({ executor, requiredApprovals }: CallBounds): ParticipantRequirements => ({
  approval: requiredApprovals > 0,
  authorization_consumption: false,
  broker_attempt: executor !== null,
  budget_capture: true,
  execution_nonce: true,
  obligation: false,
  observation_attempt_zero: false,
  outcome_eligibility: false,
  payment: false,
})

const members = {
  /** Key of the agent that asked: the subject of its token. */
  agentId: publicKeyHex(),
  binding: OperationBinding,
  capabilityExpiresAt: UnixSeconds,
  /** To whom it is delivered, as it was pinned then; null where nobody was. */
  executor: nullable(CallerExecutor),
  parameterHash: digest(),
  serverId: identifier(),
  toolName: identifier(),
}
export type AskedTerms = Omit<ToolCallTerms, 'approvable' | 'executionNonce'>

/** What approvers are told of a call beside its names and its hashes. */
const Approvable = object({ argumentsBytes: Count, maximumCost: nullable(MonetaryAmount) })

/** A call that waits for its approvals: no nonce was issued for it yet. */
export const AnnouncedCallTerms = object({ ...members, approvable: Approvable })
export type AnnouncedCallTerms = Infer<typeof AnnouncedCallTerms>

export const ToolCallTerms = object(
  {
    ...members,
    /** Issued by the preflight; reserved by nothing but the reserve. */
    executionNonce: SignedExecutionNonce,
  },
  { optional: { approvable: Approvable } },
)
export type ToolCallTerms = Infer<typeof ToolCallTerms>

/** Who coordinates the operations of a tenant. */
export interface Coordinator {
  readonly authorityId: string
  readonly tenantScope: string
}

/** The identity of a call: the whole request with its token, whoever presents it and whenever. */
export function bindCall(
  request: ToolCallRequest,
  { authorityId, tenantScope }: Coordinator,
  bounds: CallBounds,
): OperationBinding {
  const { capability_token: token, id, params } = request
  return bindOperation({
    authorizationCapabilityHash: capabilityTokenHash(token),
    capabilityId: token.id,
    coordinatorAuthorityId: authorityId,
    effectClass: bounds.effectClass,
    kind: 'tool_dispatch',
    policyHash: POLICY_HASH,
    request: {
      action_parameter_hash: valueHash(params),
      immutable_request_hash: domainDigestHex('chio.kernel-tool-call.v1', encode(ToolCallRequest, request)),
      participant_requirements: requirementsUnder(bounds),
    },
    requestId: id,
    tenantId: tenantScope,
  })
}

/** What the nonce of a call is bound to. */
export function nonceBindingOf(request: ToolCallRequest): NonceBinding {
  const { capability_token: token, id, params, server_id, tool } = request
  return {
    capability_id: token.id,
    parameter_hash: valueHash(params),
    request_id: id,
    subject_id: token.subject,
    tool_name: tool,
    tool_server: server_id,
  }
}

/** One attempt an operation: whoever knows the operation knows its name. */
export function callerAttemptId(operationId: string): string {
  return `caller-attempt-${domainDigestHex('chio.kernel-caller-attempt.v1', Buffer.from(operationId, 'utf8'))}`
}

/** What may follow the name of a hold: the one under a ceiling, and the events of both. */
const LONGEST_EVENT = ':aggregate:reconcile'

/**
 * One name for the hold of one request under one grant. A colon in the capability's id would let another request's name
 * be spelt like it.
 * @throws BrokerError `invalid_request` where the ids of request and capability cannot be named together.
 */
export function budgetHoldId(requestId: string, capabilityId: string, grantIndex: number): string {
  if (capabilityId.includes(':')) {
    throw new BrokerError(
      'invalid_request',
      'capability id refused: expected one without a colon, which parts the names of a budget hold, got one with it',
    )
  }
  const holdId = `budget-hold:${requestId}:${capabilityId}:${grantIndex}`
  if (Buffer.byteLength(holdId) + LONGEST_EVENT.length <= MAXIMUM_IDENTIFIER_BYTES) return holdId
  throw new BrokerError(
    'invalid_request',
    `tool call id refused: expected one that names a hold of at most ${MAXIMUM_IDENTIFIER_BYTES} bytes together with its capability, got a longer one`,
  )
}
