import { describe, expect, test } from 'vitest'
import { fixDeadline } from '../../daemon/deadline.js'
import { Refused } from '../../daemon/refused.js'
import { HeldClock } from '../support/clock.js'

const NOW_SECONDS = 1_700_000_000
const clockAt = () => new HeldClock(NOW_SECONDS * 1000)
const fixed = (capability: number, nonce: number, clock = clockAt()) =>
  fixDeadline(clock, {
    capabilityExpiresAtUnixSeconds: NOW_SECONDS + capability,
    nonceExpiresAtUnixSeconds: NOW_SECONDS + nonce,
  })
const leftMs = (deadline: { bootNs: bigint }) => Number((deadline.bootNs - clockAt().bootNs()) / 1_000_000n)

describe('the deadline of a preparation', () => {
  test('is thirty seconds where nothing expires earlier', () => {
    const deadline = fixed(600, 300)
    expect(deadline.limit).toBe('lifetime')
    expect(leftMs(deadline)).toBe(30_000)
  })

  test('is the capability expiry where that comes first, and the nonce expiry where that does', () => {
    expect(fixed(5, 300)).toMatchObject({ limit: 'capability_expiry' })
    expect(leftMs(fixed(5, 300))).toBe(5_000)
    expect(fixed(600, 7)).toMatchObject({ limit: 'nonce_expiry' })
    expect(leftMs(fixed(600, 7))).toBe(7_000)
  })

  test('takes the exact thirty seconds as the lifetime, and one second less as the expiry', () => {
    expect(fixed(30, 300).limit).toBe('lifetime')
    expect(fixed(29, 300).limit).toBe('capability_expiry')
  })

  test('is refused where nothing is left', () => {
    expect(() => fixed(0, 300)).toThrow(Refused)
    expect(() => fixed(600, 0)).toThrow(/lifetime refused/)
  })

  test('stays thirty seconds for expiries in the year 9999 and at the last integer', () => {
    expect(leftMs(fixed(253_402_300_799, 9_007_199_254_740_991 - NOW_SECONDS))).toBe(30_000)
  })

  test('is not moved by a step of the wall clock in either direction', () => {
    const clock = clockAt()
    const deadline = fixed(600, 300, clock)
    const before = deadline.bootNs
    clock.stepWall(-3_600_000)
    expect(deadline.bootNs).toBe(before)
    clock.stepWall(7_200_000)
    expect(deadline.bootNs).toBe(before)
    expect(Object.isFrozen(deadline)).toBe(true)
  })
})
