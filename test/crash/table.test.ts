// The crash table on a real installation: each process ends at its named moments, is started again, and everything that
// was promised still holds. A full run tells all rows.
import { expect, test, vi } from 'vitest'
import { CUTPOINTS, MOST_IMPORTANT } from '../../selftest/crash/cutpoints.js'
import type { RowResult } from '../../selftest/crash/row-result.js'
import { runTable } from '../../selftest/crash/table-run.js'
import { isFullRun } from '../support/counts.js'

vi.setConfig({ testTimeout: isFullRun ? 1_800_000 : 600_000 })

const rows = CUTPOINTS.filter(({ name }) => isFullRun || MOST_IMPORTANT.includes(name))

test('a process killed at any of its named moments breaks no promise', async () => {
  const results: RowResult[] = []
  const unlisted = await runTable(rows, result => results.push(result))
  expect(results.filter(({ ok }) => !ok)).toEqual([])
  expect(results.map(({ name }) => name)).toEqual(rows.map(({ name }) => name))
  expect(unlisted).toEqual([])
})
