import { expect, test } from 'vitest'
import { fullCount, isFullRun } from './counts.js'
import { hasAllowedSkipReason, SKIP_REASONS } from './skips.js'

test('takes the small count, and the full one with CHIO_FULL=1', () => {
  expect(fullCount(3, 1_000)).toBe(isFullRun ? 1_000 : 3)
})

test.each([
  [0, 10],
  [1.5, 10],
  [11, 10],
])('refuses the counts %d and %d', (small, full) => {
  expect(() => fullCount(small, full)).toThrow(RangeError)
})

test('allows a skip for a listed reason in its name or its note, and no other', () => {
  expect(hasAllowedSkipReason([`group > case (${SKIP_REASONS.needsRoot})`, undefined])).toBe(true)
  expect(hasAllowedSkipReason(['case', SKIP_REASONS.vectorsAbsent])).toBe(true)
  expect(hasAllowedSkipReason(['case', 'skipped: it fails here'])).toBe(false)
  expect(hasAllowedSkipReason(['case', undefined])).toBe(false)
})
