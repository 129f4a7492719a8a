// The crash rounds of the example as a person sees them.
import { expect, test } from 'vitest'
import { crashLines } from '../../examples/review-note/crash-lines.js'

const KEPT = {
  boundary: 'before capture',
  completed: 50,
  effects: 50,
  killed: 50,
  misses: [],
  rounds: 50,
  unknown: 0,
}

test('a line a boundary, and a broken promise in words below it', () => {
  const broken = { ...KEPT, boundary: 'claimed, no report', misses: ['round-1 had 2 effects'], unknown: 50 }
  expect(crashLines([KEPT, broken])).toEqual([
    'killed                      rounds  ended  effects  completed  unknown  ok',
    'before capture              50      50     50       50         0        ok',
    'claimed, no report          50      50     50       50         50       NO',
    '  round-1 had 2 effects',
  ])
})

test('no rounds, no lines', () => {
  expect(crashLines([])).toEqual([])
})
