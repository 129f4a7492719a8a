// chio selftest ledger, as an operator runs it: three lines, or one document with what was counted.
import { expect, test } from 'vitest'
import { LEDGER_CHECKS } from '../../selftest/ledger.js'
import { chio, documentOf } from '../support/chio.js'

const LINES = [
  'REPLAY original signed report after reopen: one callback; identical report bytes',
  'REFUSE changed executor epoch and replacement ledger: original history retained',
  'UNKNOWN claimed result after reopen: original custody; no second callback',
]

test('says in three lines what the ledger replays, refuses and does not know', async () => {
  const ended = await chio(['security', 'selftest', 'ledger'])
  expect(ended).toMatchObject({ status: 0, stderr: '', stdout: `${LINES.join('\n')}\n` })
})

test('counts callbacks, claims, refusals and reports in one document', async () => {
  const ended = await chio(['selftest', 'ledger', '--json'])
  expect(ended).toMatchObject({ status: 0, stderr: '' })
  expect(documentOf(ended.stdout)).toEqual({
    checks: LEDGER_CHECKS.map((name, at) => ({
      counts: [
        { callbacks: 1, reports: 1 },
        { claims: 1, refusals: 2, reports: 1 },
        { callbacks: 1, claims: 1, reports: 0 },
      ][at],
      name,
      ok: true,
      proved: LINES[at]?.replace(`${name} `, ''),
    })),
    schema: 'chio.selftest-ledger.v1',
  })
})
