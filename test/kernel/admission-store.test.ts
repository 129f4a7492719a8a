// The kernel's store by itself: one commit a move, a fence, and tables that refuse what no code may do.
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { assertLegalMove } from '../../kernel/operation/move-rules.js'
import { kernelStorePath } from '../../kernel/start-kernel.js'
import { openTables } from '../../kernel/sqlite/tables.js'
import { systemClock } from '../../native/clock.js'
import { ADMISSION_STATES } from '../../protocol/admission-states.js'
import {
  receiptOf,
  registered,
  requestUnder,
  reserved,
  started,
  startOf,
} from '../support/brokered-operation.js'
import { issueGrant, makeTestKernel, type TestKernel } from '../support/kernel.js'
import { runSql } from '../support/test-store.js'

let kernel: TestKernel
let commits: string[]
beforeEach(async () => {
  commits = []
  kernel = await makeTestKernel({
    atCutpoint: name => {
      if (name.endsWith('.after')) commits.push(name)
    },
  })
})
afterEach(() => kernel.remove())

const sql = (statement: string) => runSql(kernelStorePath(kernel.config), statement)

test('an operation takes exactly four commits from reserve to its end', async () => {
  const grant = await issueGrant(kernel)
  commits.length = 0
  const operation = await started(kernel, grant)
  const { operationId } = operation
  await kernel.client.call('finalize', { operationId, record: receiptOf(kernel, operation) })
  expect(commits).toEqual([
    'kernel.reserved.after',
    'kernel.registration_retained.after',
    'kernel.dispatch_committed.after',
    'kernel.finalized.after',
  ])
})

test('what is answered from before takes no commit', async () => {
  const grant = await issueGrant(kernel)
  const operation = await registered(kernel, grant)
  await kernel.client.call('start', startOf(operation))
  commits.length = 0
  await kernel.client.call('reserve', operation.announced)
  await kernel.client.call('start', startOf(operation))
  await kernel.client.call('inspect', { operationId: operation.operationId })
  expect(commits).toEqual([])
})

describe('the history', () => {
  const historyOf = (operationId: string): string[] => {
    const program =
      'import sqlite3, sys\nprint(*[r[0] for r in sqlite3.connect(sys.argv[1]).execute(sys.argv[2])])'
    const query = `SELECT to_state FROM history WHERE operation_id = '${operationId}' ORDER BY version`
    const read = spawnSync('/usr/bin/python3', ['-c', program, kernelStorePath(kernel.config), query])
    return read.stdout.toString().trim().split(' ')
  }

  test('keeps every state that an operation passed, in order, under rising versions', async () => {
    const operation = await started(kernel, await issueGrant(kernel))
    const { operationId } = operation
    await kernel.client.call('finalize', { operationId, record: receiptOf(kernel, operation) })
    expect(historyOf(operationId)).toEqual([
      'prepared',
      'broker_attempt_registered',
      'budget_authorized',
      'ready_to_dispatch',
      'ready_to_dispatch',
      'capture_pending',
      'dispatch_committed',
      'finalizing',
      'completed',
    ])
  })

  test.each([
    ['a history that is changed', `UPDATE history SET cause = 'x'`],
    ['a history that is shortened', 'DELETE FROM history'],
    ['a hold that ends twice', `UPDATE holds SET state = 'reversed'`],
    ['a hold that is removed', 'DELETE FROM holds'],
    ['an execution beyond the grant', 'UPDATE grants SET held = maximum_executions + 1'],
    ['a revocation that is taken back', 'DELETE FROM revocations'],
    ['a state that does not exist', `UPDATE operations SET state = 'done'`],
    ['approvals that are forgotten', 'DELETE FROM admin_approvals'],
  ])('and its neighbours refuse %s, whoever asks', async (_what, statement) => {
    await started(kernel, await issueGrant(kernel))
    sql(`INSERT INTO revocations VALUES ('x', 1, 1)`)
    expect(sql(statement).stderr).toMatch(/append-only|ends once|kept|CHECK constraint/)
  })

  test('is closed when the operation has ended', async () => {
    const { operationId } = await reserved(kernel, await issueGrant(kernel))
    await kernel.client.call('cancel', { operationId })
    expect(sql(`UPDATE operations SET state = 'ready_to_dispatch'`).stderr).toMatch(/ends once/)
  })
})

describe('a move', () => {
  test('that the table forbids is refused although the code asks for it', async () => {
    const { answer, announced } = await reserved(kernel, await issueGrant(kernel))
    const operation = await kernel.client.call('inspect', { operationId: answer.operationId })
    expect(operation.state).toBe('ready_to_dispatch')
    const binding = {
      kind: 'tool_dispatch',
      request_binding: { participant_requirements: { budget_capture: true } },
    }
    const forbidden = ADMISSION_STATES.filter(
      to => !['capture_pending', 'compensated_before_dispatch'].includes(to),
    )
    for (const to of forbidden) {
      expect(() => assertLegalMove(binding as never, 'ready_to_dispatch', to)).toThrow(
        expect.objectContaining({ code: 'illegal_transition' }),
      )
    }
    expect(announced.invocationId).toBe(operation.invocationId)
  })

  test('through the fence of an earlier owner is refused, and closes the connection', async () => {
    const grant = await issueGrant(kernel)
    expect(sql('UPDATE kernel_state SET owner_epoch = owner_epoch + 1').status).toBe(0)
    await expect(reserved(kernel, grant)).rejects.toMatchObject({ code: 'kernel_unavailable' })
    expect(kernel.events).toContainEqual(expect.objectContaining({ code: 'fenced', level: 'error' }))
    const { held } = await kernel.client.call('show_grant', { grantId: grant.grantId })
    expect(held).toBe(0)
  })
})

test('the owner epoch rises with every opening', async () => {
  expect(kernel.running.ownerEpoch).toBe(1)
  await kernel.restart()
  expect(kernel.running.ownerEpoch).toBe(2)
  await kernel.running.close()
  const tables = await openTables(kernelStorePath(kernel.config), { clock: systemClock })
  expect(tables.owner.ownerEpoch).toBe(3)
  tables.close()
})

test('neither the body nor a key can be read in the files of the store', async () => {
  const grant = await issueGrant(kernel)
  const operation = await registered(kernel, grant)
  await kernel.running.close()
  const folder = kernel.config.stateDirectory
  const bytes = Buffer.concat(readdirSync(folder).map(name => readFileSync(join(folder, name))))
  const { body } = requestUnder(grant)
  const asDecimals = `[${[...body].join(',')}]`
  for (const secret of [Buffer.from(body), Buffer.from(asDecimals), Buffer.from(kernel.keys.storage)]) {
    expect(bytes.includes(secret)).toBe(false)
  }
  expect(bytes.includes(operation.announced.bodySha256)).toBe(true)
})
