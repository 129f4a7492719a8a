import { describe, expect, test } from 'vitest'
import { MAXIMUM_CALLS_PER_CONNECTOR, MAXIMUM_CALLS_PER_UID } from '../../protocol/limits.js'
import { CallPlaces } from '../../system/call-places.js'

const HOST = { uid: 1_000, pid: 10 }
const many = (count: number, places: CallPlaces, peer = HOST) =>
  Array.from({ length: count }, () => places.enter(peer))

describe('calls under way', () => {
  test('of one process are permitted up to the limit; one over is not, and another process goes on', () => {
    const places = new CallPlaces()
    const taken = many(MAXIMUM_CALLS_PER_CONNECTOR, places)
    expect(taken.every(leave => leave !== undefined)).toBe(true)
    expect(places.enter(HOST)).toBeUndefined()
    expect(places.enter({ ...HOST, pid: 11 })).toBeDefined()
    taken[0]?.()
    taken[0]?.()
    expect(places.enter(HOST)).toBeDefined()
    expect(places.enter(HOST)).toBeUndefined()
  })

  test('of one uid are permitted up to the limit, however many processes it has', () => {
    const places = new CallPlaces()
    for (let pid = 1; pid <= MAXIMUM_CALLS_PER_UID; pid += 1) {
      expect(places.enter({ uid: 1_000, pid })).toBeDefined()
    }
    expect(places.enter({ uid: 1_000, pid: 999 })).toBeUndefined()
    expect(places.enter({ uid: 2_000, pid: 1_000 })).toBeDefined()
  })

  test('that wait for their turn get it in order', async () => {
    const places = new CallPlaces()
    const taken = many(MAXIMUM_CALLS_PER_CONNECTOR, places)
    const order: string[] = []
    const first = places.turn(HOST)
    const second = places.turn(HOST)
    void first.then(() => order.push('first'))
    void second.then(() => order.push('second'))
    taken[0]?.()
    const leave = await first
    expect(order).toEqual(['first'])
    leave()
    await second
    expect(order).toEqual(['first', 'second'])
  })
})
