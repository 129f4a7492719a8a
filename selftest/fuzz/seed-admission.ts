// Owns the seed documents of the admission record, which the kernel keeps and nobody sends.
// Must never: hold a real secret.
import type { JsonValue } from '../../protocol/json.js'

const DIGEST = 'd'.repeat(64)

/** What an operation commits to. */
export function admissionBinding(): { readonly [member: string]: JsonValue } {
  const requirements = Object.fromEntries(
    [
      'approval',
      'authorization_consumption',
      'broker_attempt',
      'budget_capture',
      'channel',
      'execution_nonce',
    ]
      .concat('obligation', 'observation_attempt_zero', 'outcome_eligibility', 'payment')
      .map(name => [name, name === 'payment']),
  )
  return {
    authenticated_tenant_id: 'tenant-own',
    authorization_capability_hash: DIGEST,
    capability_id: 'grant-own',
    coordinator_authority_id: 'authority-own',
    effect_class: 'side_effecting',
    kind: 'tool_dispatch',
    operation_id: DIGEST,
    policy_hash: DIGEST,
    request_binding: {
      action_parameter_hash: DIGEST,
      immutable_request_hash: DIGEST,
      participant_requirements: requirements,
      request_binding_hash: DIGEST,
    },
    request_id: 'invocation-own',
    request_namespace_digest: DIGEST,
  }
}

export function admissionDocuments(reserve: { readonly [member: string]: JsonValue }): JsonValue[] {
  const { proofIssuedAtUnixSeconds: _issued, ...committed } = reserve
  return [admissionBinding(), { approverId: 'lead', publicKey: DIGEST }, committed]
}
