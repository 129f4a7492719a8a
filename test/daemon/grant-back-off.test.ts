import { beforeEach, describe, expect, test } from 'vitest'
import { GrantBackOff } from '../../daemon/grant-back-off.js'
import {
  BACK_OFF_ABANDONED_COUNT,
  BACK_OFF_ABANDONED_MS,
  FIRST_BACK_OFF_MS,
  MAXIMUM_BACK_OFF_MS,
  MAXIMUM_DECLINING_COUNT,
} from '../../protocol/limits.js'
import { HeldClock } from '../support/clock.js'

const GRANT = 'grant-of-an-abuser'
let clock: HeldClock
let backOff: GrantBackOff
beforeEach(() => {
  clock = new HeldClock()
  backOff = new GrantBackOff(clock)
})

const abandon = (times: number, heldMs = BACK_OFF_ABANDONED_MS, grant = GRANT): void => {
  for (let count = 0; count < times; count += 1) backOff.abandoned(grant, heldMs)
}
const waitMs = (): number => backOff.declining()[0]?.retryAfterMs ?? 0

describe('a grant', () => {
  test('may leave a few preparations, as a host that crashes does, and waits for nothing', () => {
    abandon(BACK_OFF_ABANDONED_COUNT - 1)
    backOff.assertMayPrepare(GRANT)
    expect(backOff.declining()).toEqual([])
  })

  test('may leave many that took little of the slot', () => {
    abandon(1_000, 5)
    backOff.assertMayPrepare(GRANT)
  })

  test('that goes on waits with a reason and a time, and no other grant does', () => {
    abandon(BACK_OFF_ABANDONED_COUNT)
    expect(() => backOff.assertMayPrepare(GRANT)).toThrow(`retry after ${FIRST_BACK_OFF_MS} ms`)
    expect(() => backOff.assertMayPrepare(GRANT)).toThrow(
      expect.objectContaining({
        reason: 'grant_backed_off',
        code: 'conflict',
      }),
    )
    backOff.assertMayPrepare('grant-of-another')
    expect(backOff.declining()).toEqual([
      { abandoned: BACK_OFF_ABANDONED_COUNT, parentCapabilityId: GRANT, retryAfterMs: FIRST_BACK_OFF_MS },
    ])
  })

  test('may prepare again once the wait is over, and not a millisecond before', () => {
    abandon(BACK_OFF_ABANDONED_COUNT)
    clock.pass(FIRST_BACK_OFF_MS - 1)
    expect(() => backOff.assertMayPrepare(GRANT)).toThrow(/retry after 1 ms/)
    clock.pass(1)
    backOff.assertMayPrepare(GRANT)
  })

  test('waits twice as long each time, up to a bound', () => {
    abandon(BACK_OFF_ABANDONED_COUNT)
    const waits = Array.from({ length: 12 }, () => {
      abandon(1)
      return waitMs()
    })
    expect(waits.slice(0, 3)).toEqual([2, 4, 8].map(times => times * FIRST_BACK_OFF_MS))
    expect(waits.at(-1)).toBe(MAXIMUM_BACK_OFF_MS)
  })

  test('that completes an execution begins anew', () => {
    abandon(BACK_OFF_ABANDONED_COUNT + 3)
    backOff.completed(GRANT)
    backOff.assertMayPrepare(GRANT)
    abandon(BACK_OFF_ABANDONED_COUNT - 1)
    backOff.assertMayPrepare(GRANT)
  })
})

test('only so many grants are remembered; the one counted longest ago goes first', () => {
  abandon(BACK_OFF_ABANDONED_COUNT)
  for (let grant = 0; grant < MAXIMUM_DECLINING_COUNT - 1; grant += 1) abandon(3, 100_000, `grant-${grant}`)
  expect(() => backOff.assertMayPrepare(GRANT)).toThrow()
  abandon(1, 1, 'grant-one-over')
  backOff.assertMayPrepare(GRANT)
  expect(backOff.declining().length).toBeLessThanOrEqual(MAXIMUM_DECLINING_COUNT)
})
