// The kernel's log as its socket shows it: a signed receipt of every decision, in order, under checkpoints, the same
// bytes every time.
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../../native/clock.js'
import { verifyCheckpoint } from '../../../protocol/checkpoint.js'
import { encode } from '../../../protocol/codec.js'
import { isBrokerError } from '../../../protocol/errors.js'
import { KernelReceipt, verifyKernelReceipt } from '../../../protocol/kernel-receipt.js'
import { verifyInclusion } from '../../../protocol/log-proof.js'
import { LogVerifier, verifyCheckpointChain } from '../../../protocol/log-verifier.js'
import { openTables } from '../../../kernel/sqlite/tables.js'
import { kernelStorePath } from '../../../kernel/start-kernel.js'
import {
  announce,
  failureOf,
  receiptOf,
  requestUnder,
  reserved,
  started,
  startOf,
  UNKNOWN,
} from '../../support/brokered-operation.js'
import { issueGrant, makeTestKernel, revokeGrant, type TestKernel } from '../../support/kernel.js'

let kernel: TestKernel
beforeEach(async () => {
  kernel = await makeTestKernel({ checkpointReceipts: 3 })
})
afterEach(() => kernel.remove())

const pinned = () => kernel.running.publicKeys.kernel
const wholeLog = async (): Promise<readonly KernelReceipt[]> =>
  (await kernel.client.call('read_log', { afterSeq: 0 })).receipts
const shown = (operationId: string) => kernel.client.call('show_receipt', { operationId, receiptId: null })
const bytesOf = (receipt: KernelReceipt) => Buffer.from(encode(KernelReceipt, receipt)).toString()

/** Every entry and every checkpoint, verified with the pinned key. */
async function verifyLog() {
  const { checkpoints } = await kernel.client.call('read_checkpoints', { afterSeq: 0 })
  const verifier = new LogVerifier(verifyCheckpointChain(checkpoints, pinned()))
  for (const receipt of await wholeLog()) verifier.add(verifyKernelReceipt(receipt, pinned()))
  return verifier.end()
}

async function refusalOf(asked: Promise<unknown>) {
  try {
    await asked
  } catch (error) {
    if (isBrokerError(error)) return error
  }
  throw new Error('expected a refusal, got none')
}

describe('a decision', () => {
  test('leaves a receipt at reserve, start and end, each of which says where the operation stands', async () => {
    const operation = await started(kernel, await issueGrant(kernel))
    const { operationId } = operation
    const record = receiptOf(kernel, operation)
    const ended = await kernel.client.call('finalize', { operationId, record })
    const log = await wholeLog()
    expect(log.map(({ decision }) => decision)).toEqual(Array(3).fill({ verdict: 'allow' }))
    expect(log.map(({ metadata }) => metadata)).toMatchObject([
      {
        admission: {
          operation_id: operationId,
          projected_state: 'ready_to_dispatch',
          retained_dispatch_commit: null,
        },
      },
      { admission: { projected_state: 'dispatch_committed', store_fence: { owner_epoch: 1 } } },
      {
        admission: { projected_state: 'completed' },
        broker_record: { kind: 'receipt' },
        durable_mode: 'side_effecting',
      },
    ])
    expect(ended.receipt).toEqual(log[2])
    expect(await verifyLog()).toEqual({ covered: 3, entries: 3 })
  })

  test('of an ended operation is answered again with the same bytes, to finalize, reserve and show', async () => {
    const operation = await started(kernel, await issueGrant(kernel))
    const { announced, operationId } = operation
    const record = receiptOf(kernel, operation)
    const { receipt } = await kernel.client.call('finalize', { operationId, record })
    await kernel.restart()
    const answers = [
      (await kernel.client.call('finalize', { operationId, record })).receipt,
      (await kernel.client.call('reserve', announced)).receipt,
      (await shown(operationId)).receipt,
    ]
    expect(answers.map(bytesOf)).toEqual(Array(3).fill(bytesOf(receipt)))
    const { document } = await kernel.client.call('inspect', { operationId })
    expect(document.terminal_replay).toEqual({ receipt_id: receipt.id })
  })

  test('says what ended an operation that was taken back, or of which nothing is known', async () => {
    const grant = await issueGrant(kernel)
    const { operationId: taken } = await reserved(kernel, grant)
    await kernel.client.call('cancel', { operationId: taken })
    expect((await shown(taken)).receipt).toMatchObject({
      decision: { reason: 'cancelled by its host', verdict: 'cancelled' },
      metadata: { admission: { compensation_status: 'compensated_before_dispatch' } },
    })
    const operation = await started(kernel, grant)
    const { operationId } = operation
    await kernel.client.call('finalize', { operationId, record: failureOf(kernel, operation, UNKNOWN) })
    expect((await shown(operationId)).receipt.decision).toEqual({
      reason: 'chio.broker.upstream',
      verdict: 'incomplete',
    })
  })
})

describe('a kernel without durable admission', () => {
  test('says so in every receipt', async () => {
    const grant = await issueGrant(kernel)
    await kernel.restart({ checkpointReceipts: 3, durableMode: 'off' })
    const { announced } = await reserved(kernel, grant)
    await refusalOf(kernel.client.call('reserve', { ...announced, requestDigest: 'a'.repeat(64) }))
    const log = await wholeLog()
    expect(log.map(({ metadata }) => metadata)).toMatchObject([
      { durable_mode: 'off' },
      { durable_mode: 'off' },
    ])
  })
})

describe('a refusal', () => {
  test('is a signed receipt of guard kernel that names its code, and changes nothing else', async () => {
    const grant = await issueGrant(kernel)
    const { announced, operationId } = await reserved(kernel, grant)
    const changed = { ...announced, requestDigest: 'a'.repeat(64) }
    const refusal = await refusalOf(kernel.client.call('reserve', changed))
    const [, receipt] = (await wholeLog()) as [KernelReceipt, KernelReceipt]
    expect(refusal.receiptId).toBe(receipt.id)
    expect(verifyKernelReceipt(receipt, pinned())).toMatchObject({
      action: { parameters: { request_digest: 'a'.repeat(64) } },
      capability_id: grant.grantId,
      decision: { guard: 'kernel', reason: refusal.message, verdict: 'deny' },
      metadata: { refusal: { code: 'request_binding_mismatch' } },
    })
    expect((await shown(operationId)).receipt).toEqual((await wholeLog())[0])
  })

  test('of a start names its operation', async () => {
    const grant = await issueGrant(kernel)
    const operation = await reserved(kernel, grant)
    const refusal = await refusalOf(kernel.client.call('start', startOf(operation)))
    expect(refusal).toMatchObject({ code: 'operation_state', operationId: operation.operationId })
    const { receipt } = await kernel.client.call('show_receipt', {
      operationId: null,
      receiptId: refusal.receiptId as string,
    })
    expect(receipt).toMatchObject({
      decision: { verdict: 'deny' },
      metadata: { admission: { operation_id: operation.operationId }, refusal: { code: 'operation_state' } },
    })
  })

  test.each(['revoked', 'unknown'] as const)('of a grant that is %s is recorded', async which => {
    const grant = await issueGrant(kernel)
    if (which === 'revoked') await revokeGrant(kernel, grant.grantId)
    const asked = which === 'revoked' ? grant : { ...grant, grantId: 'grant-none' }
    await refusalOf(kernel.client.call('reserve', announce(kernel, asked, requestUnder(grant))))
    expect(await wholeLog()).toMatchObject([{ metadata: { refusal: { code: `grant_${which}` } } }])
  })

  test('of a request that is only badly worded is none', async () => {
    const { announced } = await reserved(kernel, await issueGrant(kernel))
    const worded = { ...announced, invocationId: 'another', proofNonce: 'not a nonce: spaces' }
    expect(await refusalOf(kernel.client.call('reserve', worded))).toMatchObject({ code: 'invalid_request' })
    expect(await wholeLog()).toHaveLength(1)
  })
})

describe('the log', () => {
  test('gets a checkpoint when a batch is full, over an asked for end, and when the kernel stops', async () => {
    const grant = await issueGrant(kernel)
    for (let count = 0; count < 4; count++) await reserved(kernel, grant)
    expect(await verifyLog()).toEqual({ covered: 3, entries: 4 })
    expect(await kernel.client.call('seal_log', {})).toEqual({ checkpoints: 2, entries: 4 })
    expect(await kernel.client.call('seal_log', {})).toEqual({ checkpoints: 2, entries: 4 })
    await reserved(kernel, grant)
    await kernel.restart()
    expect(await verifyLog()).toEqual({ covered: 5, entries: 5 })
  })

  test('proves that a receipt stands in it, once a checkpoint covers it', async () => {
    const grant = await issueGrant(kernel)
    const { operationId } = await reserved(kernel, grant)
    expect(await shown(operationId)).toMatchObject({ entrySeq: 1, inclusion: null })
    await reserved(kernel, grant)
    await kernel.client.call('seal_log', {})
    const { inclusion, receipt } = await shown(operationId)
    if (inclusion === null) throw new Error('expected a proof')
    verifyInclusion(inclusion.proof, receipt, verifyCheckpoint(inclusion.checkpoint, pinned()))
  })

  test('is read in pages, to its end', async () => {
    const grant = await issueGrant(kernel, { maximumExecutions: 100 })
    for (let count = 0; count < 66; count++) {
      await refusalOf(
        kernel.client.call('reserve', { ...announce(kernel, grant, requestUnder(grant)), bodyBytes: 65_537 }),
      )
    }
    const page = async (afterSeq: number) =>
      (await kernel.client.call('read_log', { afterSeq })).receipts.length
    expect([await page(0), await page(64), await page(66)]).toEqual([64, 2, 0])
  })

  test('cannot be changed, cut or numbered anew, even by a statement of its own store', async () => {
    await reserved(kernel, await issueGrant(kernel))
    const path = kernelStorePath(kernel.config)
    await kernel.running.close()
    const tables = await openTables(path, { clock: systemClock })
    try {
      const receipt = tables.receipts.find(tables.receipts.page(0, 1)[0]?.receipt.id ?? '')?.receipt
      const again = tables.transaction('again', move =>
        move.receipts.append(receipt as KernelReceipt, {
          callerPublicKey: null,
          operationId: null,
          stage: 'refused',
        }),
      )
      await expect(again).rejects.toMatchObject({ code: 'conflict' })
      expect(tables.receipts.entries()).toBe(1)
    } finally {
      tables.close()
    }
  })
})

describe('who may read', () => {
  test('a receipt that is not there, and a name that names nothing, are refused', async () => {
    const ask = (name: { operationId: string | null; receiptId: string | null }) =>
      refusalOf(kernel.client.call('show_receipt', name))
    expect(await ask({ operationId: null, receiptId: '0'.repeat(64) })).toMatchObject({
      code: 'receipt_unknown',
    })
    expect(await ask({ operationId: null, receiptId: null })).toMatchObject({ code: 'invalid_request' })
  })

  test('a client reads its own receipts and nothing else of the log', async () => {
    const { operationId } = await reserved(kernel, await issueGrant(kernel))
    const { kernel: asked } = kernel.running
    // No user of this machine: what a client of another uid is answered.
    const own = { callerPublicKey: kernel.caller.publicKey, uid: 54_321 }
    const other = { callerPublicKey: kernel.broker.publicKey, uid: 54_321 }
    const name = { operationId, receiptId: null }
    expect((await asked.showReceipt(own, name)).entrySeq).toBe(1)
    expect(await refusalOf(asked.showReceipt(other, name))).toMatchObject({ code: 'receipt_unknown' })
    for (const reads of [
      asked.readLog(own, { afterSeq: 0 }),
      asked.readCheckpoints(own, { afterSeq: 0 }),
      asked.sealLog(own),
    ]) {
      expect(await refusalOf(reads)).toMatchObject({ code: 'authorization_denied' })
    }
  })

  test('the whole log is for the own user of the kernel, and its pages need no caller key', async () => {
    await reserved(kernel, await issueGrant(kernel))
    await kernel.restart({ callerPublicKey: null, checkpointReceipts: 3 })
    expect(await wholeLog()).toHaveLength(1)
  })
})
