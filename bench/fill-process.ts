// Fills one store with retained operations, as the uid that owns it and while its daemon is stopped. Arguments:
// `broker DIRECTORY OPERATION COUNT` or `kernel DIRECTORY OPERATION COUNT`, OPERATION a completed one.
// Must never: open a store by other rules than its daemon does.
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { openBrokerStore } from '../daemon/broker-store.js'
import { OPEN_ATTEMPTS } from '../daemon/schema.js'
import { KERNEL_STORE_SCHEMA } from '../kernel/sqlite/schema.js'
import { systemClock } from '../native/clock.js'
import { signingKey } from '../protocol/keys.js'
import { KEY_BYTES } from '../protocol/limits.js'
import { openStore } from '../store/open.js'
import type { Store } from '../store/store.js'
import type { Transaction } from '../store/transaction.js'
import { coverLog, fillEnds } from './fill-log.js'
import { type CopiedTable, type CopyRange, copyRows, rangesOf } from './row-copies.js'

type Fill = (tx: Transaction, range: CopyRange) => void

const [kind, directory = '', operationId = '', count = ''] = process.argv.slice(2)
const isBroker = kind === 'broker'
const store = isBroker
  ? await openBrokerStore(directory, { clock: systemClock })
  : await openStore(join(directory, 'kernel.db'), KERNEL_STORE_SCHEMA, { clock: systemClock })
try {
  const fill = isBroker ? brokerFill(store, operationId) : kernelFill(store, operationId)
  for (const range of rangesOf(Number(count))) {
    await store.transaction('filled', tx => fill(tx, range))
    // The store moves its log into its file between two turns of the loop, and a daemon's loop always has some.
    await setImmediate()
  }
  if (!isBroker) await store.transaction('covered', tx => coverLog(tx, signingKey(randomBytes(KEY_BYTES))))
} finally {
  store.close()
}

/** An attempt begins registered and walks to its end: the table itself permits nothing else. */
function brokerFill(of: Store, operation: string): Fill {
  const attemptId = of.get<{ id: string }>(
    'SELECT attempt_id AS id FROM attempts WHERE operation_id = ?',
    operation,
  )?.id
  if (attemptId === undefined) throw new Error('attempts: expected the one of the operation, got none')
  const attempts: CopiedTable = {
    name: 'attempts',
    where: 'attempt_id = ?',
    key: attemptId,
    identifiers: [
      'attempt_id',
      'operation_id',
      'hold_id',
      'invocation_id',
      'broker_capability_id',
      'proof_nonce',
      'receipt_reference',
    ],
    begins: { state: "'registered'", version: '1' },
  }
  const receipts: CopiedTable = {
    ...attempts,
    name: 'receipts',
    identifiers: ['reference', 'attempt_id'],
    documents: ['receipt'],
    begins: {},
  }
  const responses: CopiedTable = {
    ...receipts,
    name: 'responses',
    identifiers: ['attempt_id'],
    documents: ['sealed'],
  }
  const walk = ['registered', 'prepared', 'captured', 'dispatch_committed', 'completed']
  return (tx, range) => {
    copyRows(tx, attempts, range)
    for (const [index, from] of walk.slice(0, -1).entries()) {
      const to = walk[index + 1] as string
      tx.run(
        `UPDATE attempts SET state = '${to}', version = version + 1 WHERE ${OPEN_ATTEMPTS} AND state = '${from}'`,
      )
    }
    copyRows(tx, receipts, range)
    copyRows(tx, responses, range)
  }
}

function kernelFill(of: Store, operation: string): Fill {
  const own = { where: 'operation_id = ?', key: operation }
  const operations: CopiedTable = {
    ...own,
    name: 'operations',
    identifiers: ['operation_id', 'request_id'],
    documents: ['reservation', 'registration', 'dispatch_commit', 'record'],
  }
  const history: CopiedTable = { ...own, name: 'history', identifiers: ['operation_id'] }
  const holds: CopiedTable = {
    ...own,
    name: 'holds',
    identifiers: [
      'hold_id',
      'operation_id',
      'nonce_id',
      'authorize_event_id',
      'capture_event_id',
      'reverse_event_id',
    ],
  }
  const state =
    of.get<{ state: string }>('SELECT state FROM operations WHERE operation_id = ?', operation)?.state ?? ''
  return (tx, range) => {
    for (const table of [operations, history, holds]) copyRows(tx, table, range)
    fillEnds(tx, operation, range)
    tx.run('UPDATE grants SET captured = captured + ?', range.count)
    tx.run('UPDATE state_counts SET count = count + ? WHERE state = ?', range.count, state)
  }
}
