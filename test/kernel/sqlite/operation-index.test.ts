// What shares its arguments with an operation is asked for each line of a list and at each start: one client with
// thousands of calls alike must not hold everybody up.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { OPEN_RESERVATIONS_SQL, SHARING_SQL } from '../../../kernel/sqlite/operation-index.js'
import { KERNEL_STORE_SCHEMA } from '../../../kernel/sqlite/schema.js'
import { systemClock } from '../../../native/clock.js'
import { openStore } from '../../../store/open.js'
import { provisionStore } from '../../../store/provision.js'
import { temporaryFolder } from '../../support/temporary-folder.js'

const QUESTIONS = [
  [
    'operations with the same arguments are read from their index, in its order, and no further than the answer',
    SHARING_SQL,
    ['hash', 'id'],
    'SEARCH operations USING INDEX operations_unresolved (argument_hash=?)',
  ],
  [
    'the open reservations of a caller are counted in their index, whatever else it has',
    OPEN_RESERVATIONS_SQL,
    ['key'],
    'SEARCH operations USING INDEX operations_reserved (caller_public_key=?)',
  ],
] as const

test.each(QUESTIONS)('%s', async (_promise, sql, values, expected) => {
  const folder = temporaryFolder('chio-index-')
  const path = join(folder, 'kernel.db')
  await provisionStore(path, KERNEL_STORE_SCHEMA, { clock: systemClock })
  const store = await openStore(path, KERNEL_STORE_SCHEMA, { clock: systemClock })
  try {
    const plan = await store.transaction('looked', tx =>
      tx.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, ...values),
    )
    expect(plan.map(({ detail }) => detail)).toEqual([expected])
  } finally {
    store.close()
    rmSync(folder, { recursive: true, force: true })
  }
})
