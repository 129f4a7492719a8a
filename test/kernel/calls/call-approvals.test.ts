// A tool call that needs approvals is issued its nonce exactly when enough approvers agreed to exactly it, in time; asked
// over the kernel's own socket, with time held in the hand.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { canonicalBytes } from '../../../protocol/canonical.js'
import { governedIntentHash } from '../../../protocol/governed-intent.js'
import { valueHash } from '../../../protocol/kernel-receipt.js'
import { verifyProposal } from '../../../protocol/threshold-proposal.js'
import { refusalOf } from '../../support/approval-world.js'
import { APPROVER_KEYS, APPROVERS, wordOn } from '../../support/approvers.js'
import { TestExecutor } from '../../support/caller-executor.js'
import { type CallApprovalWorld, openCallApprovals } from '../../support/call-approvals.js'
import {
  callKernel,
  callUnder,
  contextAt,
  preflight,
  reserveWith,
  startWith,
  tokenOf,
} from '../../support/tool-call.js'

let world: CallApprovalWorld
beforeEach(async () => {
  world = await openCallApprovals()
})
afterEach(() => world.kernel.remove())

/** Both of the approvers that a call needs. */
async function approve(operationId: string) {
  await world.say(operationId, 'lead')
  return world.say(operationId, 'security')
}

describe('a call that needs approvals', () => {
  test('waits with its hold and without a nonce, and is shown as exactly what it is', async () => {
    const cost = { currency: 'EUR', units: 7 }
    const token = world.token({ max_cost_per_invocation: cost, max_invocations: 1 })
    const request = callUnder(token, { params: { note: 'for the lead' } })
    const answer = await preflight(world.kernel, request)
    expect(answer).toMatchObject({
      code: 'approval_required',
      executionNonce: null,
      reason: expect.stringContaining('waits for 2 approvals') as string,
      state: 'approval_required',
      verdict: 'pending_approval',
    })
    expect(await preflight(world.kernel, request)).toEqual(answer)
    expect(await preflight(world.kernel, callUnder(token))).toMatchObject({
      check: 'budget',
      verdict: 'deny',
    })
    const operationId = answer.operationId as string
    const { intent, proposal } = await world.kernel.client.call('approval_show', { operationId })
    expect(intent).toMatchObject({
      body: {
        agent_public_key: world.kernel.caller.publicKey,
        arguments_bytes: canonicalBytes(request.params).length,
        arguments_sha256: valueHash(request.params),
        capability_id: token.id,
        maximum_cost: cost,
        operation_id: operationId,
        server_id: 'notes',
        tool_name: 'append',
      },
      kind: 'tool_call',
    })
    expect(governedIntentHash(intent)).toBe(proposal.body.governedIntentHash)
    const pins = { approvers: APPROVERS, policyAuthority: world.kernel.keys.kernel.publicKey }
    expect(() => verifyProposal(proposal, pins)).not.toThrow()
    const { approvals } = await world.kernel.client.call('approval_list', { limit: 10 })
    expect(approvals).toMatchObject([{ approved: 0, grantId: token.id, operationId, required: 2 }])
  })

  test('is issued its nonce by the same preflight once they agreed, and goes on from there', async () => {
    const { operationId, request } = await world.waiting()
    const none = await preflight(world.kernel, request)
    expect(await reserveWith(world.kernel, request, none)).toMatchObject({
      reason: expect.stringContaining('preflight returned no nonce') as string,
    })
    expect(await world.say(operationId, 'lead')).toMatchObject({ approved: 1, state: 'approval_required' })
    expect(await preflight(world.kernel, request)).toMatchObject({ verdict: 'pending_approval' })
    expect(await world.say(operationId, 'owner')).toMatchObject({ approved: 2, state: 'approval_reserved' })
    world.clock.pass(200_000)
    const approved = await preflight(world.kernel, request)
    expect(approved).toMatchObject({ operationId, state: 'approval_reserved', verdict: 'allow' })
    expect(await preflight(world.kernel, request)).toEqual(approved)
    const ready = await reserveWith(world.kernel, request, approved)
    expect(ready).toMatchObject({ operationId, state: 'ready_to_dispatch', verdict: 'allow' })
    expect(await startWith(world.kernel, request, ready)).toMatchObject({ code: 'executor_unpinned' })
    const { explanation } = await world.kernel.client.call('explain', { id: operationId })
    expect(explanation.history.map(({ to }) => to)).toEqual([
      'prepared',
      'approval_required',
      'approval_required',
      'budget_authorized',
      'approval_reserved',
      'approval_reserved',
      'ready_to_dispatch',
    ])
  })

  test('goes on after a restart at each of its steps', async () => {
    const { operationId, request } = await world.waiting()
    await world.kernel.restart()
    await approve(operationId)
    await world.kernel.restart()
    const approved = await preflight(world.kernel, request)
    await world.kernel.restart()
    expect(await reserveWith(world.kernel, request, approved)).toMatchObject({ state: 'ready_to_dispatch' })
  })

  test('is taken back with its hold by one denial, and says who denied it', async () => {
    const token = world.token({ max_invocations: 1 })
    const { operationId, request } = await world.waiting(callUnder(token))
    await world.say(operationId, 'lead')
    expect(await world.say(operationId, 'lead', { decision: 'denied' })).toMatchObject({
      state: 'compensated_before_dispatch',
    })
    expect(await preflight(world.kernel, request)).toMatchObject({
      code: 'approval_denied',
      reason: expect.stringContaining('denied by lead') as string,
      receipt: { decision: { guard: 'approval', verdict: 'deny' } },
      verdict: 'deny',
    })
    expect(await preflight(world.kernel, callUnder(token))).toMatchObject({ verdict: 'pending_approval' })
  })

  test('is given back at the deadline, approved or not', async () => {
    const [open, agreed] = [await world.waiting(), await world.waiting()]
    await approve(agreed.operationId)
    for (let passed = 0; passed < 900; passed += 180) {
      world.clock.pass(180_000)
      await world.kernel.client.call('status', {})
    }
    for (const { operationId, request } of [open, agreed]) {
      await vi.waitFor(
        async () => expect(await world.stateOf(operationId)).toBe('compensated_before_dispatch'),
        { timeout: 5_000 },
      )
      expect((await preflight(world.kernel, request)).verdict).toBe('deny')
    }
  })

  test('is judged anew when its nonce is issued: approvals outlive neither a revocation nor their approvers', async () => {
    const { operationId, request } = await world.waiting()
    await approve(operationId)
    await world.kernel.restart({ ...world.options, approvers: APPROVERS.slice(0, 2) })
    expect(await preflight(world.kernel, request)).toMatchObject({
      check: 'approval',
      reason: expect.stringContaining('changed since') as string,
      state: 'approval_reserved',
      verdict: 'deny',
    })
  })
})

test('an approved call is delivered to its executor, and to no other that is pinned meanwhile', async () => {
  const executor = new TestExecutor()
  await world.kernel.restart({ ...world.options, callerExecutor: executor.pin })
  const [one, other] = [await world.waiting(), await world.waiting()]
  for (const { operationId } of [one, other]) await approve(operationId)
  const ready = await reserveWith(world.kernel, one.request, await preflight(world.kernel, one.request))
  expect(await startWith(world.kernel, one.request, ready)).toMatchObject({
    authorization: { authorization: { executor: executor.pin } },
    executionAuthorized: true,
    operationId: one.operationId,
  })
  await world.kernel.restart({ ...world.options, callerExecutor: new TestExecutor().pin })
  expect(await preflight(world.kernel, other.request)).toMatchObject({ code: 'executor_changed' })
})

describe('an approval', () => {
  test('of one call counts for no other, nor for the same id with other arguments', async () => {
    const one = await world.waiting()
    const other = await world.waiting()
    const shown = await world.kernel.client.call('approval_show', { operationId: one.operationId })
    const approval = wordOn(shown, APPROVER_KEYS.lead, { clock: world.clock })
    const given = { approval, operationId: other.operationId }
    expect(await refusalOf(() => world.kernel.client.call('approval_submit', given))).toMatchObject({
      code: 'approval_mismatch',
    })
    expect(await world.stateOf(other.operationId)).toBe('approval_required')
    await approve(one.operationId)
    const changed = { ...one.request, params: { note: 'other arguments' } }
    expect(await preflight(world.kernel, changed)).toMatchObject({ code: 'request_binding_mismatch' })
    const approved = await preflight(world.kernel, one.request)
    expect(await reserveWith(world.kernel, changed, approved)).toMatchObject({
      code: 'request_binding_mismatch',
    })
    expect(await reserveWith(world.kernel, other.request, approved)).toMatchObject({ verdict: 'deny' })
  })

  test('is given once: its id serves no second call', async () => {
    const [one, other] = [await world.waiting(), await world.waiting()]
    await world.say(one.operationId, 'lead', { id: 'approval-1' })
    expect(await refusalOf(() => world.say(other.operationId, 'lead', { id: 'approval-1' }))).toMatchObject({
      code: 'approval_repeated',
    })
    expect(await refusalOf(() => world.say(one.operationId, 'lead', { id: 'approval-2' }))).toMatchObject({
      code: 'approval_repeated',
    })
  })

  test('that a start presents is the one that was handed in, or refused by name', async () => {
    const { operationId, request } = await world.waiting()
    const shown = await world.kernel.client.call('approval_show', { operationId })
    const own = wordOn(shown, APPROVER_KEYS.lead, { clock: world.clock })
    await world.kernel.client.call('approval_submit', { approval: own, operationId })
    await world.say(operationId, 'security')
    const { executionNonce } = await reserveWith(
      world.kernel,
      request,
      await preflight(world.kernel, request),
    )
    if (executionNonce === null) throw new Error('expected a nonce')
    const start = { arguments: request.params, context: contextAt(3), executionNonce }
    const strange = wordOn(shown, APPROVER_KEYS.owner, { clock: world.clock })
    const answered = []
    for (const credentials of [
      { approval_tokens: [own], threshold_approval_proposal: shown.proposal },
      { approval_tokens: [own, strange] },
      { approval_token: strange },
    ]) {
      answered.push((await world.kernel.client.call('call_start', { ...start, credentials })).code)
    }
    expect(answered).toEqual(['executor_unpinned', 'approval_mismatch', 'approval_mismatch'])
  })
})

test('a grant asks for one approval from its threshold on, and always where its cost has no bound', async () => {
  const kernel = await callKernel({ approvers: APPROVERS })
  const verdictUnder = async (units: number | null) => {
    const constraints = [{ type: 'require_approval_above' as const, value: { threshold_units: 10 } }]
    const cost = units === null ? {} : { max_cost_per_invocation: { currency: 'EUR', units } }
    return (await preflight(kernel, callUnder(tokenOf(kernel, { constraints, ...cost })))).verdict
  }
  try {
    expect(await verdictUnder(9)).toBe('allow')
    expect(await verdictUnder(10)).toBe('pending_approval')
    expect(await verdictUnder(null)).toBe('pending_approval')
  } finally {
    await kernel.remove()
  }
})

test('a call under the longest id of a token is listed as every other', async () => {
  const now = Math.floor(world.clock.unixMs() / 1_000)
  const changes = { expires_at: now + 3_600, id: 'c'.repeat(400), issued_at: now }
  const { operationId } = await world.waiting(callUnder(tokenOf(world.kernel, {}, changes)))
  const { approvals } = await world.kernel.client.call('approval_list', { limit: 10 })
  expect(approvals).toMatchObject([{ grantId: 'c'.repeat(400), operationId }])
})

test('a call whose grant asks for an approver where there is none is refused before anything is held', async () => {
  const nobody = await openCallApprovals(0, { approvers: [] })
  const constraints = [{ type: 'require_approval_above', value: { threshold_units: 0 } }] as const
  try {
    const refused = await preflight(nobody.kernel, callUnder(nobody.token({ constraints })))
    expect(refused).toMatchObject({ code: 'approval_unavailable', operationId: null, verdict: 'deny' })
  } finally {
    await nobody.kernel.remove()
  }
})

test('a tool that needs more approvers than there are is refused with the settings, by its name', async () => {
  await expect(openCallApprovals(APPROVERS.length + 1)).rejects.toThrow(
    /tool append on notes refused: expected at least 4 approvers for its requiredApprovals, got 3/,
  )
})
