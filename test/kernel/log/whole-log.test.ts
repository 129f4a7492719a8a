// A kernel that finds its log cut, or an operation moved by another program, goes on from nothing of it: it would sign a
// second receipt under a number that an earlier one may be known by.
import { expect, test } from 'vitest'
import type { ErrorCode } from '../../../protocol/error-codes.js'
import { AdmissionWorld } from '../../support/admission-world.js'
import { editUnguarded } from '../../support/edited-store.js'

/** In the reverse order of what is looked at, so that each shows although those before it stand still. */
const EDITS: readonly (readonly [sql: string, said: string, code: ErrorCode])[] = [
  // The state of an operation.
  [
    "UPDATE operations SET state = 'prepared' WHERE state = 'ready_to_dispatch'",
    'as its history ends (ready_to_dispatch), got prepared',
    'log_broken',
  ],
  // A receipt that no checkpoint covers yet.
  [
    `UPDATE receipts SET document = CAST(replace(CAST(document AS TEXT), '"reason":"cancelled"', '"reason":"cancelles"') AS BLOB)
     WHERE entry_seq = 4`,
    "entry 4 with this kernel's signature",
    'log_broken',
  ],
  // A receipt below the last checkpoint.
  [
    'UPDATE receipts SET document = (SELECT document FROM receipts WHERE entry_seq = 3) WHERE entry_seq = 1',
    'entries 1 to 2 as their checkpoint has them',
    'log_broken',
  ],
  // Operations.
  ['DELETE FROM operations', 'operations that were counted, got 0', 'log_broken'],
  // The newest receipts, those of the checkpoint with them: the signed head knows the last one.
  ['DELETE FROM receipts WHERE entry_seq > 1', 'the signed entry 5, got another log', 'store_head_refused'],
]

test('a store in which another program changed the log or an operation is refused, by what is wrong first', async () => {
  const world = await AdmissionWorld.make({ maximumExecutions: 9 })
  const end = async () => {
    const { operationId } = await world.reserve(world.announcement())
    await world.store.compensate({ cause: 'cancelled', operationId })
  }
  try {
    await end()
    await world.store.receipts.seal()
    await end()
    await world.reserve(world.announcement())
    await world.reopen()
    for (const [sql, said, code] of EDITS) {
      world.close()
      editUnguarded(world.path, sql)
      await expect(world.open()).rejects.toMatchObject({
        code,
        message: expect.stringContaining(said) as string,
      })
    }
  } finally {
    world.remove()
  }
})
