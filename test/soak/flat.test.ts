// Thousands of executions and of refusals leave nothing behind in any process: the run that `npm run soak -- flat`
// makes, in a small count here and in its own under CHIO_FULL=1.
import { expect, test } from 'vitest'
import { FLAT_PROCESSES, runFlat } from '../../selftest/soak/flat-run.js'
import { fullCount } from '../support/counts.js'

const COUNT = fullCount(40, 10_000)
const PATIENCE_MS = fullCount(240_000, 7_200_000)

test(
  'executions and refusals in a row leave descriptors, handles and memory flat',
  async () => {
    const report = await runFlat({ count: COUNT })
    expect(report.violations).toEqual([])
    expect(report.hits).toBeGreaterThanOrEqual(COUNT)
    const rows = report.rows.map(({ phase, process }) => `${phase} ${process}`)
    expect(rows).toEqual(
      ['executed', 'refused'].flatMap(phase => FLAT_PROCESSES.map(name => `${phase} ${name}`)),
    )
  },
  PATIENCE_MS,
)
