// When a wall clock is believed: inside a boot by the boot clock, after a boot by the last commit.
import { describe, expect, test } from 'vitest'
import { anchoredAt, type ClockReading, judgeClock } from '../../protocol/trusted-clock.js'

const SKEW_MS = 5_000
const DAY_MS = 86_400_000
const first: ClockReading = { bootId: 'boot-1', bootMs: 1_000, unixMs: 1_700_000_000_000 }
const row = anchoredAt(first)
const after = (passedMs: number, steppedMs = 0, bootId = 'boot-1'): ClockReading => ({
  bootId,
  bootMs: first.bootMs + passedMs,
  unixMs: first.unixMs + passedMs + steppedMs,
})
const judge = (reading: ClockReading, known = row) => judgeClock(known, reading, SKEW_MS)

test('the first reading of a store is believed', () => {
  expect(judgeClock(undefined, first, SKEW_MS)).toEqual({ fault: null, nowUnixMs: first.unixMs, row })
})

describe('inside one boot', () => {
  test('is believed up to the skew ahead of elapsed boot time, and not beyond', () => {
    expect(judge(after(60_000, SKEW_MS)).fault).toBeNull()
    expect(judge(after(60_000, SKEW_MS + 1)).fault).toMatch(/1 ms further ahead.*sign that it is right/)
  })

  test('many small steps ahead are one jump: elapsed time counts from one reading', () => {
    let known = row
    const faults: (string | null)[] = []
    for (let step = 1; step <= 3; step += 1) {
      const judged = judge(after(step * 1_000, step * 2_000), known)
      known = judged.row
      faults.push(judged.fault)
    }
    expect(faults.map(fault => fault === null)).toEqual([true, true, false])
  })

  test('a jump leaves the high water within elapsed boot time plus skew', () => {
    const { nowUnixMs, row: left } = judge(after(60_000, DAY_MS))
    expect(nowUnixMs).toBe(first.unixMs + 60_000)
    expect(left.highWaterUnixMs).toBeLessThanOrEqual(first.unixMs + 60_000 + SKEW_MS)
    expect(judge(after(61_000), left).fault).toBeNull()
  })

  test('never goes back: behind the last commit it stands still, and beyond the skew it stops', () => {
    const { row: later } = judge(after(60_000))
    expect(judge(after(60_000, -SKEW_MS), later)).toMatchObject({
      fault: null,
      nowUnixMs: first.unixMs + 60_000,
    })
    expect(judge(after(60_000, -SKEW_MS - 1), later).fault).toMatch(/1 ms further behind/)
  })
})

describe('after a boot', () => {
  test.each([
    ['as late as the last commit', 0, true],
    ['400 days later', 400 * DAY_MS, true],
    ['behind the last commit', -1, false],
    ['more than 400 days later', 400 * DAY_MS + 1, false],
  ])('a wall clock %s', (_what, offMs, isBelieved) => {
    const judged = judge({ bootId: 'boot-2', bootMs: 5, unixMs: first.unixMs + offMs })
    expect(judged.fault === null).toBe(isBelieved)
    expect(judged.row.bootId).toBe(isBelieved ? 'boot-2' : 'boot-1')
    expect(judged.nowUnixMs).toBeGreaterThanOrEqual(first.unixMs)
  })

  test('elapsed boot time of another boot is not compared', () => {
    expect(judge({ bootId: 'boot-2', bootMs: 10 ** 9, unixMs: first.unixMs + 10 }).fault).toBeNull()
  })
})
