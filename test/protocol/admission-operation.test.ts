// The identity of an operation follows from what it commits to, and from every part of it.
import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type BindingInput, bindOperation, OperationBinding } from '../../protocol/admission-operation.js'
import { BROKERED_REQUIREMENTS } from '../../protocol/admission-requirements.js'
import { canonicalBytes } from '../../protocol/canonical.js'
import { decode, encode } from '../../protocol/codec.js'

const INPUT: BindingInput = {
  authorizationCapabilityHash: 'a'.repeat(64),
  capabilityId: 'grant-1',
  coordinatorAuthorityId: 'kernel',
  effectClass: 'side_effecting',
  kind: 'tool_dispatch',
  policyHash: 'b'.repeat(64),
  request: {
    action_parameter_hash: 'c'.repeat(64),
    immutable_request_hash: 'd'.repeat(64),
    participant_requirements: BROKERED_REQUIREMENTS,
  },
  requestId: 'invocation-1',
  tenantId: 'tenant',
}

/** The same derivation, written again from the source's words. */
function digestOf(domain: string, value: Parameters<typeof canonicalBytes>[0]): string {
  return createHash('sha256').update(`${domain}\0`).update(canonicalBytes(value)).digest('hex')
}

describe('an operation id', () => {
  test('is the digest of its nine members under its domain', () => {
    const namespace = digestOf('chio.admission-request-namespace.v1', {
      authenticated_tenant_id: 'tenant',
      coordinator_authority_id: 'kernel',
    })
    const binding = digestOf('chio.admission-request-binding.v1', { ...INPUT.request })
    const expected = digestOf('chio.admission-operation.v1', {
      authorization_capability_hash: INPUT.authorizationCapabilityHash,
      capability_id: 'grant-1',
      coordinator_authority_id: 'kernel',
      effect_class: 'side_effecting',
      kind: 'tool_dispatch',
      policy_hash: INPUT.policyHash,
      request_binding_hash: binding,
      request_id: 'invocation-1',
      request_namespace_digest: namespace,
    })
    const bound = bindOperation(INPUT)
    expect(bound.operation_id).toBe(expected)
    expect(bound.request_binding.request_binding_hash).toBe(binding)
    expect(decode(OperationBinding, encode(OperationBinding, bound), 'binding')).toEqual(bound)
  })

  test.each([
    ['the grant', { authorizationCapabilityHash: 'e'.repeat(64) }],
    ['the grant id', { capabilityId: 'grant-2' }],
    ['the kernel', { coordinatorAuthorityId: 'another' }],
    ['the tenant', { tenantId: 'another' }],
    ['the request id', { requestId: 'invocation-2' }],
    ['the policy', { policyHash: 'e'.repeat(64) }],
    ['the effect class', { effectClass: 'monetary' }],
    ['the parameters', { request: { ...INPUT.request, action_parameter_hash: 'e'.repeat(64) } }],
    ['the request', { request: { ...INPUT.request, immutable_request_hash: 'e'.repeat(64) } }],
    [
      'the requirements',
      {
        request: { ...INPUT.request, participant_requirements: { ...BROKERED_REQUIREMENTS, approval: true } },
      },
    ],
  ] as const)('changes with %s', (_what, change) => {
    expect(bindOperation({ ...INPUT, ...change }).operation_id).not.toBe(bindOperation(INPUT).operation_id)
  })
})
