// An operation of a grant that asks for approvals goes on exactly when enough approvers agreed to exactly it, in time;
// asked over the real host socket, with time held in the hand.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { encode } from '../../protocol/codec.js'
import { governedIntentHash } from '../../protocol/governed-intent.js'
import { Grant } from '../../protocol/grant.js'
import { proposalHash, verifyProposal } from '../../protocol/threshold-proposal.js'
import { ApprovalWorld, refusalOf } from '../support/approval-world.js'
import { APPROVERS } from '../support/approvers.js'
import { executeOf, startOf } from '../support/brokered-operation.js'
import { approve as approveAsAdministrator, grantFor, issueGrant, revokeGrant } from '../support/kernel.js'
import { ScriptedRecords } from '../support/scripted-records.js'

const TIMEOUT_MS = 900_000

let world: ApprovalWorld
beforeEach(async () => {
  world = await ApprovalWorld.open()
})
afterEach(() => world.kernel.remove())

describe('an operation that needs approvals', () => {
  test('waits with its hold, is shown as exactly what it is, and mints nothing meanwhile', async () => {
    const { announced, operationId } = await world.waiting()
    expect(await world.stateOf(operationId)).toBe('approval_required')
    expect(await world.heldOf(world.grant)).toBe(1)
    const shown = await world.caseOf(operationId)
    expect(shown.intent.body).toMatchObject({
      action_parameter_hash: announced.requestDigest,
      body_bytes: announced.bodyBytes,
      body_sha256: announced.bodySha256,
      credential: world.grant.credential,
      destination: world.grant.destination,
      operation_id: operationId,
    })
    expect(governedIntentHash(shown.intent)).toBe(shown.proposal.body.governedIntentHash)
    const pins = { approvers: APPROVERS, policyAuthority: world.kernel.keys.kernel.publicKey }
    expect(() => verifyProposal(shown.proposal, pins)).not.toThrow()
    expect(shown.proposal.body.proposalDeadline - shown.proposal.body.proposalCreatedAt).toBe(900)
    const { explanation } = await world.kernel.client.call('explain', { id: operationId })
    expect(explanation).toMatchObject({
      mover: 'approver',
      next: expect.stringContaining('approvers') as string,
    })
    const { approvals } = await world.kernel.client.call('approval_list', { limit: 10 })
    expect(approvals).toMatchObject([{ approved: 0, operationId, required: 2, state: 'approval_required' }])
    const release = () => world.kernel.client.call('authorize_release', { operationId })
    expect(await refusalOf(release)).toMatchObject({ code: 'operation_state' })
  })

  test('is marked beside others with its arguments, as one that waits for nobody', async () => {
    const under = await issueGrant(world.kernel, { maximumExecutions: 2, requiredApprovals: 2 }, world.clock)
    const [one, other] = [await world.waiting(under), await world.waiting(under)]
    const { operations } = await world.kernel.client.call('list', { limit: 10 })
    const marks = new Map(operations.map(view => [view.operationId, view.sharesArgumentsWith]))
    expect(marks.get(one.operationId)).toEqual([other.operationId])
    expect(marks.get(other.operationId)).toEqual([one.operationId])
  })

  test('goes on under the same identity when the last approval is there and its host asks again', async () => {
    const { announced, operationId, request } = await world.waiting()
    expect(await world.say(operationId, 'lead')).toMatchObject({ approved: 1, state: 'approval_required' })
    expect(await refusalOf(() => world.reserve(world.fresh(announced)))).toMatchObject({
      code: 'approval_required',
      operationId,
    })
    expect(await world.say(operationId, 'security')).toMatchObject({
      approved: 2,
      state: 'approval_reserved',
    })
    world.clock.pass(200_000)
    expect(await refusalOf(() => world.reserve(announced))).toMatchObject({ code: 'authorization_denied' })
    const asked = world.fresh(announced)
    const answer = await world.reserve(asked)
    expect(answer.operationId).toBe(operationId)
    expect(answer.executionNonce.nonce.issued_at).toBe(asked.proofIssuedAtUnixSeconds)
    expect(await world.reserve(asked)).toEqual(answer)
    const execute = executeOf(world.kernel, asked, answer, request)
    const registering = world.kernel.client.call('authorize_registration', { execute, operationId })
    const { attemptId } = (await registering).registration.ids
    const explained = (id: string) => world.kernel.client.call('explain', { id })
    expect(await explained(attemptId)).toEqual(await explained(operationId))
    await world.kernel.client.call('start', startOf({ announced: asked, answer, execute, operationId }))
    expect(await world.stateOf(operationId)).toBe('dispatch_committed')
    expect(await world.kernel.client.call('show_grant', { grantId: world.grant.grantId })).toMatchObject({
      executions: 1,
      held: 0,
    })
  })

  test('keeps its approvals over a restart', async () => {
    const { announced, operationId } = await world.waiting()
    await world.say(operationId, 'owner')
    await world.kernel.restart()
    await world.say(operationId, 'lead')
    await world.kernel.restart()
    expect((await world.reserve(world.fresh(announced))).operationId).toBe(operationId)
  })

  test('is taken back by one denial, also of one who had approved', async () => {
    const { announced, operationId } = await world.waiting()
    await world.say(operationId, 'lead')
    expect(await world.say(operationId, 'lead', { decision: 'denied' })).toMatchObject({
      state: 'compensated_before_dispatch',
    })
    expect(await world.heldOf(world.grant)).toBe(0)
    const { receipt } = await world.kernel.client.call('show_receipt', { operationId, receiptId: null })
    expect(receipt.decision).toEqual({ guard: 'approval', reason: 'denied by lead', verdict: 'deny' })
    expect(await refusalOf(() => world.reserve(world.fresh(announced)))).toMatchObject({
      code: 'approval_denied',
      message: expect.stringContaining('denied by lead') as string,
    })
    expect(await refusalOf(() => world.say(operationId, 'security'))).toMatchObject({
      code: 'operation_state',
    })
  })

  test('is given back at its deadline, whether it was approved or not', async () => {
    const wide = await issueGrant(world.kernel, { requiredApprovals: 1 }, world.clock)
    const [undecided, approved] = [await world.waiting(), await world.waiting(wide)]
    await world.say(approved.operationId, 'lead')
    await world.pass(TIMEOUT_MS - 1)
    expect(await world.stateOf(undecided.operationId)).toBe('approval_required')
    world.clock.pass(1)
    for (const { announced, operationId } of [undecided, approved]) {
      await vi.waitFor(
        async () => expect(await world.stateOf(operationId)).toBe('compensated_before_dispatch'),
        {
          timeout: 5_000,
        },
      )
      expect(await refusalOf(() => world.reserve(world.fresh(announced)))).toMatchObject({
        code: 'approval_expired',
      })
    }
    expect([await world.heldOf(world.grant), await world.heldOf(wide)]).toEqual([0, 0])
  })

  test('is taken back at the next start when its deadline passed meanwhile', async () => {
    const { operationId } = await world.waiting()
    world.clock.pass(TIMEOUT_MS)
    await world.kernel.restart()
    expect(await world.stateOf(operationId)).toBe('compensated_before_dispatch')
  })

  test('can be cancelled by its host', async () => {
    const { operationId } = await world.waiting()
    expect(await world.kernel.client.call('cancel', { operationId })).toMatchObject({
      state: 'compensated_before_dispatch',
    })
    expect(await world.heldOf(world.grant)).toBe(0)
  })

  test('is not answered once its grant was revoked', async () => {
    const { announced, operationId } = await world.waiting()
    await world.say(operationId, 'lead')
    await world.say(operationId, 'security')
    await revokeGrant(world.kernel, world.grant.grantId, world.clock)
    expect(await refusalOf(() => world.reserve(world.fresh(announced)))).toMatchObject({
      code: 'grant_revoked',
    })
    expect(await world.stateOf(operationId)).toBe('approval_reserved')
  })

  test('is answered by its first answer when two ask at once', async () => {
    const { announced, operationId } = await world.waiting()
    await world.say(operationId, 'lead')
    await world.say(operationId, 'security')
    const asked = world.fresh(announced)
    const [one, other] = await Promise.all([world.reserve(asked), world.reserve(asked)])
    expect(one).toEqual(other)
  })

  test('is not answered once its approvers changed', async () => {
    const { announced, operationId } = await world.waiting()
    await world.say(operationId, 'lead')
    await world.say(operationId, 'security')
    await world.kernel.restart({
      approvers: APPROVERS.slice(0, 2),
      clock: world.clock,
      records: new ScriptedRecords(),
    })
    expect(await refusalOf(() => world.reserve(world.fresh(announced)))).toMatchObject({
      code: 'authorization_denied',
      message: expect.stringContaining('changed since') as string,
    })
    expect(await world.stateOf(operationId)).toBe('approval_reserved')
  })
})

describe('a grant', () => {
  test('that asks for more approvals than there are approvers is not issued', async () => {
    const wanted = grantFor(world.kernel, { requiredApprovals: APPROVERS.length + 1 }, world.clock)
    const signed = approveAsAdministrator(world.kernel, 'issue_grant', encode(Grant, wanted), world.clock)
    expect(await refusalOf(() => world.kernel.client.call('issue_grant', wanted, signed))).toMatchObject({
      code: 'approval_unavailable',
    })
  })

  test('that ends sooner than people may be asked ends their time too', async () => {
    const now = Math.floor(world.clock.unixMs() / 1_000)
    const soon = await issueGrant(
      world.kernel,
      { expiresAtUnixSeconds: now + 60, requiredApprovals: 1 },
      world.clock,
    )
    const { operationId } = await world.waiting(soon)
    const { body } = (await world.caseOf(operationId)).proposal
    expect(body.proposalDeadline).toBe(now + 60)
    expect(proposalHash(body)).toMatch(/^[0-9a-f]{64}$/)
  })
})
