// review-note, ended by kill -9 at moments drawn from each boundary of caller delivery, and asked again afterwards; and the
// whole exercise as its program.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { CRASH_BOUNDARIES } from '../../examples/review-note/crash-boundaries.js'
import { crashRounds } from '../../examples/review-note/crash-rounds.js'
import { packageRoot } from '../../native/paths.js'
import { fullCount, isFullRun } from '../support/counts.js'
import { SKIP_REASONS } from '../support/skips.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { testWhen } from '../support/when.js'

const inPackage = (...path: readonly string[]): string => join(packageRoot(), ...path)

test.each(CRASH_BOUNDARIES)(
  'killed at $boundary, at most one note is appended, none is invented, and it ends as $end',
  async boundary => {
    const rounds = fullCount(1, 50)
    const folder = temporaryFolder('chio-review-crash-')
    const row = await crashRounds(boundary, {
      folder,
      program: inPackage('dist', 'bin', 'interrupted.js'),
      rounds,
    })
    expect(row.misses).toEqual([])
    expect(row).toMatchObject({ killed: rounds, [boundary.end]: rounds })
    expect(row.effects).toBeLessThanOrEqual(rounds)
  },
)

function exercise(chio: string) {
  const output = temporaryFolder('chio-exercise-')
  const program = inPackage('examples', 'review-note', 'exercise')
  const { status, stderr, stdout } = spawnSync(program, ['--chio', chio, '--output', output], {
    encoding: 'utf8',
  })
  if (stdout === '') throw new Error(stderr)
  expect(readFileSync(join(output, 'exercise.json'), 'utf8')).toBe(stdout)
  const result = JSON.parse(stdout) as { kept: boolean; steps: { step: string; missed: string | null }[] }
  return { ...result, status, missed: result.steps.filter(({ missed }) => missed !== null) }
}

testWhen(isFullRun, SKIP_REASONS.needsFullRun, 'the exercise keeps every step', () => {
  expect(exercise(inPackage('dist', 'bin', 'chio.js'))).toMatchObject({ kept: true, missed: [], status: 0 })
})

testWhen(isFullRun, SKIP_REASONS.needsFullRun, 'the exercise ends with 1 when one step is missed', () => {
  expect(exercise('/bin/true')).toMatchObject({
    kept: false,
    missed: [{ step: 'the receipt verifies under the pinned kernel key' }, { step: 'and under no other' }],
    status: 1,
  })
})
