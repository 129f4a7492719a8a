// Reads one store of a trial after its daemon has ended, under the daemon's own uid, and says each row as a line:
// what a soak judges is what is on disk, not what a daemon says.
// Must never: run beside the daemon; the owner lock sees to it.
import { writeSync } from 'node:fs'
import { openBrokerStore } from '../../daemon/broker-store.js'
import { isToolCall } from '../../kernel/operation/operation.js'
import { openTables } from '../../kernel/sqlite/tables.js'
import { kernelStorePath } from '../../kernel/start-kernel.js'
import { systemClock as clock } from '../../native/clock.js'
import type { StoredAttempt, StoredOperation } from './stored-records.js'

const STANDARD_OUTPUT = 1
const ATTEMPTS_SQL = `SELECT operation_id AS operationId, state, reason,
  dispatch_committed_at_unix_ms IS NOT NULL AS isCommitted FROM attempts`

const [role, stateDirectory = ''] = process.argv.slice(2)
const rows = role === 'broker' ? await attempts() : await operations()
for (const row of rows) writeSync(STANDARD_OUTPUT, `${JSON.stringify(row)}\n`)

async function attempts(): Promise<StoredAttempt[]> {
  const store = await openBrokerStore(stateDirectory, { clock })
  const found = store.all<Omit<StoredAttempt, 'isCommitted'> & { isCommitted: number }>(ATTEMPTS_SQL)
  store.close()
  return found.map(row => ({ ...row, isCommitted: row.isCommitted === 1 }))
}

async function operations(): Promise<StoredOperation[]> {
  const tables = await openTables(kernelStorePath({ stateDirectory }), { clock })
  const found = tables.operations.newest({ callerPublicKey: null, limit: Number.MAX_SAFE_INTEGER })
  tables.close()
  return found.flatMap(({ call, operationId, state }) => {
    if (isToolCall(call)) return []
    const { requestDigest } = call.reservation.request
    return [{ operationId, requestDigest, state }]
  })
}
