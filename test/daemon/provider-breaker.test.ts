import { beforeEach, describe, expect, test } from 'vitest'
import { ProviderBreaker } from '../../daemon/provider-breaker.js'
import { destinationFromUrl } from '../../protocol/destination.js'
import {
  FIRST_PROVIDER_PAUSE_MS,
  PROVIDER_PAUSE_HANG_COUNT,
  MAXIMUM_PROVIDER_PAUSE_MS,
  MAXIMUM_DECLINING_COUNT,
} from '../../protocol/limits.js'
import { HeldClock } from '../support/clock.js'

const SLOW = destinationFromUrl('https://api.example.com/slow?page=1', 'POST')
const QUICK = destinationFromUrl('https://api.example.com/quick', 'POST')
const PATIENCE_MS = 30_000
/** By one that hung nowhere. */
const SLOW_ASKED = { destination: SLOW, parentCapabilityId: 'grant-of-another' }
const QUICK_ASKED = { destination: QUICK, parentCapabilityId: 'grant-a' }
let hangs = 0
let clock: HeldClock
let breaker: ProviderBreaker
beforeEach(() => {
  hangs = 0
  clock = new HeldClock()
  breaker = new ProviderBreaker(clock)
})

/** By turns under two grants: what both of them show is no doing of one. */
const hang = (
  times: number,
  waitedMs = PATIENCE_MS,
  grants: readonly string[] = ['grant-a', 'grant-b'],
): void => {
  for (let count = 0; count < times; count += 1) {
    const parentCapabilityId = grants[hangs++ % grants.length] ?? ''
    breaker.hung({ destination: SLOW, parentCapabilityId, waitedMs })
  }
}

describe('a destination', () => {
  test('that hangs once or twice is asked again', () => {
    hang(PROVIDER_PAUSE_HANG_COUNT - 1)
    breaker.assertMayAsk(SLOW_ASKED, PATIENCE_MS)
    expect(breaker.declining()).toEqual([])
  })

  test('that goes on is paused with a reason and a time, and no other destination is', () => {
    hang(PROVIDER_PAUSE_HANG_COUNT)
    expect(() => breaker.assertMayAsk(SLOW_ASKED, PATIENCE_MS)).toThrow(
      `retry after ${FIRST_PROVIDER_PAUSE_MS} ms`,
    )
    expect(() => breaker.assertMayAsk(SLOW_ASKED, PATIENCE_MS)).toThrow(
      expect.objectContaining({
        reason: 'provider_paused',
        code: 'upstream',
      }),
    )
    breaker.assertMayAsk(QUICK_ASKED, PATIENCE_MS)
    expect(breaker.declining()).toEqual([
      { hangs: 3, host: 'api.example.com', method: 'POST', port: 443, retryAfterMs: FIRST_PROVIDER_PAUSE_MS },
    ])
  })

  test('is probed after the pause; a probe that hangs doubles it, up to a bound', () => {
    hang(PROVIDER_PAUSE_HANG_COUNT)
    clock.pass(FIRST_PROVIDER_PAUSE_MS)
    breaker.assertMayAsk(SLOW_ASKED, PATIENCE_MS)
    expect(breaker.declining()).toMatchObject([{ retryAfterMs: 0 }])
    hang(1)
    expect(breaker.declining()).toMatchObject([{ hangs: 4, retryAfterMs: 2 * FIRST_PROVIDER_PAUSE_MS }])
    hang(10)
    expect(breaker.declining()[0]).toMatchObject({ hangs: 14, retryAfterMs: MAXIMUM_PROVIDER_PAUSE_MS })
  })

  test('that answers, to a probe or before, is as any other', () => {
    hang(PROVIDER_PAUSE_HANG_COUNT)
    breaker.answered(SLOW_ASKED)
    breaker.assertMayAsk(SLOW_ASKED, PATIENCE_MS)
    hang(PROVIDER_PAUSE_HANG_COUNT - 1)
    breaker.assertMayAsk(SLOW_ASKED, PATIENCE_MS)
  })
})

describe('an impatient caller', () => {
  test('declines nobody who would wait longer', () => {
    hang(100, 1)
    expect(() => breaker.assertMayAsk(SLOW_ASKED, 1)).toThrow(/provider/)
    breaker.assertMayAsk(SLOW_ASKED, 2)
    breaker.assertMayAsk(SLOW_ASKED, PATIENCE_MS)
  })

  test('does not take away what patient ones have shown', () => {
    hang(PROVIDER_PAUSE_HANG_COUNT)
    hang(100, 1)
    expect(() => breaker.assertMayAsk(SLOW_ASKED, PATIENCE_MS)).toThrow(/provider/)
    breaker.assertMayAsk(SLOW_ASKED, PATIENCE_MS + 1)
  })
})

describe('a grant whose own input makes a destination hang', () => {
  const ALONE = ['grant-a']
  const asking = { destination: SLOW, parentCapabilityId: 'grant-a' }

  test('is paused there alone, and nobody else is, however often it hangs', () => {
    hang(100, Number.MAX_SAFE_INTEGER, ALONE)
    expect(() => breaker.assertMayAsk(asking, PATIENCE_MS)).toThrow(/provider/)
    breaker.assertMayAsk(QUICK_ASKED, PATIENCE_MS)
    breaker.assertMayAsk(SLOW_ASKED, PATIENCE_MS)
    expect(breaker.declining()).toMatchObject([{ hangs: 100, parentCapabilityId: 'grant-a' }])
  })

  test('is not forgiven by an answer to another, and is by one of its own', () => {
    hang(PROVIDER_PAUSE_HANG_COUNT, PATIENCE_MS, ALONE)
    breaker.answered(SLOW_ASKED)
    expect(() => breaker.assertMayAsk(asking, PATIENCE_MS)).toThrow(/provider/)
    breaker.answered(asking)
    breaker.assertMayAsk(asking, PATIENCE_MS)
    expect(breaker.declining()).toEqual([])
  })

  test('pauses everybody once another grant hangs as well, and does not renew that pause alone', () => {
    hang(PROVIDER_PAUSE_HANG_COUNT, PATIENCE_MS, ALONE)
    hang(1, PATIENCE_MS, ['grant-b'])
    expect(() => breaker.assertMayAsk(SLOW_ASKED, PATIENCE_MS)).toThrow(/provider/)
    clock.pass(FIRST_PROVIDER_PAUSE_MS)
    hang(1, PATIENCE_MS, ['grant-b'])
    breaker.assertMayAsk(SLOW_ASKED, PATIENCE_MS)
    hang(1, PATIENCE_MS, ALONE)
    expect(() => breaker.assertMayAsk(SLOW_ASKED, PATIENCE_MS)).toThrow(
      `retry after ${2 * FIRST_PROVIDER_PAUSE_MS} ms`,
    )
  })

  test('is remembered among so many others only', () => {
    hang(PROVIDER_PAUSE_HANG_COUNT, PATIENCE_MS, ALONE)
    for (let other = 0; other < MAXIMUM_DECLINING_COUNT; other += 1)
      hang(PROVIDER_PAUSE_HANG_COUNT, PATIENCE_MS, [`grant-${other}`])
    breaker.answered(SLOW_ASKED)
    breaker.assertMayAsk(asking, PATIENCE_MS)
    expect(breaker.declining()).toHaveLength(MAXIMUM_DECLINING_COUNT)
  })
})
