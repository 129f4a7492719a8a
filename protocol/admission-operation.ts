// The identity of an admission operation: derived from what it commits to, so that the same request finds
// the same operation after any restart and a changed one never does. snake_case is the wire's.
// Source: the admission operation's identity derivation (with policy hash and effect class).
import { digest, encode, type Infer, identifier, object, oneOf } from './codec.js'
import { ParticipantRequirements, requirementFaults } from './admission-requirements.js'
import { OPERATION_KINDS } from './admission-states.js'
import { domainDigestHex } from './digest.js'
import { BrokerError } from './errors.js'

export const ADMISSION_OPERATION_SCHEMA = 'chio.admission-operation.v1'

const RequestNamespace = object({
  authenticated_tenant_id: identifier(),
  coordinator_authority_id: identifier(),
})
const RequestBindingInput = object({
  action_parameter_hash: digest(),
  immutable_request_hash: digest(),
  participant_requirements: ParticipantRequirements,
})
export type RequestBindingInput = Infer<typeof RequestBindingInput>

export const EFFECT_CLASSES = ['monetary', 'read_only', 'side_effecting'] as const

const OperationIdentity = object({
  authorization_capability_hash: digest(),
  capability_id: identifier(),
  coordinator_authority_id: identifier(),
  effect_class: oneOf(...EFFECT_CLASSES),
  kind: oneOf(...OPERATION_KINDS),
  policy_hash: digest(),
  request_binding_hash: digest(),
  request_id: identifier(),
  request_namespace_digest: digest(),
})
export type OperationIdentity = Infer<typeof OperationIdentity>

const RequestBinding = object({
  action_parameter_hash: digest(),
  immutable_request_hash: digest(),
  participant_requirements: ParticipantRequirements,
  request_binding_hash: digest(),
})

/** Everything that an operation commits to, and the id that follows from it. */
export const OperationBinding = object({
  authenticated_tenant_id: identifier(),
  authorization_capability_hash: digest(),
  capability_id: identifier(),
  coordinator_authority_id: identifier(),
  effect_class: oneOf(...EFFECT_CLASSES),
  kind: oneOf(...OPERATION_KINDS),
  operation_id: digest(),
  policy_hash: digest(),
  request_binding: RequestBinding,
  request_id: identifier(),
  request_namespace_digest: digest(),
})
export type OperationBinding = Infer<typeof OperationBinding>

/** One namespace of request ids: a tenant under a coordinator. */
export function requestNamespaceDigest(tenantId: string, coordinatorAuthorityId: string): string {
  return domainDigestHex(
    'chio.admission-request-namespace.v1',
    encode(RequestNamespace, {
      authenticated_tenant_id: tenantId,
      coordinator_authority_id: coordinatorAuthorityId,
    }),
  )
}

export function requestBindingHash(input: RequestBindingInput): string {
  return domainDigestHex('chio.admission-request-binding.v1', encode(RequestBindingInput, input))
}

/** The operation id: what will happen, and the authority under which it happens. */
export function admissionOperationId(identity: OperationIdentity): string {
  return domainDigestHex('chio.admission-operation.v1', encode(OperationIdentity, identity))
}

/** What a binding is derived from: the members of the identity that are not digests of others. */
export interface BindingInput {
  readonly kind: OperationIdentity['kind']
  readonly effectClass: OperationIdentity['effect_class']
  readonly tenantId: string
  readonly coordinatorAuthorityId: string
  readonly requestId: string
  readonly capabilityId: string
  readonly authorizationCapabilityHash: string
  readonly policyHash: string
  readonly request: RequestBindingInput
}

/**
 * Derives the one binding of a request, and thereby its operation id.
 * @throws BrokerError `invariant` for requirements that contradict each other.
 */
export function bindOperation(input: BindingInput): OperationBinding {
  const faults = requirementFaults(input.kind, input.request.participant_requirements)
  if (faults.length > 0) {
    throw new BrokerError(
      'invariant',
      `operation refused: expected requirements that go together, got ${faults.join('; ')}`,
    )
  }
  const identity: OperationIdentity = {
    authorization_capability_hash: input.authorizationCapabilityHash,
    capability_id: input.capabilityId,
    coordinator_authority_id: input.coordinatorAuthorityId,
    effect_class: input.effectClass,
    kind: input.kind,
    policy_hash: input.policyHash,
    request_binding_hash: requestBindingHash(input.request),
    request_id: input.requestId,
    request_namespace_digest: requestNamespaceDigest(input.tenantId, input.coordinatorAuthorityId),
  }
  const { request_binding_hash, ...members } = identity
  return {
    ...members,
    authenticated_tenant_id: input.tenantId,
    operation_id: admissionOperationId(identity),
    request_binding: { ...input.request, request_binding_hash },
  }
}
