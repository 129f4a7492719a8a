// What the kernel tells of an operation, what a person may state of it, and what the same arguments mean twice.
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { AdmissionOperationDocument, decodeAdmissionOperation } from '../../../protocol/admission-document.js'
import { encode } from '../../../protocol/codec.js'
import { AcceptClock, Reconcile } from '../../../protocol/operation-rpc.js'
import {
  failureOf,
  receiptOf,
  registered,
  reserved,
  started,
  startOf,
  UNKNOWN,
} from '../../support/brokered-operation.js'
import { HeldClock } from '../../support/clock.js'
import { approve, issueGrant, makeTestKernel, type TestKernel } from '../../support/kernel.js'

let kernel: TestKernel
beforeEach(async () => {
  kernel = await makeTestKernel()
})
afterEach(() => kernel.remove())

const explained = async (id: string) => (await kernel.client.call('explain', { id })).explanation

async function unknownOperation() {
  const operation = await started(kernel, await issueGrant(kernel))
  const { operationId } = operation
  await kernel.client.call('finalize', { operationId, record: failureOf(kernel, operation, UNKNOWN) })
  return operation
}

describe('an inspected operation', () => {
  test('carries its document, which keeps to its own rules at every milestone', async () => {
    const operation = await registered(kernel, await issueGrant(kernel))
    const { operationId } = operation
    const seen: AdmissionOperationDocument[] = []
    const look = async () => {
      const { document } = await kernel.client.call('inspect', { operationId })
      seen.push(decodeAdmissionOperation(encode(AdmissionOperationDocument, document)))
    }
    await look()
    const { captured } = await kernel.client.call('start', startOf(operation))
    await look()
    const record = receiptOf(kernel, { ...operation, captured })
    await kernel.client.call('finalize', { operationId, record })
    await look()
    expect(seen.map(({ dispatch_state, state }) => [state, dispatch_state])).toEqual([
      ['ready_to_dispatch', 'not_committed'],
      ['dispatch_committed', 'committed'],
      ['completed', 'terminal'],
    ])
    expect(seen.map(({ attachments }) => Object.keys(attachments))).toEqual([
      ['broker_attempt', 'budget_hold_id', 'execution_nonce_id'],
      ['broker_attempt', 'budget_hold_id', 'execution_nonce_id'],
      ['broker_attempt', 'budget_hold_id', 'execution_nonce_id', 'tool_outcome_id'],
    ])
    expect(seen[1]?.dispatch_commit?.committed_version).toBe(seen[1]?.version)
    expect(seen[2]?.dispatch_commit).toEqual(seen[1]?.dispatch_commit)
  })

  test('whose document was changed by hand is refused by the rule that it breaks', async () => {
    const { operationId } = await started(kernel, await issueGrant(kernel))
    const { document } = await kernel.client.call('inspect', { operationId })
    const changed = (change: Partial<AdmissionOperationDocument>) => () =>
      decodeAdmissionOperation(encode(AdmissionOperationDocument, { ...document, ...change }))
    const commit = document.dispatch_commit as NonNullable<AdmissionOperationDocument['dispatch_commit']>
    const { budget_hold_id: _hold, ...withoutHold } = document.attachments
    expect(changed({})).not.toThrow()
    const faults: [Partial<AdmissionOperationDocument>, RegExp][] = [
      [{ dispatch_commit: null }, /dispatch_commit refused/],
      [{ dispatch_state: 'terminal' }, /dispatch_state refused/],
      [{ state: 'ready_to_dispatch', dispatch_state: 'not_committed' }, /dispatch_commit refused/],
      [{ state: 'mutation_ready', dispatch_state: 'not_applicable' }, /state refused/],
      [{ version: document.version + 1 }, /committed_version refused/],
      [{ coordinator_lease_epoch: 9 }, /coordinator_lease_epoch refused/],
      [{ attachments: withoutHold }, /attachment budget_hold_id refused/],
      [{ attachments: { ...document.attachments, threshold_proposal_hash: '00'.repeat(32) } }, /threshold/],
      [{ dispatch_commit: { ...commit, provider_attempt: null } }, /provider_attempt refused/],
    ]
    for (const [change, sentence] of faults) expect(changed(change)).toThrow(sentence)
  })
})

describe('an explanation', () => {
  test('says who moves it next, what is held, what happened and what to do, by either id', async () => {
    const { operationId, registration } = await registered(kernel, await issueGrant(kernel))
    const explanation = await explained(operationId)
    expect(explanation).toMatchObject({
      attempt: `${registration.ids.attemptId}: the broker cannot be reached, so it is not known`,
      capture: `held and not captured: ${registration.ids.holdId}; it is given back unless the operation starts`,
      mover: 'host',
      reconciliations: [],
      sharesArgumentsWith: [],
    })
    expect(explanation.next).toMatch(/before its nonce expires/)
    expect(explanation.history.map(({ version }) => version)).toEqual([1, 2, 3, 4, 5])
    expect(await explained(registration.ids.attemptId)).toEqual(explanation)
  })

  test('of a started operation names the commit that captured it', async () => {
    const { captured, operationId } = await started(kernel, await issueGrant(kernel))
    const { capture, mover } = await explained(operationId)
    expect(capture).toContain(`store commit ${captured.budgetCommitIndex}`)
    expect(mover).toBe('kernel')
  })

  test('of what nobody holds is refused', async () => {
    for (const id of ['0'.repeat(64), 'broker-attempt-x']) {
      await expect(explained(id)).rejects.toMatchObject({ code: 'operation_unknown' })
    }
  })
})

describe('a statement of what the provider did', () => {
  const state = (stated: Reconcile) =>
    kernel.client.call('reconcile', stated, approve(kernel, 'reconcile', encode(Reconcile, stated)))

  test('stands beside the operation and never changes its state; a second one stands beside the first', async () => {
    const { operationId } = await unknownOperation()
    const before = await kernel.client.call('inspect', { operationId })
    const stated = { operationId, provider: 'acted', statement: 'issue 7 exists, opened at noon' } as const
    await state(stated)
    await state({ ...stated, provider: 'did_not_act', statement: 'issue 7 was somebody else' })
    expect(await kernel.client.call('inspect', { operationId })).toEqual(before)
    const { reconciliations } = await explained(operationId)
    expect(reconciliations.map(({ stated: { provider } }) => provider)).toEqual(['acted', 'did_not_act'])
    expect(reconciliations[0]?.administrators).toEqual([kernel.administrator.publicKey])
  })

  test('repeated exactly is kept once; of other words its approval is refused', async () => {
    const { operationId } = await unknownOperation()
    const stated: Reconcile = { operationId, provider: 'not_known', statement: 'asked, no answer' }
    const authorization = approve(kernel, 'reconcile', encode(Reconcile, stated))
    const first = await kernel.client.call('reconcile', stated, authorization)
    expect(await kernel.client.call('reconcile', stated, authorization)).toEqual(first)
    await expect(
      kernel.client.call('reconcile', { ...stated, provider: 'acted' }, authorization),
    ).rejects.toMatchObject({ code: expect.stringMatching(/authorization_denied|conflict/) as string })
    expect((await explained(operationId)).reconciliations).toHaveLength(1)
  })

  test('needs a signature, and an operation that was dispatched', async () => {
    const { operationId } = await reserved(kernel, await issueGrant(kernel))
    const stated: Reconcile = { operationId, provider: 'acted', statement: 'seen' }
    await expect(state(stated)).rejects.toMatchObject({ code: 'operation_state' })
    const { operationId: other } = await unknownOperation()
    await expect(
      kernel.client.call('reconcile', { ...stated, operationId: other }, null),
    ).rejects.toMatchObject({ code: 'authorization_denied' })
  })
})

describe('the same arguments twice', () => {
  test('are marked in the list while the other is unresolved, and starting them is said in the log and in the answer', async () => {
    const grant = await issueGrant(kernel)
    const [one, other] = [await registered(kernel, grant), await registered(kernel, grant)]
    const { operations } = await kernel.client.call('list', { limit: 10 })
    const marks = new Map(operations.map(view => [view.operationId, view.sharesArgumentsWith]))
    expect(marks.get(one.operationId)).toEqual([other.operationId])
    expect(marks.get(other.operationId)).toEqual([one.operationId])
    const started = await kernel.client.call('start', startOf(one))
    expect(started.warnings).toEqual([
      {
        code: 'operation_shares_arguments',
        operationIds: [other.operationId],
        sentence: `started with the arguments of 1 operations whose effect is not known; see what became of them: chio explain ${other.operationId}`,
      },
    ])
    expect(await kernel.client.call('start', startOf(one))).toEqual(started)
    expect((await explained(one.operationId)).sharesArgumentsWith).toEqual([other.operationId])
    expect(kernel.events).toContainEqual(
      expect.objectContaining({ event: 'arguments_shared', operationId: one.operationId }),
    )
    await kernel.client.call('cancel', { operationId: other.operationId })
    expect((await explained(one.operationId)).sharesArgumentsWith).toEqual([])
    const { warnings: _resolved, ...quiet } = started
    expect(await kernel.client.call('start', startOf(one))).toEqual(quiet)
  })

  test('are not started where the configuration refuses it, until the other is resolved', async () => {
    await kernel.restart({ onSharedArguments: 'refuse' })
    const grant = await issueGrant(kernel)
    const [one, other] = [await registered(kernel, grant), await registered(kernel, grant)]
    await expect(kernel.client.call('start', startOf(one))).rejects.toThrow(
      new RegExp(`expected arguments that no unresolved operation has, got those of ${other.operationId}`),
    )
    await kernel.client.call('cancel', { operationId: other.operationId })
    await kernel.client.call('start', startOf(one))
  })
})

test('a kernel that forgets says so in its log and in every receipt', async () => {
  await kernel.restart({ durableMode: 'off' })
  expect(kernel.events).toContainEqual({ level: 'warn', event: 'durable_mode_off' })
  const { operationId } = await reserved(kernel, await issueGrant(kernel))
  const shown = await kernel.client.call('show_receipt', { operationId, receiptId: null })
  expect(JSON.stringify(shown)).toContain('"durable_mode":"off"')
})

describe('a clock that jumped', () => {
  test('is accepted under a signature over what was looked at, back too, and admission goes on', async () => {
    const clock = new HeldClock(Date.now())
    await kernel.restart({ clock })
    const grant = await issueGrant(kernel, {}, clock)
    expect(await kernel.client.call('show_clock', {})).toMatchObject({ fault: null })
    clock.stepWall(-3_600_000)
    await expect(reserved(kernel, grant, clock)).rejects.toMatchObject({ code: 'clock_jumped' })
    const looked = await kernel.client.call('show_clock', {})
    expect(looked.fault).toMatch(/further behind/)
    expect((await kernel.client.call('status', {})).clockFault).toBe(looked.fault)
    const { highWaterUnixMs, wallUnixMs } = looked
    const accept = (accepted: AcceptClock) =>
      kernel.client.call(
        'accept_clock',
        accepted,
        approve(kernel, 'accept_clock', encode(AcceptClock, accepted), clock),
      )
    await expect(accept({ highWaterUnixMs: highWaterUnixMs + 1, wallUnixMs })).rejects.toMatchObject({
      code: 'conflict',
    })
    await expect(accept({ highWaterUnixMs, wallUnixMs: wallUnixMs - 3_600_000 })).rejects.toMatchObject({
      code: 'conflict',
    })
    await accept({ highWaterUnixMs, wallUnixMs })
    expect(await kernel.client.call('show_clock', {})).toMatchObject({ fault: null })
    await reserved(kernel, grant, clock)
  })
})
