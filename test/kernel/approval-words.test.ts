// An approver's word counts for one operation, once, in time, and only by its signature; asked over the host socket.
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ApprovalWorld, refusalOf } from '../support/approval-world.js'
import { APPROVER_KEYS, wordOn } from '../support/approvers.js'
import { announce, requestUnder } from '../support/brokered-operation.js'
import { issueGrant } from '../support/kernel.js'

let world: ApprovalWorld
beforeEach(async () => {
  world = await ApprovalWorld.open()
})
afterEach(() => world.kernel.remove())

describe('an approval', () => {
  test('of one operation is refused by name for another, and changes neither', async () => {
    const wide = await issueGrant(world.kernel, { requiredApprovals: 2 }, world.clock)
    const [one, other] = [await world.waiting(), await world.waiting(wide)]
    const old = wordOn(await world.caseOf(one.operationId), APPROVER_KEYS.lead, { clock: world.clock })
    const refusal = await refusalOf(() =>
      world.kernel.client.call('approval_submit', { approval: old, operationId: other.operationId }),
    )
    expect(refusal).toMatchObject({ code: 'approval_mismatch' })
    for (const { operationId } of [one, other])
      expect((await world.caseOf(operationId)).view.approved).toBe(0)
  })

  test('of the old arguments is refused with new ones that name it', async () => {
    const { operationId } = await world.waiting()
    const shown = await world.caseOf(operationId)
    const old = wordOn(shown, APPROVER_KEYS.lead, {
      clock: world.clock,
      governed_intent_hash: 'f'.repeat(64),
    })
    const submitted = () => world.kernel.client.call('approval_submit', { approval: old, operationId })
    expect(await refusalOf(submitted)).toMatchObject({
      code: 'approval_mismatch',
      message: expect.stringContaining('governed_intent_hash') as string,
    })
  })

  test('counts once: repeated it changes nothing, of the same approver or id it is refused', async () => {
    const { operationId } = await world.waiting()
    const shown = await world.caseOf(operationId)
    const approval = wordOn(shown, APPROVER_KEYS.lead, { clock: world.clock })
    const submit = () => world.kernel.client.call('approval_submit', { approval, operationId })
    expect([(await submit()).approved, (await submit()).approved]).toEqual([1, 1])
    const { version } = await world.kernel.client.call('inspect', { operationId })
    await submit()
    expect((await world.kernel.client.call('inspect', { operationId })).version).toBe(version)
    expect(await refusalOf(() => world.say(operationId, 'lead'))).toMatchObject({ code: 'approval_repeated' })
    expect(await refusalOf(() => world.say(operationId, 'security', { id: approval.id }))).toMatchObject({
      code: 'approval_repeated',
    })
  })

  test('of nobody eligible, unsigned or out of time is refused', async () => {
    const { operationId } = await world.waiting()
    const shown = await world.caseOf(operationId)
    const foreign = wordOn(shown, world.kernel.caller, { clock: world.clock })
    const forged = {
      ...wordOn(shown, APPROVER_KEYS.lead, { clock: world.clock }),
      signature: foreign.signature,
    }
    for (const approval of [foreign, forged]) {
      const submit = () => world.kernel.client.call('approval_submit', { approval, operationId })
      expect(await refusalOf(submit)).toMatchObject({ code: 'authorization_denied' })
    }
    const short = wordOn(shown, APPROVER_KEYS.lead, {
      clock: world.clock,
      expires_at: shown.proposal.body.proposalCreatedAt + 1,
    })
    world.clock.pass(1_000)
    const late = () => world.kernel.client.call('approval_submit', { approval: short, operationId })
    expect(await refusalOf(late)).toMatchObject({ code: 'approval_expired' })
    expect((await world.caseOf(operationId)).view.approved).toBe(0)
  })

  test('that expired before the set was complete counts no more, and its approver may speak again', async () => {
    const { announced, operationId } = await world.waiting()
    const created = Math.floor(world.clock.unixMs() / 1_000)
    await world.say(operationId, 'lead', { expires_at: created + 10 })
    world.clock.pass(10_000)
    expect(await world.say(operationId, 'security')).toMatchObject({ state: 'approval_required' })
    expect(await world.say(operationId, 'lead')).toMatchObject({ state: 'approval_reserved' })
    expect((await world.reserve(world.fresh(announced))).operationId).toBe(operationId)
  })

  test('that expired before its host asked again is no approval any more', async () => {
    const { announced, operationId } = await world.waiting()
    const created = Math.floor(world.clock.unixMs() / 1_000)
    await world.say(operationId, 'lead', { expires_at: created + 10 })
    await world.say(operationId, 'security')
    world.clock.pass(10_000)
    expect(await refusalOf(() => world.reserve(world.fresh(announced)))).toMatchObject({
      code: 'approval_expired',
    })
  })

  test('of an operation that needs none is refused', async () => {
    const { operationId } = await world.waiting()
    const free = await issueGrant(world.kernel, {}, world.clock)
    const answer = await world.reserve(announce(world.kernel, free, requestUnder(free), world.clock))
    const approval = wordOn(await world.caseOf(operationId), APPROVER_KEYS.lead, { clock: world.clock })
    const submit = () =>
      world.kernel.client.call('approval_submit', { approval, operationId: answer.operationId })
    expect(await refusalOf(submit)).toMatchObject({ code: 'operation_state' })
    expect(await refusalOf(() => world.caseOf(answer.operationId))).toMatchObject({ code: 'operation_state' })
  })
})
