// Whose authority a tool call rests on, at each of its steps: tokens that are revoked, and tokens that are delegated.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemClock } from '../../../native/clock.js'
import { signFamilyBudget } from '../../../protocol/aggregate-budget.js'
import {
  type CapabilityToken,
  type CapabilityTokenMembers,
  signCapabilityToken,
} from '../../../protocol/capability-token.js'
import { unixSeconds } from '../../../protocol/clock.js'
import { encode } from '../../../protocol/codec.js'
import { signDelegationLink } from '../../../protocol/delegation-link.js'
import { CapabilityReference } from '../../../protocol/kernel-rpc.js'
import { type SigningKey, signingKey } from '../../../protocol/keys.js'
import { scopeHash } from '../../../protocol/scope.js'
import { approve, issueGrant, seed, type TestKernel } from '../../support/kernel.js'
import {
  callKernel,
  callUnder,
  contextAt,
  preflight,
  reservedCall,
  reserveWith,
  startWith,
  tokenOf,
} from '../../support/tool-call.js'

let kernel: TestKernel
beforeAll(async () => {
  kernel = await callKernel()
})
afterAll(() => kernel.remove())

const authorized = (capabilityId: string) => {
  const reference = { capabilityId }
  return {
    authorization: approve(kernel, 'revoke_capability', encode(CapabilityReference, reference)),
    reference,
  }
}
const revoke = (capabilityId: string) => {
  const { authorization, reference } = authorized(capabilityId)
  return kernel.client.call('revoke_capability', reference, authorization)
}

test('a revocation ends a token at the next check: before the reserve, and before the start', async () => {
  const [one, other] = [callUnder(tokenOf(kernel)), callUnder(tokenOf(kernel))]
  const preflighted = await preflight(kernel, one)
  const ready = await reservedCall(kernel, other)
  for (const request of [one, other]) await revoke(request.capability_token.id)
  const said = { check: 'revocation', code: 'capability_revoked', verdict: 'deny' }
  expect(await reserveWith(kernel, one, preflighted)).toMatchObject({
    ...said,
    reason: `capability has been revoked: ${one.capability_token.id}`,
    state: 'compensated_before_dispatch',
  })
  expect(await startWith(kernel, other, ready)).toMatchObject({ ...said, state: 'ready_to_dispatch' })
})

test('a revocation needs an administrator, may come before the token, and is safe to repeat', async () => {
  const { authorization, reference } = authorized('capability-of-tomorrow')
  await expect(kernel.client.call('revoke_capability', reference)).rejects.toMatchObject({
    code: 'authorization_denied',
  })
  const first = await kernel.client.call('revoke_capability', reference, authorization)
  expect(first).toMatchObject({ capabilityId: 'capability-of-tomorrow', newlyRevoked: true })
  expect(await kernel.client.call('revoke_capability', reference, authorization)).toEqual(first)
  expect(await revoke('capability-of-tomorrow')).toMatchObject({ newlyRevoked: false })
  const token = tokenOf(kernel, {}, { id: 'capability-of-tomorrow' })
  expect(await preflight(kernel, callUnder(token))).toMatchObject({ code: 'capability_revoked' })
})

test('the id of a grant is not revoked as a token', async () => {
  const { grantId } = await issueGrant(kernel)
  await expect(revoke(grantId)).rejects.toMatchObject({ code: 'conflict' })
  expect(await kernel.client.call('show_grant', { grantId })).toMatchObject({ revoked: false })
})

/** The caller gives a part of its own token to itself as another subject would: the chain is what is judged. */
function delegatedFrom(
  parent: CapabilityToken,
  delegator: SigningKey,
  changes: Partial<CapabilityTokenMembers> = {},
): CapabilityToken {
  const link = signDelegationLink(
    {
      capability_id: parent.id,
      delegatee: kernel.caller.publicKey,
      delegator: delegator.publicKey,
      scope_hash: scopeHash(parent.scope),
      timestamp: parent.issued_at,
    },
    delegator,
  )
  const grants = (parent.scope.grants ?? []).map(grant => ({ ...grant, max_invocations: 1 }))
  return signCapabilityToken(
    {
      delegation_chain: [link],
      expires_at: parent.expires_at,
      id: `${parent.id}-child`,
      issued_at: parent.issued_at,
      issuer: kernel.keys.issuer.publicKey,
      scope: { grants },
      subject: kernel.caller.publicKey,
      ...changes,
    },
    kernel.keys.issuer,
  )
}

test('a delegated token is admitted once its ancestor was, counts by itself, and ends with its ancestor', async () => {
  const parent = tokenOf(kernel, { max_invocations: 3, operations: ['delegate', 'invoke'] })
  const child = delegatedFrom(parent, kernel.caller)
  expect(await preflight(kernel, callUnder(child))).toMatchObject({ check: 'delegation' })
  await preflight(kernel, callUnder(parent))
  expect(await reservedCall(kernel, callUnder(child))).toMatchObject({ state: 'ready_to_dispatch' })
  expect(await preflight(kernel, callUnder(child))).toMatchObject({ code: 'grant_exhausted' })
  await revoke(parent.id)
  expect(await preflight(kernel, callUnder(child))).toMatchObject({
    code: 'capability_revoked',
    reason: `delegation chain revoked at ancestor ${parent.id}`,
  })
})

test('all that was delegated from one token shares the ceiling of its family', async () => {
  const now = unixSeconds(systemClock)
  const root = {
    expires_at: now + 3_600,
    id: `capability-family-${now}`,
    issued_at: now - 1,
    issuer: kernel.keys.issuer.publicKey,
    scope: {
      grants: [
        { operations: ['delegate' as const, 'invoke' as const], server_id: 'notes', tool_name: 'append' },
      ],
    },
    subject: kernel.caller.publicKey,
  }
  const aggregate_invocation_budget = signFamilyBudget(root, 2, kernel.keys.issuer)
  const parent = signCapabilityToken({ ...root, aggregate_invocation_budget }, kernel.keys.issuer)
  const child = delegatedFrom(parent, kernel.caller, { aggregate_invocation_budget })
  const first = await reservedCall(kernel, callUnder(parent))
  expect(await reservedCall(kernel, callUnder(child))).toMatchObject({ verdict: 'allow' })
  expect(await preflight(kernel, callUnder(parent))).toMatchObject({ code: 'grant_exhausted' })
  await kernel.client.call('cancel', { operationId: first.operationId as string })
  expect(await reservedCall(kernel, callUnder(parent))).toMatchObject({ verdict: 'allow' })
})

test('nobody but its subject delegates a token', async () => {
  const parent = tokenOf(kernel, { operations: ['delegate', 'invoke'] })
  await preflight(kernel, callUnder(parent))
  const stolen = delegatedFrom(parent, signingKey(seed()))
  expect(await preflight(kernel, callUnder(stolen))).toMatchObject({ check: 'delegation', verdict: 'deny' })
})

test('an id stands for the token that it was first used for', async () => {
  const first = tokenOf(kernel, {}, { id: 'capability-twice' })
  const second = tokenOf(kernel, { max_invocations: 9 }, { id: 'capability-twice' })
  expect(await preflight(kernel, callUnder(first))).toMatchObject({ verdict: 'allow' })
  expect(await preflight(kernel, callUnder(second))).toMatchObject({ check: 'snapshot', verdict: 'deny' })
})

test('another agent gets nothing of a call: not its id, not its nonce, not its token', async () => {
  const { calls } = kernel.running.kernel
  const other = signingKey(seed())
  const caller = { callerPublicKey: other.publicKey, uid: 1 }
  const request = callUnder(tokenOf(kernel))
  const { executionNonce } = await reservedCall(kernel, request)
  if (executionNonce === null) throw new Error('expected the nonce of a reserved call')
  const context = contextAt(3)
  expect(await calls.preflight(caller, { context, request })).toMatchObject({
    code: 'request_binding_mismatch',
    executionNonce: null,
    operationId: null,
  })
  const stolen = { ...request, id: 'call-of-another' }
  expect(await calls.preflight(caller, { context, request: stolen })).toMatchObject({ check: 'subject' })
  const start = { arguments: request.params, context, credentials: {}, executionNonce }
  expect(await calls.start(caller, start)).toMatchObject({ code: 'operation_unknown', operationId: null })
})

test('a client without a key is nobody’s agent', async () => {
  const request = callUnder(tokenOf(kernel))
  const asked = kernel.running.kernel.calls.preflight(
    { callerPublicKey: null, uid: 1 },
    { context: contextAt(1), request },
  )
  await expect(asked).rejects.toMatchObject({ code: 'authorization_denied' })
})
