// Nonce ids: the form of RFC 9562 section 5.7, and no two alike.
import { expect, test } from 'vitest'
import { uuidV7 } from '../../kernel/uuid-v7.js'
import { fullCount } from '../support/counts.js'

test('has version, variant and the milliseconds of its making in front', () => {
  const id = uuidV7(0x017f22e279b0)
  expect(id).toMatch(/^017f22e2-79b0-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  expect(uuidV7(0)).toMatch(/^00000000-0000-7/)
})

test('is never made twice and sorts by time', () => {
  const count = fullCount(5_000, 200_000)
  expect(new Set(Array.from({ length: count }, () => uuidV7(1))).size).toBe(count)
  expect(uuidV7(1_000) < uuidV7(1_001)).toBe(true)
})
