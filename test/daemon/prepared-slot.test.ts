import { describe, expect, test } from 'vitest'
import { PreparedSlot } from '../../daemon/prepared-slot.js'

describe('the prepared slot', () => {
  test('is held by one permit at a time', () => {
    const slot = new PreparedSlot()
    const permit = slot.claim()
    expect(permit?.isHeld).toBe(true)
    expect(slot.isFree).toBe(false)
    expect(slot.claim()).toBeUndefined()
    expect(permit?.release()).toBe(true)
    expect(slot.isFree).toBe(true)
  })

  test('is not freed for a successor by a second release of its predecessor', () => {
    const slot = new PreparedSlot()
    const first = slot.claim()
    first?.release()
    const second = slot.claim()
    expect(first?.release()).toBe(false)
    expect(second?.isHeld).toBe(true)
    expect(first?.isHeld).toBe(false)
    expect(slot.claim()).toBeUndefined()
  })

  test('gives every permit a generation of its own', () => {
    const slot = new PreparedSlot()
    const generations = new Set<number>()
    for (let count = 0; count < 1_000; count += 1) {
      const permit = slot.claim()
      generations.add(permit?.generation ?? 0)
      permit?.release()
    }
    expect(generations.size).toBe(1_000)
    expect(generations.has(0)).toBe(false)
  })
})
