// What shares its arguments with an operation is asked for each line of a list and at each start: one client with
// thousands of calls alike must not hold everybody up.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { SHARING_SQL } from '../../../kernel/sqlite/operation-index.js'
import { KERNEL_STORE_SCHEMA } from '../../../kernel/sqlite/schema.js'
import { systemClock } from '../../../native/clock.js'
import { openStore } from '../../../store/open.js'
import { provisionStore } from '../../../store/provision.js'
import { temporaryFolder } from '../../support/temporary-folder.js'

test('operations with the same arguments are read from their index, in its order, and no further than the answer', async () => {
  const folder = temporaryFolder('chio-index-')
  const path = join(folder, 'kernel.db')
  await provisionStore(path, KERNEL_STORE_SCHEMA, { clock: systemClock })
  const store = await openStore(path, KERNEL_STORE_SCHEMA, { clock: systemClock })
  try {
    const plan = await store.transaction('looked', tx =>
      tx.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${SHARING_SQL}`, 'hash', 'id'),
    )
    expect(plan.map(({ detail }) => detail)).toEqual([
      'SEARCH operations USING INDEX operations_unresolved (argument_hash=?)',
    ])
  } finally {
    store.close()
    rmSync(folder, { recursive: true, force: true })
  }
})
