// The arithmetic of the bench: figures, order of sides, verdicts, the loss formula against the command, and copies
// of rows that keep the rules of the store they go into.
import { describe, expect, test } from 'vitest'
import { readOptions } from '../../bench/bench-options.js'
import { erlangB } from '../../bench/erlang-b.js'
import { interleave } from '../../bench/interleave.js'
import { oursJudged, ratioAtMost, resultOf, unmeasured } from '../../bench/row.js'
import { rangesOf } from '../../bench/row-copies.js'
import { ROWS } from '../../bench/rows.js'
import { SeededRandom } from '../../bench/seeded-random.js'
import { quantileOf, summarise } from '../../bench/statistics.js'
import { tableOf } from '../../bench/table.js'

const row = {
  id: 'x',
  ours: 'a',
  theirs: 'b',
  unit: 'ms',
  rounds: 1,
  measure: () => Promise.reject(new Error('not measured')),
}

describe('figures', () => {
  test('a median lies between its neighbours and an outlier moves only the high end', () => {
    expect(quantileOf([4, 1, 3, 2], 0.5)).toBe(2.5)
    expect(summarise('ms', [1, 2, 3, 4, 100])).toEqual({
      unit: 'ms',
      n: 5,
      p50: 3,
      p95: 80.8,
      p99: 96.16,
      mad: 1,
    })
    expect(summarise('ms', [])).toBeNull()
  })

  test('sides are measured in turn and the first rounds are not kept', async () => {
    const order: string[] = []
    const side = (name: string) => async () => order.push(name)
    const { ours, theirs } = await interleave(5, side('ours'), side('theirs'))
    expect(order.join(' ')).toBe(Array(8).fill('ours theirs').join(' '))
    expect([ours, theirs]).toEqual([
      [7, 9, 11, 13, 15],
      [8, 10, 12, 14, 16],
    ])
  })

  test('a goal is judged by the ratio of medians, and not at all without the other side', () => {
    const goal = ratioAtMost(0.5, '≤ 0.5 ×')
    const measured = { ours: [1, 1, 9], theirs: [2, 2, 2], note: '' }
    expect(resultOf({ ...row, goal }, measured)).toMatchObject({ ratio: 0.5, met: true })
    expect(resultOf({ ...row, goal }, { ...measured, ours: [1.1] })).toMatchObject({
      ratio: 0.55,
      met: false,
    })
    expect(resultOf({ ...row, goal }, { ...measured, theirs: [] })).toMatchObject({ ratio: null, met: null })
    expect(unmeasured({ ...row, goal }, 'no rival')).toMatchObject({ met: null, note: 'no rival' })
  })

  test('a goal of ours alone needs no other side', () => {
    const goal = oursJudged('p99 ≤ 2 ms', ours => ours.p99 <= 2)
    expect(resultOf({ ...row, goal }, { ours: [1, 2], theirs: [], note: '' }).met).toBe(true)
  })

  test('the table says why a row is missing', () => {
    const goal = ratioAtMost(1, '≤ 1 ×')
    expect(tableOf([unmeasured({ ...row, goal }, 'no rival here')])).toMatch(
      /not judged\n\nx: no rival here$/,
    )
  })
})

describe('options', () => {
  test('all rows unless some are named; only whole counts', () => {
    expect(readOptions([], ROWS)).toMatchObject({ rows: ROWS, rounds: null, retainedAttempts: 1_000_000 })
    expect(readOptions(['--row', 'rss', '--rounds', '2'], ROWS)).toMatchObject({ rounds: 2 })
    expect(readOptions(['--row', 'rss'], ROWS).rows.map(({ id }) => id)).toEqual(['rss'])
    for (const wrong of [['--rounds', '0'], ['--rounds', '1.5'], ['--row', 'x'], ['--colour']])
      expect(() => readOptions(wrong, ROWS)).toThrow(/refused|nknown/)
  })
})

describe('loss', () => {
  test('the recursion of Erlang B agrees with published values', () => {
    expect(erlangB(1, 1)).toBeCloseTo(0.5, 12)
    expect(erlangB(1, 0.2)).toBeCloseTo(1 / 6, 12)
    expect(erlangB(5, 3)).toBeCloseTo(0.110_1, 4)
    expect(erlangB(10, 5)).toBeCloseTo(0.018_4, 4)
  })

  test('arrivals come again with their seed and keep their mean', () => {
    const drawn = (seed: number) => {
      const random = new SeededRandom(seed)
      return Array.from({ length: 20_000 }, () => random.exponential(60))
    }
    expect(drawn(7)).toEqual(drawn(7))
    expect(drawn(7)).not.toEqual(drawn(8))
    expect(drawn(7).reduce((sum, gap) => sum + gap, 0) / 20_000).toBeCloseTo(60, -1)
  })

  test('a simulated slot declines as the formula says', () => {
    const random = new SeededRandom(11)
    let [now, freeAt, declined] = [0, 0, 0]
    for (let arrival = 0; arrival < 50_000; arrival++) {
      now += random.exponential(100)
      if (now < freeAt) declined += 1
      else freeAt = now + random.exponential(80)
    }
    expect(declined / 50_000).toBeCloseTo(erlangB(1, 0.8), 2)
  })
})

test('a filling is cut into commits without a gap', () => {
  expect(rangesOf(1_200)).toEqual([
    { first: 0, count: 500, total: 1_200 },
    { first: 500, count: 500, total: 1_200 },
    { first: 1_000, count: 200, total: 1_200 },
  ])
})
