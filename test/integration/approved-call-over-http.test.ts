// A tool call that people have to agree to, over HTTP and a real kernel: the agent asks again until they did, the start and
// the report are those of every other call, and one who refuses ends it.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemClock } from '../../native/clock.js'
import type { ToolCallRequest } from '../../protocol/tool-call.js'
import { SidecarClient } from '../../sidecar/client.js'
import { ControlToken } from '../../sidecar/control-token.js'
import { callerKernelOf } from '../../sidecar/embedded-kernel.js'
import { type RunningSidecar, startSidecar } from '../../sidecar/start-sidecar.js'
import { type CallApprovalWorld, openCallApprovals } from '../support/call-approvals.js'
import { TestExecutor } from '../support/caller-executor.js'
import { CONTROL_TOKEN, socketPath } from '../support/sidecar.js'
import { callUnder } from '../support/tool-call.js'

const executor = new TestExecutor()
let world: CallApprovalWorld
let sidecar: RunningSidecar
let client: SidecarClient

beforeAll(async () => {
  world = await openCallApprovals(2, { callerExecutor: executor.pin })
  const { kernel } = world
  sidecar = await startSidecar({
    clock: systemClock,
    controlToken: new ControlToken(CONTROL_TOKEN),
    kernel: callerKernelOf(kernel.running),
    listen: { path: socketPath() },
    log: event => kernel.events.push(event),
  })
  client = new SidecarClient(sidecar.listen as { path: string }, { clock: systemClock })
})
afterAll(async () => {
  await sidecar.close()
  await world.kernel.remove()
})

const evaluate = (request: ToolCallRequest) =>
  client.evaluateToolCall({
    capability: request.capability_token,
    parameters: request.params,
    requestId: request.id,
    toolName: request.tool,
    toolServer: request.server_id,
  })

/** @returns the operation that people were asked about. */
async function asked(request: ToolCallRequest): Promise<string> {
  const reply = await evaluate(request)
  if (reply.status !== 'pending_approval') throw new Error(`expected a wait, got ${reply.status}`)
  return reply.operation_id
}

test('waits for the last approver, is carried out once, and ends by its report', async () => {
  const request = callUnder(world.token())
  const operationId = await asked(request)
  await world.say(operationId, 'lead')
  expect(await asked(request)).toBe(operationId)
  await world.say(operationId, 'security')
  const reserved = await evaluate(request)
  if (reserved.status !== 'reserved') throw new Error(`expected a reservation, got ${reserved.status}`)

  const start = {
    arguments: request.params,
    controlToken: CONTROL_TOKEN,
    executionNonce: reserved.execution_nonce,
  }
  const reply = await client.startMediatedExecution(start)
  if (reply.status !== 'dispatch_committed') throw new Error(`expected a commitment, got ${reply.status}`)
  const { authorization } = reply
  const report = executor.report(authorization, { output: { note: 'agreed' } })
  const ended = await client.reportMediatedExecution({ authorization, controlToken: CONTROL_TOKEN, report })
  expect(ended).toMatchObject({ output: { note: 'agreed' }, status: 'reconciled' })
  expect(await world.stateOf(operationId)).toBe('completed')
})

test('is ended by one who refuses, and asking again gives no nonce', async () => {
  const request = callUnder(world.token())
  const operationId = await asked(request)
  await world.say(operationId, 'lead')
  await world.say(operationId, 'security', { decision: 'denied' })
  expect(await world.stateOf(operationId)).toBe('compensated_before_dispatch')
  expect(await evaluate(request)).toMatchObject({
    execution_authorized: false,
    receipt: { decision: { guard: 'approval' } },
    status: 'deny',
  })
  expect(await world.stateOf(operationId)).toBe('compensated_before_dispatch')
})
