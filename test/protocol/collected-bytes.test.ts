// Bytes that come in pieces are kept in one buffer, whole and in order, and cost no memory for each piece.
import { expect, test } from 'vitest'
import { CollectedBytes } from '../../protocol/collected-bytes.js'

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString()

test('what was collected comes back whole, and again after it was taken', () => {
  const collected = new CollectedBytes()
  const piece = Buffer.from('ab')
  collected.add(piece)
  piece.fill(0)
  collected.add(Buffer.from('c'))
  expect(collected.length).toBe(3)
  expect(text(collected.bytes())).toBe('abc')
  expect(text(collected.take())).toBe('abc')
  expect(collected.length).toBe(0)
  collected.add(Buffer.from('d'))
  expect(text(collected.take())).toBe('d')
  collected.add(Buffer.alloc(10_000, 'x'))
  collected.drop()
  expect(collected.bytes()).toHaveLength(0)
})

test('a million pieces of one byte cost no more than their storage', () => {
  const count = 1_000_000
  const collected = new CollectedBytes()
  const piece = new Uint8Array(1)
  const beforeBytes = process.memoryUsage().rss
  for (let index = 0; index < count; index += 1) {
    piece[0] = index
    collected.add(piece)
  }
  const afterBytes = process.memoryUsage().rss
  expect(collected.length).toBe(count)
  expect(collected.bytes()[count - 1]).toBe((count - 1) & 0xff)
  // Pieces of their own would be some 270 MiB.
  expect(afterBytes - beforeBytes).toBeLessThan(100 * 2 ** 20)
})
