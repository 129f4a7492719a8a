import { expect, test } from 'vitest'
import { MAXIMUM_LOG_LINES_PER_SECOND } from '../../protocol/limits.js'
import { LineBudget } from '../../system/line-budget.js'
import { HeldClock } from '../support/clock.js'

test('of one kind so many lines are written in a second; the rest is counted and told with the next', () => {
  const clock = new HeldClock()
  const budget = new LineBudget(clock)
  const take = (kind = 'flood') => budget.take(kind)
  for (let line = 0; line < MAXIMUM_LOG_LINES_PER_SECOND; line += 1) expect(take()).toBe(0)
  expect([take(), take(), take('another')]).toEqual([undefined, undefined, 0])
  clock.pass(1_001)
  expect([take(), take()]).toEqual([2, 0])
})
