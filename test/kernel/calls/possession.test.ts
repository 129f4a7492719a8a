// The proof of possession at the start of a call: asked for by the grant, judged before the target, and kept as used in
// the commit of the start that it allowed, and in no other.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { presentedPossession } from '../../../kernel/calls/possession.js'
import { systemClock } from '../../../native/clock.js'
import { unixSeconds } from '../../../protocol/clock.js'
import type { JsonValue } from '../../../protocol/json.js'
import { type PossessionMembers, signPossession } from '../../../protocol/possession-proof.js'
import { coveringGrants } from '../../../protocol/scope.js'
import { valueHash } from '../../../protocol/kernel-receipt.js'
import type { ToolCallRequest } from '../../../protocol/tool-call.js'
import type { CallCredentials } from '../../../protocol/tool-call-rpc.js'
import type { Verified } from '../../../protocol/verified.js'
import type { CapabilityToken } from '../../../protocol/capability-token.js'
import { TestExecutor } from '../../support/caller-executor.js'
import { AdmissionWorld } from '../../support/admission-world.js'
import type { TestKernel } from '../../support/kernel.js'
import { callKernel, callUnder, contextAt, reservedCall, tokenOf } from '../../support/tool-call.js'

let kernel: TestKernel
beforeAll(async () => {
  kernel = await callKernel({ callerExecutor: new TestExecutor().pin })
})
afterAll(() => kernel.remove())

function proofOf(
  request: ToolCallRequest,
  changes: Partial<PossessionMembers> = {},
  { caller } = kernel as Pick<TestKernel, 'caller'>,
): JsonValue {
  const members = {
    action_hash: valueHash(request.params),
    agent_key: caller.publicKey,
    capability_id: request.capability_token.id,
    issued_at: unixSeconds(systemClock),
    nonce: randomUUID(),
    tool_name: request.tool,
    tool_server: request.server_id,
    ...changes,
  }
  return signPossession(members, caller)
}

async function started(request: ToolCallRequest, credentials: CallCredentials) {
  const { executionNonce } = await reservedCall(kernel, request)
  if (executionNonce === null) throw new Error('expected a nonce')
  const start = { arguments: request.params, context: contextAt(3), credentials, executionNonce }
  return kernel.client.call('call_start', start)
}

test('a grant that asks for a proof lets nothing start without one that is about this call', async () => {
  const asking = () => callUnder(tokenOf(kernel, { dpop_required: true }))
  const said = { check: 'proof_of_possession', code: 'possession_denied', verdict: 'deny' }
  expect(await started(asking(), {})).toMatchObject(said)
  const other = asking()
  expect(await started(asking(), { dpop_proof: proofOf(other) })).toMatchObject({
    ...said,
    reason: expect.stringContaining('capability_id') as string,
    state: 'ready_to_dispatch',
  })
  const one = asking()
  expect(await started(one, { dpop_proof: proofOf(one) })).toMatchObject({ executionAuthorized: true })
})

test('a proof that nobody asked for is judged all the same', async () => {
  const request = callUnder(tokenOf(kernel))
  expect(await started(request, { dpop_proof: proofOf(request, { tool_name: 'delete' }) })).toMatchObject({
    code: 'possession_denied',
  })
})

test('a proof starts one call: no other of the same token and arguments, and the same one again without it', async () => {
  const token = tokenOf(kernel, { dpop_required: true })
  const [one, other] = [callUnder(token), callUnder(token)]
  const credentials = { dpop_proof: proofOf(one) }
  expect(await started(one, credentials)).toMatchObject({ verdict: 'allow' })
  expect(await started(other, credentials)).toMatchObject({
    code: 'possession_replayed',
    state: 'ready_to_dispatch',
  })
  expect(await started(other, { dpop_proof: proofOf(other) })).toMatchObject({ verdict: 'allow' })
})

test('a used proof is known, whatever time it is, and stays used over an opening', async () => {
  const world = await AdmissionWorld.make()
  try {
    const { operationId } = await world.reserve(world.announcement())
    const of = { caller: world.people.caller, keys: world.keys }
    const request = callUnder(tokenOf(of, { dpop_required: true }))
    const token = request.capability_token as Verified<CapabilityToken>
    const covering = coveringGrants(token.scope, { parameters: {}, serverId: 'notes', toolName: 'append' })
    const call = {
      agentId: of.caller.publicKey,
      context: contextAt(1),
      nowUnixSeconds: unixSeconds(systemClock),
      request,
    }
    const use = (proof: JsonValue) =>
      world.tables.transaction('used', move => {
        const possession = presentedPossession(move, proof)
        const refusal = possession.judge(call, token, covering)
        if (refusal === null) possession.use(operationId)
        return refusal?.code ?? 'allowed'
      })
    const proof = proofOf(request, { nonce: 'once' }, of)
    expect(await use(proof)).toBe('allowed')
    await world.reopen()
    expect(await use(proof)).toBe('possession_replayed')
    expect(await use(proofOf(request, { issued_at: call.nowUnixSeconds - 1, nonce: 'once' }, of))).toBe(
      'possession_replayed',
    )
    expect(await use(proofOf(request, {}, of))).toBe('allowed')
  } finally {
    world.remove()
  }
})
