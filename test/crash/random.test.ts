// Any process killed at any moment: no second hit, no hit without a record, and what is known is said. The seed of a
// run that finds something stands in its failure.
import { randomInt } from 'node:crypto'
import { expect, test, vi } from 'vitest'
import { runRandom } from '../../selftest/crash/random-run.js'
import { fullCount, isFullRun } from '../support/counts.js'

vi.setConfig({ testTimeout: isFullRun ? 7_200_000 : 600_000 })

test('no moment of any death lets a request be sent twice, or without a record', async () => {
  const rounds = fullCount(4, 1_000)
  const seed = randomInt(2 ** 31)
  const { violations } = await runRandom({ rounds, seed })
  expect(violations, `seed ${seed}`).toEqual([])
})
