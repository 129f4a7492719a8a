// An operation of a grant that asks for approvals goes on exactly when enough approvers agreed to exactly it, in time;
// asked over the real host socket, with time held in the hand.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { governedIntentHash } from '../../protocol/governed-intent.js'
import { encode } from '../../protocol/codec.js'
import type { ApprovalMembers } from '../../protocol/approval-token.js'
import type { BrokerError } from '../../protocol/errors.js'
import { Grant } from '../../protocol/grant.js'
import type { ReserveRequest } from '../../protocol/kernel-rpc.js'
import { proposalHash, verifyProposal } from '../../protocol/threshold-proposal.js'
import { APPROVER_KEYS, type ApproverName, APPROVERS, wordOn } from '../support/approvers.js'
import { announce, executeOf, requestUnder, startOf } from '../support/brokered-operation.js'
import { HeldClock } from '../support/clock.js'
import {
  approve as approveAsAdministrator,
  grantFor,
  issueGrant,
  makeTestKernel,
  type TestKernel,
} from '../support/kernel.js'
import { ScriptedRecords } from '../support/scripted-records.js'

const TIMEOUT_MS = 900_000

let clock: HeldClock
let kernel: TestKernel
let grant: Grant
beforeEach(async () => {
  clock = new HeldClock(Math.floor(Date.now() / 1_000) * 1_000)
  kernel = await makeTestKernel({ approvers: APPROVERS, clock, records: new ScriptedRecords() })
  grant = await issueGrant(kernel, { maximumExecutions: 1, requiredApprovals: 2 }, clock)
})
afterEach(() => kernel.remove())

async function refusalOf(act: () => Promise<unknown>): Promise<BrokerError> {
  return act().then(
    () => expect.fail('nothing was refused'),
    (error: unknown) => error as BrokerError,
  )
}
const reserve = (announced: ReserveRequest) => kernel.client.call('reserve', announced)
const fresh = (announced: ReserveRequest): ReserveRequest => ({
  ...announced,
  proofIssuedAtUnixSeconds: Math.floor(clock.unixMs() / 1_000),
})
const caseOf = (operationId: string) => kernel.client.call('approval_show', { operationId })
const stateOf = async (operationId: string) => (await kernel.client.call('inspect', { operationId })).state
const heldOf = async ({ grantId }: Grant) => (await kernel.client.call('show_grant', { grantId })).held

/** A request that waits for its approvals. */
async function waiting(under = grant) {
  const request = requestUnder(under)
  const announced = announce(kernel, under, request, clock)
  const refusal = await refusalOf(() => reserve(announced))
  expect(refusal).toMatchObject({ code: 'approval_required', outcome: 'not_started' })
  return { announced, operationId: refusal.operationId as string, request }
}

/** Lets time pass without a connection that is idle for too long. */
async function passBusily(milliseconds: number): Promise<void> {
  for (let left = milliseconds; left > 0; left -= 200_000) {
    clock.pass(Math.min(left, 200_000))
    await kernel.client.call('status', {})
  }
}

async function say(operationId: string, who: ApproverName, changes: Partial<ApprovalMembers> = {}) {
  const approval = wordOn(await caseOf(operationId), APPROVER_KEYS[who], { clock, ...changes })
  return kernel.client.call('approval_submit', { approval, operationId })
}

describe('an operation that needs approvals', () => {
  test('waits with its hold, is shown as exactly what it is, and mints nothing meanwhile', async () => {
    const { announced, operationId } = await waiting()
    expect(await stateOf(operationId)).toBe('approval_required')
    expect(await heldOf(grant)).toBe(1)
    const shown = await caseOf(operationId)
    expect(shown.intent.body).toMatchObject({
      action_parameter_hash: announced.requestDigest,
      body_bytes: announced.bodyBytes,
      body_sha256: announced.bodySha256,
      credential: grant.credential,
      destination: grant.destination,
      operation_id: operationId,
    })
    expect(governedIntentHash(shown.intent)).toBe(shown.proposal.body.governedIntentHash)
    const pins = { approvers: APPROVERS, policyAuthority: kernel.keys.kernel.publicKey }
    expect(() => verifyProposal(shown.proposal, pins)).not.toThrow()
    expect(shown.proposal.body.proposalDeadline - shown.proposal.body.proposalCreatedAt).toBe(900)
    const { explanation } = await kernel.client.call('explain', { id: operationId })
    expect(explanation).toMatchObject({
      mover: 'approver',
      next: expect.stringContaining('approvers') as string,
    })
    const { approvals } = await kernel.client.call('approval_list', { limit: 10 })
    expect(approvals).toMatchObject([{ approved: 0, operationId, required: 2, state: 'approval_required' }])
    const release = () => kernel.client.call('authorize_release', { operationId })
    expect(await refusalOf(release)).toMatchObject({ code: 'operation_state' })
  })

  test('goes on under the same identity when the last approval is there and its host asks again', async () => {
    const { announced, operationId, request } = await waiting()
    expect(await say(operationId, 'lead')).toMatchObject({ approved: 1, state: 'approval_required' })
    expect(await refusalOf(() => reserve(fresh(announced)))).toMatchObject({
      code: 'approval_required',
      operationId,
    })
    expect(await say(operationId, 'security')).toMatchObject({ approved: 2, state: 'approval_reserved' })
    clock.pass(200_000)
    expect(await refusalOf(() => reserve(announced))).toMatchObject({ code: 'authorization_denied' })
    const asked = fresh(announced)
    const answer = await reserve(asked)
    expect(answer.operationId).toBe(operationId)
    expect(answer.executionNonce.nonce.issued_at).toBe(asked.proofIssuedAtUnixSeconds)
    expect(await reserve(asked)).toEqual(answer)
    const execute = executeOf(kernel, asked, answer, request)
    await kernel.client.call('authorize_registration', { execute, operationId })
    await kernel.client.call('start', startOf({ announced: asked, answer, execute, operationId }))
    expect(await stateOf(operationId)).toBe('dispatch_committed')
    expect(await kernel.client.call('show_grant', { grantId: grant.grantId })).toMatchObject({
      executions: 1,
      held: 0,
    })
  })

  test('keeps its approvals over a restart', async () => {
    const { announced, operationId } = await waiting()
    await say(operationId, 'owner')
    await kernel.restart()
    await say(operationId, 'lead')
    await kernel.restart()
    expect((await reserve(fresh(announced))).operationId).toBe(operationId)
  })

  test('is taken back by one denial, also of one who had approved', async () => {
    const { announced, operationId } = await waiting()
    await say(operationId, 'lead')
    expect(await say(operationId, 'lead', { decision: 'denied' })).toMatchObject({
      state: 'compensated_before_dispatch',
    })
    expect(await heldOf(grant)).toBe(0)
    const { receipt } = await kernel.client.call('show_receipt', { operationId, receiptId: null })
    expect(receipt.decision).toEqual({ guard: 'approval', reason: 'denied by lead', verdict: 'deny' })
    expect(await refusalOf(() => reserve(fresh(announced)))).toMatchObject({
      code: 'approval_denied',
      message: expect.stringContaining('denied by lead') as string,
    })
    expect(await refusalOf(() => say(operationId, 'security'))).toMatchObject({ code: 'operation_state' })
  })

  test('is given back at its deadline, whether it was approved or not', async () => {
    const wide = await issueGrant(kernel, { requiredApprovals: 1 }, clock)
    const [undecided, approved] = [await waiting(), await waiting(wide)]
    await say(approved.operationId, 'lead')
    await passBusily(TIMEOUT_MS - 1)
    expect(await stateOf(undecided.operationId)).toBe('approval_required')
    clock.pass(1)
    for (const { announced, operationId } of [undecided, approved]) {
      await vi.waitFor(async () => expect(await stateOf(operationId)).toBe('compensated_before_dispatch'), {
        timeout: 5_000,
      })
      expect(await refusalOf(() => reserve(fresh(announced)))).toMatchObject({ code: 'approval_expired' })
    }
    expect([await heldOf(grant), await heldOf(wide)]).toEqual([0, 0])
  })

  test('is taken back at the next start when its deadline passed meanwhile', async () => {
    const { operationId } = await waiting()
    clock.pass(TIMEOUT_MS)
    await kernel.restart()
    expect(await stateOf(operationId)).toBe('compensated_before_dispatch')
  })

  test('can be cancelled by its host', async () => {
    const { operationId } = await waiting()
    expect(await kernel.client.call('cancel', { operationId })).toMatchObject({
      state: 'compensated_before_dispatch',
    })
    expect(await heldOf(grant)).toBe(0)
  })

  test('is not answered once its grant was revoked or its approvers changed', async () => {
    const { announced, operationId } = await waiting()
    await say(operationId, 'lead')
    await say(operationId, 'security')
    await kernel.restart({ approvers: APPROVERS.slice(0, 2), clock, records: new ScriptedRecords() })
    expect(await refusalOf(() => reserve(fresh(announced)))).toMatchObject({
      code: 'authorization_denied',
      message: expect.stringContaining('changed since') as string,
    })
    expect(await stateOf(operationId)).toBe('approval_reserved')
  })
})

describe('an approval', () => {
  test('of one operation is refused by name for another, and changes neither', async () => {
    const wide = await issueGrant(kernel, { requiredApprovals: 2 }, clock)
    const [one, other] = [await waiting(), await waiting(wide)]
    const old = wordOn(await caseOf(one.operationId), APPROVER_KEYS.lead, { clock })
    const refusal = await refusalOf(() =>
      kernel.client.call('approval_submit', { approval: old, operationId: other.operationId }),
    )
    expect(refusal).toMatchObject({ code: 'approval_mismatch' })
    for (const { operationId } of [one, other]) expect((await caseOf(operationId)).view.approved).toBe(0)
  })

  test('of the old arguments is refused with new ones that name it', async () => {
    const { operationId } = await waiting()
    const shown = await caseOf(operationId)
    const old = wordOn(shown, APPROVER_KEYS.lead, { clock, governed_intent_hash: 'f'.repeat(64) })
    const submitted = () => kernel.client.call('approval_submit', { approval: old, operationId })
    expect(await refusalOf(submitted)).toMatchObject({
      code: 'approval_mismatch',
      message: expect.stringContaining('governed_intent_hash') as string,
    })
  })

  test('counts once: repeated it changes nothing, of the same approver or id it is refused', async () => {
    const { operationId } = await waiting()
    const shown = await caseOf(operationId)
    const approval = wordOn(shown, APPROVER_KEYS.lead, { clock })
    const submit = () => kernel.client.call('approval_submit', { approval, operationId })
    expect([(await submit()).approved, (await submit()).approved]).toEqual([1, 1])
    const { version } = await kernel.client.call('inspect', { operationId })
    await submit()
    expect((await kernel.client.call('inspect', { operationId })).version).toBe(version)
    expect(await refusalOf(() => say(operationId, 'lead'))).toMatchObject({ code: 'approval_repeated' })
    expect(await refusalOf(() => say(operationId, 'security', { id: approval.id }))).toMatchObject({
      code: 'approval_repeated',
    })
  })

  test('of nobody eligible, unsigned or out of time is refused', async () => {
    const { operationId } = await waiting()
    const shown = await caseOf(operationId)
    const foreign = wordOn(shown, kernel.caller, { clock })
    const forged = { ...wordOn(shown, APPROVER_KEYS.lead, { clock }), signature: foreign.signature }
    for (const approval of [foreign, forged]) {
      const submit = () => kernel.client.call('approval_submit', { approval, operationId })
      expect(await refusalOf(submit)).toMatchObject({ code: 'authorization_denied' })
    }
    const short = wordOn(shown, APPROVER_KEYS.lead, {
      clock,
      expires_at: shown.proposal.body.proposalCreatedAt + 1,
    })
    clock.pass(1_000)
    const late = () => kernel.client.call('approval_submit', { approval: short, operationId })
    expect(await refusalOf(late)).toMatchObject({ code: 'approval_expired' })
    expect((await caseOf(operationId)).view.approved).toBe(0)
  })

  test('that expired before the set was complete counts no more, and its approver may speak again', async () => {
    const { announced, operationId } = await waiting()
    const created = Math.floor(clock.unixMs() / 1_000)
    await say(operationId, 'lead', { expires_at: created + 10 })
    clock.pass(10_000)
    expect(await say(operationId, 'security')).toMatchObject({ state: 'approval_required' })
    expect(await say(operationId, 'lead')).toMatchObject({ state: 'approval_reserved' })
    expect((await reserve(fresh(announced))).operationId).toBe(operationId)
  })

  test('that expired before its host asked again is no approval any more', async () => {
    const { announced, operationId } = await waiting()
    const created = Math.floor(clock.unixMs() / 1_000)
    await say(operationId, 'lead', { expires_at: created + 10 })
    await say(operationId, 'security')
    clock.pass(10_000)
    expect(await refusalOf(() => reserve(fresh(announced)))).toMatchObject({ code: 'approval_expired' })
  })

  test('of an operation that needs none is refused', async () => {
    const { operationId } = await waiting()
    const free = await issueGrant(kernel, {}, clock)
    const answer = await reserve(announce(kernel, free, requestUnder(free), clock))
    const approval = wordOn(await caseOf(operationId), APPROVER_KEYS.lead, { clock })
    const submit = () => kernel.client.call('approval_submit', { approval, operationId: answer.operationId })
    expect(await refusalOf(submit)).toMatchObject({ code: 'operation_state' })
    expect(await refusalOf(() => caseOf(answer.operationId))).toMatchObject({ code: 'operation_state' })
  })
})

describe('a grant', () => {
  test('that asks for more approvals than there are approvers is not issued', async () => {
    const wanted = grantFor(kernel, { requiredApprovals: APPROVERS.length + 1 }, clock)
    const signed = approveAsAdministrator(kernel, 'issue_grant', encode(Grant, wanted), clock)
    expect(await refusalOf(() => kernel.client.call('issue_grant', wanted, signed))).toMatchObject({
      code: 'approval_unavailable',
    })
  })

  test('that ends sooner than people may be asked ends their time too', async () => {
    const now = Math.floor(clock.unixMs() / 1_000)
    const soon = await issueGrant(kernel, { expiresAtUnixSeconds: now + 60, requiredApprovals: 1 }, clock)
    const { operationId } = await waiting(soon)
    const { body } = (await caseOf(operationId)).proposal
    expect(body.proposalDeadline).toBe(now + 60)
    expect(proposalHash(body)).toMatch(/^[0-9a-f]{64}$/)
  })
})
