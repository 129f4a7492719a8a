// Which reply of a route every answer of a kernel becomes, and which of them are the one failure: as a table. What a real
// kernel answers is in test/integration/caller-delivery-over-http.test.ts.
import { expect, test } from 'vitest'
import type { Kernel } from '../../kernel/kernel.js'
import { admitPublicKey } from '../../protocol/keys.js'
import type { ReportAnswer, StartAnswer } from '../../protocol/tool-call-rpc.js'
import { callerKernelOf } from '../../sidecar/embedded-kernel.js'
import { OWN_KEYS } from '../support/own-request.js'
import { call } from '../support/own-tokens.js'
import { OWN } from '../support/sidecar.js'

type Answer = StartAnswer & ReportAnswer

const agent = admitPublicKey(OWN_KEYS.caller.publicKey, 'agent')
const receipt = OWN.reserved.status === 'reserved' ? OWN.reserved.receipt : null
const nothing: Answer = {
  authorization: null,
  check: null,
  code: null,
  executionAuthorized: false,
  executionNonce: null,
  operationId: 'ab'.repeat(32),
  output: null,
  reason: null,
  receipt,
  state: null,
  verdict: 'allow',
}
const denied = { check: 'grant', code: 'capability_denied', verdict: 'deny' } as const
const { execution_nonce: executionNonce } = OWN.startBody
const { authorization } = OWN.reportBody
const output = { kind: 'value', value: { written: true } } as const

const answering = (changes: Partial<Answer>) => {
  const answer = () => Promise.resolve({ ...nothing, ...changes })
  const calls = { reconcile: answer, reserveCall: answer, start: answer }
  const callerDelivery = { executor: null, isDurable: true }
  return callerKernelOf({ callerDelivery, kernel: { calls } as unknown as Kernel })
}

test.each<[string, Partial<Answer>, string]>([
  ['reserved', { executionNonce, state: 'ready_to_dispatch' }, 'reserved'],
  ['denied', { ...denied }, 'deny'],
  [
    'waiting for people',
    { verdict: 'pending_approval', state: 'approval_required', receipt: null },
    'pending_approval',
  ],
  ['started already', { state: 'awaiting_caller_report' }, 'fails'],
  ['ended already', { state: 'completed' }, 'fails'],
  ['judged and not reserved', { executionNonce, state: 'prepared' }, 'fails'],
  ['denied without a receipt', { ...denied, receipt: null }, 'fails'],
])('an evaluate that is %s', async (_name, changes, expected) => {
  const reply = await answering(changes)
    .evaluate(agent, call)
    .catch(() => ({ status: 'fails' }))
  expect(reply).toMatchObject({ status: expected })
  expect(JSON.stringify(reply)).not.toContain('"execution_authorized":true')
})

test.each<[string, Partial<Answer>, string]>([
  ['committed', { authorization, state: 'awaiting_caller_report' }, 'dispatch_committed'],
  ['repeated after its end', { authorization, state: 'completed' }, 'dispatch_committed'],
  ['denied by a live judgement', { ...denied }, 'deny'],
  ['denied by its budget', { ...denied, check: 'budget', code: 'grant_exhausted' }, 'deny'],
  ['refused by the operation', { ...denied, check: 'admission', code: 'execution_nonce_expired' }, 'fails'],
  ['of a revoked capability', { ...denied, check: 'revocation', code: 'capability_revoked' }, 'fails'],
  ['of a revoked ancestor', { ...denied, check: 'delegation', code: 'capability_revoked' }, 'fails'],
  ['allowed without an authorization', { state: 'dispatch_committed' }, 'fails'],
  ['denied without a receipt', { ...denied, receipt: null }, 'fails'],
])('a start that is %s', async (_name, changes, expected) => {
  const reply = await answering(changes)
    .start(OWN.startBody)
    .catch(() => ({ status: 'fails' }))
  expect(reply).toMatchObject({ status: expected })
})

test.each<[string, Partial<Answer>, string]>([
  ['reconciled', { output, state: 'completed' }, 'reconciled'],
  [
    'withheld by guards',
    { ...denied, check: 'output', code: 'guard_denied', state: 'denied_after_delivery' },
    'deny',
  ],
  ['withheld, and its output came along', { ...denied, check: 'output', output }, 'deny'],
  ['refused by the operation', { ...denied, check: 'admission', code: 'caller_delivery_signature' }, 'fails'],
  ['not at its end', { output, state: 'finalizing' }, 'fails'],
  ['ended without an output', { state: 'completed' }, 'fails'],
])('a report that is %s', async (_name, changes, expected) => {
  const reply = await answering(changes)
    .report(OWN.reportBody)
    .catch(() => ({ status: 'fails' }))
  expect(reply).toMatchObject({ status: expected })
  if (expected === 'deny') expect(reply).toMatchObject({ output: null })
})
