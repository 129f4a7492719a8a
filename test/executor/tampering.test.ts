// A ledger that somebody wrote into, past every trigger and with the schema as it was, is refused; its history is signed.
import { readFileSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { headPathOf } from '../../executor/ledger-head.js'
import { authorizationOf, EXECUTOR_KEY, ExecutorWorld } from '../support/executor-world.js'
import { tamper } from '../support/test-store.js'

let world: ExecutorWorld
let kept: Uint8Array[]
const files = () => [world.path, headPathOf(world.path)]
const authorization = authorizationOf('one')

beforeAll(async () => {
  world = await ExecutorWorld.begin(2)
  await world.execute(authorization)
  const ledger = await world.open()
  await ledger.extend(1, EXECUTOR_KEY)
  await ledger.extend(1, EXECUTOR_KEY)
  await ledger.acceptClock(EXECUTOR_KEY)
  kept = files().map(path => readFileSync(path))
})
afterAll(() => world.end())

/** The state before, in the very files; the note of the owner lock, which would tell, is emptied. */
beforeEach(() => {
  files().forEach((path, at) => writeFileSync(path, kept[at] ?? ''))
  writeFileSync(`${world.folder}/owner.lock`, '')
})

const SEGMENTS = 'caller_executor_segments'
const other = '00000000-0000-4000-8000-000000000000'

test('a ledger as it was written opens', async () => {
  expect(await (await world.open()).counts()).toEqual({ capacity: 4, claims: 1, reports: 1, segments: 3 })
})

test.each([
  ['a claim that is gone', 'DELETE FROM caller_executor_claims', /1 rows of kind claim.* got 0/],
  [
    'a claim with another id',
    `UPDATE caller_executor_claims SET claim_id = '${other}'`,
    /expected every claim as its history tells it/,
  ],
  [
    'another line in its history',
    "UPDATE caller_executor_history SET content_digest = digest WHERE kind = 'report'",
    /expected line 2 of its history as it was written/,
  ],
  [
    'a report that its history does not tell',
    'DELETE FROM caller_executor_history WHERE sequence > 1; DELETE FROM caller_executor_segments',
    /expected 0 rows of kind report, as its history tells, got 1/,
  ],
  [
    'a history that was cut',
    'DELETE FROM caller_executor_history WHERE sequence > 3; DELETE FROM caller_executor_segments WHERE segment = 3; DELETE FROM caller_executor_corrections',
    /expected a history of 5 lines or one more, got 3/,
  ],
  [
    'a segment that is missing',
    `DELETE FROM ${SEGMENTS} WHERE segment = 2`,
    /expected segment 2 as its executor/,
  ],
  [
    'a last segment that is missing',
    `DELETE FROM ${SEGMENTS} WHERE segment = 3`,
    /2 rows of kind segment.* got 1/,
  ],
  [
    'a segment that was replaced',
    `UPDATE ${SEGMENTS} SET header = (SELECT header FROM ${SEGMENTS} WHERE segment = 3)`,
    /expected segment 2 as its executor signed it/,
  ],
  [
    'a segment that was widened',
    `UPDATE ${SEGMENTS} SET header = CAST(replace(CAST(header AS TEXT), '_operations":1', '_operations":2') AS BLOB)`,
    /expected segment 2 as its executor signed it/,
  ],
  [
    'a segment that is none',
    `UPDATE ${SEGMENTS} SET header = CAST('{}' AS BLOB)`,
    /expected its segment as it was/,
  ],
  [
    'another capacity',
    'UPDATE caller_executor_configuration SET max_operations = 64',
    /expected segment 2 as its executor signed it/,
  ],
  ['a correction that is gone', 'DELETE FROM caller_executor_corrections', /1 rows of kind clock.* got 0/],
  [
    'a correction that was exchanged',
    'UPDATE caller_executor_corrections SET correction = CAST(replace(CAST(correction AS TEXT), \'"boot_ms":\', \'"boot_ms":1\') AS BLOB)',
    /expected every clock correction as its executor signed it/,
  ],
  ['no executor', 'DELETE FROM caller_executor_configuration', /expected a configuration, got none/],
])('with %s it does not', async (_fault, sql, sentence) => {
  tamper(world.path, sql)
  await expect(world.open()).rejects.toThrow(sentence)
})

test('with a report that was exchanged it says nothing of that operation', async () => {
  tamper(world.path, "UPDATE caller_executor_reports SET report = CAST('{}' AS BLOB)")
  await expect(world.execute(authorization)).rejects.toThrow(
    /the report that this executor signed, got another/,
  )
  expect(world.effects()).toHaveLength(1)
})
