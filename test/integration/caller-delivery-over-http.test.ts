// Caller delivery over HTTP and a real kernel: a reservation of an agent, a start and a report of a control client, with
// real signatures, a real store and restarts between the steps.
import { existsSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../native/clock.js'
import { type CallerAuthorization, verifyForClaim } from '../../protocol/caller-authorization.js'
import { encode } from '../../protocol/codec.js'
import { verifyKernelReceipt } from '../../protocol/kernel-receipt.js'
import { CapabilityReference } from '../../protocol/kernel-rpc.js'
import type { ToolCallRequest } from '../../protocol/tool-call.js'
import { SidecarClient, SidecarRefusal } from '../../sidecar/client.js'
import { ControlToken } from '../../sidecar/control-token.js'
import { callerKernelOf } from '../../sidecar/embedded-kernel.js'
import { type RunningSidecar, startSidecar } from '../../sidecar/start-sidecar.js'
import { TestExecutor } from '../support/caller-executor.js'
import { approve, makeTestKernel, type TestKernel, type TestKernelOptions } from '../support/kernel.js'
import { askRaw, CONTROL_TOKEN, fieldsOf, rawRequest, socketPath } from '../support/sidecar.js'
import { callUnder, tokenOf } from '../support/tool-call.js'

const executor = new TestExecutor()
const options: TestKernelOptions = {
  callerExecutor: executor.pin,
  toolCalls: { targets: [{ serverId: 'notes', toolName: 'append' }] },
}
const controlToken = CONTROL_TOKEN
let kernel: TestKernel
let sidecar: RunningSidecar
let client: SidecarClient

const serve = async (): Promise<void> => {
  sidecar = await startSidecar({
    clock: systemClock,
    controlToken: new ControlToken(CONTROL_TOKEN),
    kernel: callerKernelOf(kernel.running),
    listen: { path: socketPath() },
    log: event => kernel.events.push(event),
  })
  client = new SidecarClient(sidecar.listen as { path: string }, { clock: systemClock })
}
/** The process that holds the kernel ends, and another one takes the store over. */
async function restart(given: TestKernelOptions = options): Promise<void> {
  await sidecar.close()
  await kernel.restart(given)
  await serve()
}

beforeAll(async () => {
  kernel = await makeTestKernel(options)
  await serve()
})
afterAll(async () => {
  await sidecar.close()
  await kernel.remove()
})

const evaluate = (request: ToolCallRequest) =>
  client.evaluateToolCall({
    capability: request.capability_token,
    parameters: request.params,
    requestId: request.id,
    toolName: request.tool,
    toolServer: request.server_id,
  })

async function reserved(request: ToolCallRequest) {
  const reply = await evaluate(request)
  if (reply.status !== 'reserved') throw new Error(`expected a reservation, got ${reply.status}`)
  return reply
}

async function started(request: ToolCallRequest) {
  const { execution_nonce: executionNonce } = await reserved(request)
  const start = { arguments: request.params, controlToken, executionNonce }
  const reply = await client.startMediatedExecution(start)
  if (reply.status !== 'dispatch_committed') throw new Error(`expected a commitment, got ${reply.status}`)
  return { authorization: reply.authorization, start }
}

const rejectedBy = (asked: Promise<unknown>): Promise<unknown> =>
  asked.then(
    reply => reply,
    (error: unknown) => (error instanceof SidecarRefusal ? [error.status, error.sidecarCode] : error),
  )
const REJECTED = [409, 'chio_caller_delivery_rejected']
const newCall = () => callUnder(tokenOf(kernel))
const stateOf = async ({ authorization }: { authorization: CallerAuthorization }) => {
  const { operation_id: operationId } = authorization.authorization.invocation
  return (await kernel.client.call('inspect', { operationId })).state
}

describe('one call', () => {
  test('goes from its reservation over a signed authorization to a reconciled report', async () => {
    const request = newCall()
    const reservation = await reserved(request)
    expect(reservation).toMatchObject({ execution_authorized: false, start_required: true })
    const key = kernel.running.publicKeys.kernel
    verifyKernelReceipt(reservation.receipt, key)
    expect(await evaluate(request)).toEqual(reservation)

    const { authorization } = await started(request)
    const { invocation, not_before_unix_ms: begin } = authorization.authorization
    verifyForClaim(authorization, { executor: executor.pin, invocation, kernelKey: key }, begin)
    expect(invocation.request_id).toBe(request.id)

    const report = executor.report(authorization, { output: { note: 'appended' } })
    const reply = await client.reportMediatedExecution({ authorization, controlToken, report })
    expect(reply).toMatchObject({
      execution_authorized: false,
      output: { note: 'appended' },
      status: 'reconciled',
    })
    verifyKernelReceipt(reply.receipt, key)
    expect(reply.receipt).toMatchObject({ metadata: { attested_by: 'executor' } })
  })

  test('answers a lost start and a lost report with the same bytes, after a restart too', async () => {
    const request = newCall()
    const first = await started(request)
    await restart()
    const { authorization } = await started({ ...request }).catch(() => first)
    expect(await client.startMediatedExecution(first.start)).toEqual({
      authorization,
      protocol: 'chio.caller-delivery.v1',
      status: 'dispatch_committed',
    })
    const reported = { authorization, controlToken, report: executor.report(authorization) }
    const reply = await client.reportMediatedExecution(reported)
    await restart()
    expect(await client.reportMediatedExecution(reported)).toEqual(reply)
    expect(await client.startMediatedExecution(first.start)).toMatchObject({ authorization })
  })

  test('is denied with its receipt, and nothing is held', async () => {
    const foreign = callUnder(tokenOf(kernel), { tool: 'delete' })
    const reply = await evaluate(foreign)
    expect(reply).toMatchObject({
      execution_authorized: false,
      receipt: { decision: { verdict: 'deny' } },
      status: 'deny',
    })
    expect(Object.keys(reply).sort()).toEqual(['execution_authorized', 'receipt', 'status'])
  })

  test('may be started by none but the holder of the token', async () => {
    const { execution_nonce: executionNonce } = await reserved(newCall())
    const start = { arguments: {}, controlToken: 'another-token', executionNonce }
    expect(await rejectedBy(client.startMediatedExecution(start))).toEqual([403, 'chio_control_forbidden'])
  })
})

describe('a start', () => {
  test('that a live judgement denies is 403 with its receipt', async () => {
    const request = newCall()
    const { execution_nonce: executionNonce } = await reserved(request)
    const start = {
      arguments: request.params,
      controlToken,
      credentials: { dpop_proof: 'a' },
      executionNonce,
    }
    expect(await client.startMediatedExecution(start)).toMatchObject({
      receipt: { decision: { verdict: 'deny' } },
      status: 'deny',
    })
    expect(
      await client.startMediatedExecution({ arguments: request.params, controlToken, executionNonce }),
    ).toMatchObject({ status: 'dispatch_committed' })
  })

  test('is the one 409 for other arguments, a forged nonce, a revoked capability and an unknown call', async () => {
    const request = newCall()
    const { execution_nonce: nonce } = await reserved(request)
    const good = { arguments: request.params, controlToken, executionNonce: nonce }
    const wrong = [
      { ...good, arguments: { note: 'another' } },
      { ...good, executionNonce: { ...nonce, signature: '0'.repeat(128) } },
      {
        ...good,
        executionNonce: {
          ...nonce,
          nonce: { ...nonce.nonce, bound_to: { ...nonce.nonce.bound_to, request_id: 'call-unknown' } },
        },
      },
    ]
    for (const start of wrong)
      expect(await rejectedBy(client.startMediatedExecution(start))).toEqual(REJECTED)
    const reference = { capabilityId: request.capability_token.id }
    const authorization = approve(kernel, 'revoke_capability', encode(CapabilityReference, reference))
    await kernel.client.call('revoke_capability', reference, authorization)
    expect(await rejectedBy(client.startMediatedExecution(good))).toEqual(REJECTED)
  })
})

describe('a report', () => {
  test('that is conflicting, substituted or of another executor is the one 409, and changes nothing', async () => {
    const [one, other] = [await started(newCall()), await started(newCall())]
    const { authorization } = one
    const report = executor.report(authorization)
    const stranger = new TestExecutor()
    const wrong = [
      { authorization, report: { ...report, signature: '0'.repeat(128) } },
      { authorization, report: stranger.report(authorization, { executor: stranger.pin }) },
      { authorization: other.authorization, report },
      { authorization: { ...authorization, signature: '0'.repeat(128) }, report },
    ]
    for (const presented of wrong) {
      expect(await rejectedBy(client.reportMediatedExecution({ ...presented, controlToken }))).toEqual(
        REJECTED,
      )
    }
    expect(await stateOf(one)).toBe('awaiting_caller_report')
    await client.reportMediatedExecution({ authorization, controlToken, report })
    const conflicting = executor.report(authorization, { output: { other: true } })
    expect(
      await rejectedBy(client.reportMediatedExecution({ authorization, controlToken, report: conflicting })),
    ).toEqual(REJECTED)
    expect(await stateOf(one)).toBe('completed')
  })

  test('under another pin finds nothing of this one', async () => {
    const one = await started(newCall())
    await restart({ ...options, callerExecutor: new TestExecutor('another', 2).pin })
    const reported = {
      authorization: one.authorization,
      controlToken,
      report: executor.report(one.authorization),
    }
    expect(await rejectedBy(client.reportMediatedExecution(reported))).toEqual(REJECTED)
    expect(await rejectedBy(client.startMediatedExecution(one.start))).toEqual(REJECTED)
    await restart()
    expect(await client.reportMediatedExecution(reported)).toMatchObject({ status: 'reconciled' })
  })
})

test('a sidecar refuses to start without a pin or durable admission, and names both', async () => {
  const callerDelivery = { executor: null, isDurable: false }
  const listen = { path: socketPath() }
  const starting = startSidecar({
    clock: systemClock,
    controlToken: null,
    kernel: callerKernelOf({ callerDelivery, kernel: kernel.running.kernel }),
    listen,
    log: () => {},
  })
  await expect(starting).rejects.toThrow(/pinned executor.*durable admission/)
  expect(existsSync(listen.path)).toBe(false)
})

test('what a client sends and the kernel refuses is nowhere in the log', () => {
  expect(JSON.stringify(kernel.events)).not.toMatch(/needle|the-control-token|appended/)
})

test('a body of the protocol in any spelling of JSON is the same request', async () => {
  const request = newCall()
  const { execution_nonce } = await reserved(request)
  const body = { protocol: 'chio.caller-delivery.v1', execution_nonce, arguments: request.params }
  const text = JSON.stringify(body, null, 4)
  const { listen } = sidecar
  const fields = fieldsOf(listen, Buffer.byteLength(text))
  const reply = await askRaw(listen, rawRequest('/v1/caller/start', fields, text))
  expect(reply.status).toBe(200)
})
