import { beforeEach, describe, expect, test } from 'vitest'
import { ProviderBreaker } from '../../daemon/provider-breaker.js'
import { destinationFromUrl } from '../../protocol/destination.js'
import {
  FIRST_PROVIDER_PAUSE_MS,
  PROVIDER_PAUSE_HANG_COUNT,
  MAXIMUM_PROVIDER_PAUSE_MS,
} from '../../protocol/limits.js'
import { HeldClock } from '../support/clock.js'

const SLOW = destinationFromUrl('https://api.example.com/slow?page=1', 'POST')
const QUICK = destinationFromUrl('https://api.example.com/quick', 'POST')
const PATIENCE_MS = 30_000
let clock: HeldClock
let breaker: ProviderBreaker
beforeEach(() => {
  clock = new HeldClock()
  breaker = new ProviderBreaker(clock)
})

const hang = (times: number, waitedMs = PATIENCE_MS): void => {
  for (let count = 0; count < times; count += 1) breaker.hung(SLOW, waitedMs)
}

describe('a destination', () => {
  test('that hangs once or twice is asked again', () => {
    hang(PROVIDER_PAUSE_HANG_COUNT - 1)
    breaker.assertMayAsk(SLOW, PATIENCE_MS)
    expect(breaker.declining()).toEqual([])
  })

  test('that goes on is paused with a reason and a time, and no other destination is', () => {
    hang(PROVIDER_PAUSE_HANG_COUNT)
    expect(() => breaker.assertMayAsk(SLOW, PATIENCE_MS)).toThrow(`retry after ${FIRST_PROVIDER_PAUSE_MS} ms`)
    expect(() => breaker.assertMayAsk(SLOW, PATIENCE_MS)).toThrow(
      expect.objectContaining({
        reason: 'provider_paused',
        code: 'upstream',
      }),
    )
    breaker.assertMayAsk(QUICK, PATIENCE_MS)
    expect(breaker.declining()).toEqual([
      { hangs: 3, host: 'api.example.com', method: 'POST', port: 443, retryAfterMs: FIRST_PROVIDER_PAUSE_MS },
    ])
  })

  test('is probed after the pause; a probe that hangs doubles it, up to a bound', () => {
    hang(PROVIDER_PAUSE_HANG_COUNT)
    clock.pass(FIRST_PROVIDER_PAUSE_MS)
    breaker.assertMayAsk(SLOW, PATIENCE_MS)
    expect(breaker.declining()).toMatchObject([{ retryAfterMs: 0 }])
    hang(1)
    expect(breaker.declining()).toMatchObject([{ hangs: 4, retryAfterMs: 2 * FIRST_PROVIDER_PAUSE_MS }])
    hang(10)
    expect(breaker.declining()).toMatchObject([{ retryAfterMs: MAXIMUM_PROVIDER_PAUSE_MS }])
  })

  test('that answers, to a probe or before, is as any other', () => {
    hang(PROVIDER_PAUSE_HANG_COUNT)
    breaker.answered(SLOW)
    breaker.assertMayAsk(SLOW, PATIENCE_MS)
    hang(PROVIDER_PAUSE_HANG_COUNT - 1)
    breaker.assertMayAsk(SLOW, PATIENCE_MS)
  })
})

describe('an impatient caller', () => {
  test('declines nobody who would wait longer', () => {
    hang(100, 1)
    expect(() => breaker.assertMayAsk(SLOW, 1)).toThrow(/provider/)
    breaker.assertMayAsk(SLOW, 2)
    breaker.assertMayAsk(SLOW, PATIENCE_MS)
  })

  test('does not take away what patient ones have shown', () => {
    hang(PROVIDER_PAUSE_HANG_COUNT)
    hang(100, 1)
    expect(() => breaker.assertMayAsk(SLOW, PATIENCE_MS)).toThrow(/provider/)
    breaker.assertMayAsk(SLOW, PATIENCE_MS + 1)
  })
})
