// The tool-outcome store: one outcome an operation, the same again answered, any other refused, nothing readable on disk.
import { readFileSync } from 'node:fs'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { AdmissionOperation } from '../../../kernel/operation/operation.js'
import { kernelStorePath } from '../../../kernel/start-kernel.js'
import { openOutcome, recordToolReturned, sealOutcome } from '../../../kernel/calls/tool-outcome.js'
import { encode } from '../../../protocol/codec.js'
import { RawInvocationOutcome } from '../../../protocol/tool-outcome.js'
import { registered, started } from '../../support/brokered-operation.js'
import { issueGrant, makeTestKernel, seed, type TestKernel } from '../../support/kernel.js'
import { type KernelTables, openKernelTables } from '../../support/kernel-tables.js'
import { runSql } from '../../support/test-store.js'

const NEEDLE = 'a needle in the output'
let kernel: TestKernel
let tables: KernelTables
let dispatched: AdmissionOperation
let ready: AdmissionOperation

beforeEach(async () => {
  kernel = await makeTestKernel()
  const grant = await issueGrant(kernel)
  const ids = [(await started(kernel, grant)).operationId, (await registered(kernel, grant)).operationId]
  kernel.client.close()
  await kernel.running.close()
  tables = await openKernelTables(kernelStorePath(kernel.config), kernel.folder)
  const read = (id: string | undefined) => tables.commit(move => move.operations.find(id as string))
  dispatched = (await read(ids[0])) as AdmissionOperation
  ready = (await read(ids[1])) as AdmissionOperation
})
afterEach(() => tables.remove())

function rawOf(operation: AdmissionOperation, value = NEEDLE): RawInvocationOutcome {
  const commit = dispatched.commit
  if (commit?.provider_attempt == null) throw new Error('expected a dispatched operation')
  return {
    dispatch_fence: commit.store_fence,
    dispatch_operation_version: commit.committed_version,
    elapsed_millis: 12,
    matched_grant_index: 0,
    operation_id: operation.operationId,
    output: { kind: 'value', value },
    pre_invocation_guard_evidence: [],
    provider_attempt: commit.provider_attempt,
    receipt_metadata_snapshot: null,
    reported_cost: null,
    request_id: operation.binding.request_id,
    schema: 'chio.raw-invocation-outcome.v1',
    stream_limits: { max_chunks: 1, max_duration_secs: 60, max_total_bytes: 1_048_576 },
    tool_name: 'append',
    tool_server: 'notes',
    transport_terminal_evidence_digest: 'e'.repeat(64),
  }
}
const record = (operation: AdmissionOperation, raw: RawInvocationOutcome) => {
  const returned = sealOutcome(kernel.keys.storage, raw)
  return tables.commit(move => recordToolReturned(move, operation, returned))
}

test('an outcome is inserted once and moves its operation to finalizing with its id', async () => {
  const recorded = await record(dispatched, rawOf(dispatched))
  expect(recorded).toMatchObject({
    kind: 'inserted',
    outcome: { disposition: { state: 'returned' }, version: 1 },
  })
  expect(recorded.operation).toMatchObject({
    attachments: { tool_outcome_id: recorded.outcome.outcome_id },
    state: 'finalizing',
  })
})

test('the same outcome again is answered from the first, after any restart', async () => {
  const first = await record(dispatched, rawOf(dispatched))
  await tables.reopen()
  const again = await record(first.operation, rawOf(dispatched))
  expect(again).toEqual({ kind: 'exact_replay', operation: first.operation, outcome: first.outcome })
})

test('another outcome of the same operation is a conflict and changes nothing', async () => {
  const first = await record(dispatched, rawOf(dispatched))
  await expect(record(first.operation, rawOf(dispatched, 'another'))).rejects.toMatchObject({
    code: 'conflict',
  })
  const stored = await tables.commit(move => move.outcomes.ofOperation(dispatched.operationId))
  expect(stored?.outcome).toEqual(first.outcome)
})

test('only a dispatched operation has an outcome, and only of its own dispatch', async () => {
  await expect(record(ready, rawOf(ready))).rejects.toMatchObject({ code: 'operation_state' })
  const raw = rawOf(dispatched)
  const foreign: RawInvocationOutcome[] = [
    { ...raw, operation_id: ready.operationId },
    { ...raw, request_id: 'another' },
    { ...raw, dispatch_operation_version: raw.dispatch_operation_version + 1 },
    { ...raw, dispatch_fence: { ...raw.dispatch_fence, lease_id: 'another' } },
    { ...raw, provider_attempt: { ...raw.provider_attempt, attempt_id: 'another' } },
  ]
  for (const other of foreign) {
    await expect(record(dispatched, other)).rejects.toMatchObject({ code: 'conflict' })
  }
  expect(await tables.commit(move => move.outcomes.ofOperation(dispatched.operationId))).toBeUndefined()
})

test('the output rests encrypted, and opens under the storage key to the exact bytes', async () => {
  const raw = rawOf(dispatched)
  await record(dispatched, raw)
  await tables.reopen()
  expect(readFileSync(tables.path).includes(NEEDLE)).toBe(false)
  const stored = await tables.commit(move => move.outcomes.ofOperation(dispatched.operationId))
  if (stored === undefined) throw new Error('expected the stored outcome')
  const opened = openOutcome(kernel.keys.storage, stored)
  expect(encode(RawInvocationOutcome, opened)).toEqual(encode(RawInvocationOutcome, raw))
  expect(() => openOutcome(seed(), stored)).toThrow(expect.objectContaining({ code: 'storage' }))
  const other = { ...stored, outcome: { ...stored.outcome, operation_id: ready.operationId } }
  expect(() => openOutcome(kernel.keys.storage, other)).toThrow(expect.objectContaining({ code: 'storage' }))
})

test.each(['UPDATE tool_outcomes SET nonce = zeroblob(12)', 'DELETE FROM tool_outcomes'])(
  'the table refuses by itself: %s',
  async statement => {
    await record(dispatched, rawOf(dispatched))
    const { status, stderr } = runSql(tables.path, statement)
    expect(status).not.toBe(0)
    expect(stderr).toContain('append-only')
  },
)
